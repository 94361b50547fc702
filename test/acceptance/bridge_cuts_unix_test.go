//go:build unix

package acceptance

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	bridgeSeeds = flag.Int("bridge.seeds", 20, "how many stories TestBridge_BrokenWays plays in each way")
	bridgeSeed  = flag.Uint64("bridge.seed", 0, "the only story it plays; 0: 1 to -bridge.seeds")
)

// brokenModel has turns with thoughts, long and chopped texts, tools that ask,
// tools that do not, a plan, and files of the client's.
var brokenModel = `--- next when "first"
thought "What is there? "
chunks 40 "word "
call shell {"command":"echo one >> log.txt"}
--- next when "first"
text "` + strings.Repeat("A long text. ", 3000) + `"
call update_plan {"entries":[{"content":"Write","status":"in_progress","priority":"high"},{"content":"Read","status":"pending","priority":"low"}]}
call write_file {"path":"made.txt","content":"made\n"}
--- next when "first"
chunks 20 "more " every 300us
call read_file {"path":"buffer.txt"}
call shell {"command":"echo two >> log.txt"}
--- next when "first"
call update_plan {"entries":[{"content":"Write","status":"completed","priority":"high"}]}
--- next when "first"
chunks 25 "last " every 500us
usage input=10 output=20
--- next when "second"
chunks 10 "second " every 200us
call shell {"command":"echo three >> log.txt"}
--- next when "second"
text "Done with the second."
--- next when "third"
call shell {"command":"echo four >> log.txt"}
--- next when "third"
text "Done with the third."
--- next when "fourth"
call shell {"command":"echo five >> log.txt"}
--- next when "fourth"
chunks 15 "fourth "
`

// TestBridge_BrokenWays breaks the way between a bridge and a daemon of the
// built binary at places that a seed names: by resets, ends and silence, in
// handshakes, in frames, in replays, several times in a row. What the editor
// sees is what it sees when nothing is broken, and no tool runs twice.
func TestBridge_BrokenWays(t *testing.T) {
	for _, way := range []struct {
		name  string
		plain bool
	}{{"with links", false}, {"without links", true}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			w := (&scenario{model: brokenModel, config: "[gateway]\nping_interval_secs = 1\n"}).prepare(t)
			d := startSocketDaemonIn(t, w)
			b := newBreakingWay(t, d.info.Address, way.plain)
			want := playStory(t, d, b, "story-0")
			seeds := []uint64{*bridgeSeed}
			if *bridgeSeed == 0 {
				seeds = nil
				for n := range *bridgeSeeds {
					seeds = append(seeds, uint64(n+1))
				}
			}
			for _, seed := range seeds {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					plan := strokes(rand.New(rand.NewPCG(seed, 7)))
					b.next(plan)
					got := playStory(t, d, b, fmt.Sprintf("story-%d", seed))
					b.next(nil)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the editor sees something else (-want +got):\n%s\nwhat happened: %v", diff, plan)
					}
				})
			}
			t.Logf("%d stories, %d cuts", len(seeds), b.cuts.Load())
		})
	}
}

// storyteller is an editor that plays the story.
type storyteller struct {
	*agentProcess
	dir   string
	calls int
	view  sight

	buffers map[string]string // unsaved, by file name
}

// playStory plays one story over a way and returns what the editor saw.
func playStory(t *testing.T, d *socketDaemon, b *breakingWay, name string) []string {
	t.Helper()
	dir := filepath.Join(d.world.work, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "buffer.txt"), []byte("on disk\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(d.token), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &storyteller{agentProcess: d.bridge(t, nil, "--verbose", "--url", b.url(), "--token-file", file), dir: dir}
	e.buffers = map[string]string{"buffer.txt": "unsaved\n"}
	e.view.init()
	fs := !b.plain // a write is lost with its connection, and nobody knows whether it was made
	e.ask("initialize", fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":%v,"writeTextFile":%v}}}`, fs, fs))
	open := `{"cwd":` + quoted(dir) + `,"mcpServers":[],"_meta":{"berth":{"sessionKey":"agent:default:` + name + `"}}}`
	session := sessionOf(e.ask("session/new", open))
	e.ask("session/prompt", promptOf(session, "first"))
	e.askAll("session/prompt", promptOf(session, "second"), promptOf(session, "third"))
	e.ask("session/close", `{"sessionId":"`+session+`"}`)
	e.view.again()
	e.ask("session/load", `{"sessionId":"`+session+`","cwd":`+quoted(dir)+`,"mcpServers":[]}`)
	e.ask("session/prompt", promptOf(session, "fourth"))
	e.in.Close()
	e.endsWith(0, patience)
	if t.Failed() {
		t.Logf("the bridge says:\n%s", e.stderr)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	return append(e.view.told(dir), fmt.Sprintf("the commands ran: %q (%v)", log, err), fmt.Sprintf("the buffers: %q", e.buffers))
}

// ask sends a request and answers what is asked until its answer has come.
func (e *storyteller) ask(method, params string) message {
	e.t.Helper()
	return e.askAll(method, params)
}

// askAll sends requests at once and returns the last one's answer.
func (e *storyteller) askAll(method string, params ...string) (last message) {
	e.t.Helper()
	open := map[string]int{}
	for _, p := range params {
		e.calls++
		open[strconv.Quote(strconv.Itoa(e.calls))] = e.calls
		e.request(strconv.Itoa(e.calls), method, p)
	}
	for len(open) > 0 {
		m := e.await("the answer to "+method, func(message) bool { return true })
		switch {
		case m.Method != "" && m.ID != nil:
			e.reply(m)
		case m.Method != "":
			e.view.update(m)
		default:
			n, ok := open[string(m.ID)]
			if !ok {
				e.t.Errorf("an answer to what is not open: %s %s", m.ID, m.Result)
			}
			delete(open, string(m.ID))
			e.view.note(fmt.Sprintf("answer %d to %s", n, method), answered(m))
			last = m
		}
	}
	return last
}

// answered is what an answer says that is the same in every run.
func answered(m message) string {
	if m.Error != nil {
		return string(m.Error)
	}
	return stopReason(m)
}

// reply answers a request of the agent's.
func (e *storyteller) reply(m message) {
	e.t.Helper()
	var p struct {
		Path     string
		Content  string
		ToolCall struct{ ToolCallID string }
		Options  []struct{ OptionID string }
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		e.t.Fatalf("%s: %v", m.Params, err)
	}
	switch m.Method {
	case "session/request_permission":
		e.view.note("permission for "+p.ToolCall.ToolCallID, "asked")
		e.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"outcome":{"outcome":"selected","optionId":"` + p.Options[0].OptionID + `"}}}`)
	case "fs/read_text_file":
		e.view.note("read "+p.Path, "asked")
		e.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":` + quoted(e.buffers[filepath.Base(p.Path)]) + `}}`)
	case "fs/write_text_file":
		e.buffers[filepath.Base(p.Path)] += p.Content // a second write shows
		e.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
	default:
		e.t.Errorf("the agent asks for %s", m.Method)
	}
}

// sight is what an editor shows: messages as a whole, calls as they ended, the
// newest of each state, in the order in which they came up.
type sight struct {
	order []string
	shown map[string]string
	part  int // of the story
}

func (s *sight) init() { s.shown = map[string]string{} }

// again begins a part in which everything comes up anew.
func (s *sight) again() { s.part++ }

func (s *sight) note(key, value string) {
	key = fmt.Sprintf("%d %s", s.part, key)
	if _, ok := s.shown[key]; !ok {
		s.order = append(s.order, key)
	}
	s.shown[key] = value
}

func (s *sight) get(key string) string { return s.shown[fmt.Sprintf("%d %s", s.part, key)] }

// update takes a notification in.
func (s *sight) update(m message) {
	var p struct {
		Update map[string]json.RawMessage
	}
	if m.Method != "session/update" || json.Unmarshal(m.Params, &p) != nil {
		return
	}
	kind, u := unquoted(p.Update["sessionUpdate"]), p.Update
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		var c struct{ Text string }
		_ = json.Unmarshal(u["content"], &c)
		key := kind + " " + unquoted(u["messageId"])
		s.note(key, s.get(key)+c.Text)
	case "tool_call", "tool_call_update":
		key := "call " + unquoted(u["toolCallId"])
		have := map[string]json.RawMessage{}
		_ = json.Unmarshal([]byte(s.get(key)), &have)
		times := 0
		_ = json.Unmarshal(have["opened"], &times)
		if kind == "tool_call" {
			times++
		}
		for name, value := range u {
			if name != "sessionUpdate" && name != "_meta" {
				have[name] = value
			}
		}
		have["opened"] = json.RawMessage(strconv.Itoa(times))
		text, _ := json.Marshal(have) // it was JSON before
		s.note(key, string(text))
	default:
		text, _ := json.Marshal(u) // it was JSON before
		s.note("state "+kind, string(text))
	}
}

func unquoted(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

var (
	anyUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`"updatedAt":"[^"]*"|\b[\d.]+ m?s\b|"duration_ms":\d+`)
)

// told is all of it in words that are the same in every run. States have no
// place in the order of the rest.
func (s *sight) told(dir string) []string {
	names := map[string]string{}
	name := func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("u%d", len(names))
		}
		return names[id]
	}
	var out, states []string
	for _, key := range s.order {
		line := strings.ReplaceAll(key+": "+s.shown[key], dir, "DIR")
		line = anyTime.ReplaceAllString(anyUUID.ReplaceAllStringFunc(line, name), "T")
		if strings.Contains(key, " state ") {
			states = append(states, line)
		} else {
			out = append(out, line)
		}
	}
	slices.Sort(states)
	return append(out, states...)
}
