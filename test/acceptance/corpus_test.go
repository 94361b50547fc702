package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// peerCase is a case of the corpus whose state is fresh or initialized.
type peerCase struct {
	ID, Description string
	Input           struct {
		Transport, State string
		Send             []peerItem
	}
	Expected struct {
		Replies []map[string]json.RawMessage
		Alive   bool
		AlsoOK  []string `json:"also_ok"`
		Assert  []string
	}
}

// peerItem is one thing to send.
type peerItem struct {
	Text   *string
	B64    []byte
	Chunks []string
	Gen    *struct {
		Prefix, Repeat, Middle, Suffix string
		Times                          int
		RepeatEnd                      string `json:"repeat_end"`
	}
	NoNewline bool `json:"no_newline"`
	DelayMS   int  `json:"delay_ms"`
	EOF       bool
}

// onlyBuilt are cases that are played against the built binary alone.
var onlyBuilt = map[string]string{
	"PR-025": "its line of 160 MiB is measured in the agent's memory",
}

// TestCorpus plays every case for stdio that needs no session, against the
// built binary and in process; corpus_state_test.go plays the others, and
// corpus_ws_test.go those for WebSockets.
func TestCorpus(t *testing.T) {
	data, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range bytes.Lines(data) {
		var kind struct {
			ID    string
			Input struct{ Transport, State string }
		}
		if err := json.Unmarshal(line, &kind); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(kind.Input.Transport, "ws") {
			continue
		}
		if kind.Input.State != "fresh" && kind.Input.State != "initialized" {
			continue
		}
		var c peerCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("%s: %v", kind.ID, err)
		}
		ran++
		t.Run(c.ID, func(t *testing.T) {
			for _, mode := range []string{"inproc", "stdio"} { // the cases are for stdio
				if mode == "inproc" && onlyBuilt[c.ID] != "" {
					continue
				}
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					playPeer(t, &c, mode)
				})
			}
		})
	}
	if ran != 80 {
		t.Errorf("%d cases ran, want 80", ran)
	}
}

func playPeer(t *testing.T, c *peerCase, mode string) {
	w := (&scenario{}).prepare(t)
	p := serveIn(t, w, mode)
	if c.Input.State == "initialized" {
		p.initialize()
	}
	before := peakMemory(p)
	start := time.Now()
	ended := p.sendItems(c.Input.Send, w)
	if !ended {
		p.send(`{"jsonrpc":"2.0","id":"probe","method":"_probe/none"}`)
		if m := p.answer("probe"); m.Error == nil { // which error depends on the state
			t.Errorf("the probe was answered %s", m.Result)
		}
	} else if c.Expected.Alive {
		t.Error("the case ends the input and wants the agent alive")
	}
	took := time.Since(start)
	grown := peakMemory(p) - before
	if !ended {
		p.awaitReplies(c.Expected.Replies)
	}
	p.checkAsserts(c, grown)
	p.in.Close()
	p.endsWith(0, 5*time.Second)
	p.checkSpeed(c, took)
	var got []message
	for _, m := range p.rest() {
		if m.Method == "" {
			got = append(got, m)
		}
	}
	if !c.matches(got) {
		t.Errorf("%s: got %s, want %s or %q", c.Description, shownReplies(got), jsonOf(c.Expected.Replies), c.Expected.AlsoOK)
	}
}

// sendItems sends the items of a case and reports whether they ended the input.
func (p *agentProcess) sendItems(items []peerItem, w world) (ended bool) {
	write := func(data string) {
		for len(data) > 0 { // in pieces, so that nothing is copied whole
			n := min(len(data), 1<<20)
			if _, err := p.in.Write([]byte(data[:n])); err != nil {
				p.t.Fatal(err)
			}
			data = data[n:]
		}
	}
	for _, s := range items {
		switch {
		case s.EOF:
			p.in.Close()
			return true
		case s.Text != nil:
			write(strings.ReplaceAll(*s.Text, "{{WS}}", w.work))
		case s.B64 != nil:
			write(string(s.B64))
		case s.Chunks != nil:
			for i, chunk := range s.Chunks {
				if i > 0 {
					time.Sleep(time.Duration(s.DelayMS) * time.Millisecond) // the case is about time between writes
				}
				write(chunk)
			}
		case s.Gen != nil:
			g := s.Gen
			write(g.Prefix)
			write(strings.Repeat(g.Repeat, g.Times))
			write(g.Middle + strings.Repeat(g.RepeatEnd, g.Times) + g.Suffix)
		default:
			p.t.Fatal("an item of a kind nobody knows")
		}
		if !s.NoNewline {
			write("\n")
		}
	}
	return false
}

// awaitReplies waits for the responses that may come behind the probe's.
func (p *agentProcess) awaitReplies(want []map[string]json.RawMessage) {
	p.t.Helper()
	for _, r := range want {
		have := slices.ContainsFunc(p.seen, func(m message) bool { return m.Method == "" })
		if !have && string(r["id"]) != "null" {
			p.seen = append(p.seen, p.await("the reply", func(m message) bool { return m.Method == "" }))
		}
	}
}

// checkAsserts turns the words of a case into checks. Words that nobody knows
// are an error.
func (p *agentProcess) checkAsserts(c *peerCase, grown int64) {
	t := p.t
	never := func(what string, is func(message) bool) {
		if slices.ContainsFunc(p.seen, is) {
			t.Error(what)
		}
	}
	for _, a := range c.Expected.Assert {
		switch a {
		case "answer within 1 s", "answer within 10 s": // checkSpeed
		case "resident memory grows by less than 64 MiB":
			if grown > 64<<20 {
				t.Errorf("memory grew by %d bytes", grown)
			}
		case "resident memory grows by less than twice the configured message limit":
			if grown > 2*64<<20 {
				t.Errorf("memory grew by %d bytes", grown)
			}
		case "exit within 5 s": // checked of every case
		case "the raw reply contains 9007199254740993":
			if !slices.ContainsFunc(p.seen, func(m message) bool { return string(m.ID) == "9007199254740993" }) {
				t.Error("the id was not echoed digit by digit")
			}
		case "session/list is not executed":
			never("something was executed", func(m message) bool { return m.Result != nil })
		case "no session is created":
			if c.Input.State == "fresh" {
				p.initialize()
			}
			if m := p.call("list", "session/list", `{}`); !strings.Contains(string(m.Result), `"sessions":[]`) {
				t.Errorf("sessions: %s%s", m.Result, m.Error)
			}
		case "no fs or terminal request is ever sent to this client":
			never("the client was asked for what it does not offer", func(m message) bool {
				return strings.HasPrefix(m.Method, "fs/") || strings.HasPrefix(m.Method, "terminal/")
			})
		case "no child process is started", "no child process left":
			if n := children(p); n != 0 {
				t.Errorf("%d child processes", n)
			}
		case "no file outside the data directory is opened":
			never("a file was opened", func(m message) bool { return strings.Contains(string(m.Error), "root:") })
		default:
			t.Errorf("nobody knows how to check %q", a)
		}
	}
}

// checkSpeed checks of a process that has ended how long it took. A busy machine
// makes it wait, but it does not make it compute more: that has no slack.
func (p *agentProcess) checkSpeed(c *peerCase, took time.Duration) {
	for _, a := range c.Expected.Assert {
		word, given := strings.CutPrefix(a, "answer within ")
		if !given {
			continue
		}
		limit, err := time.ParseDuration(strings.ReplaceAll(word, " ", ""))
		if err != nil {
			p.t.Fatal(err)
		}
		if took > limit+slack {
			p.t.Errorf("it took %v", took)
		}
		if p.cmd == nil {
			continue
		}
		if spent := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(); spent > limit {
			p.t.Errorf("it computed for %v", spent)
		}
	}
}

// matches compares the replies with those expected, in any order, and then
// with what would do as well.
func (c *peerCase) matches(got []message) bool {
	want := c.Expected.Replies
	if each(got, want) {
		return true
	}
	for _, also := range c.Expected.AlsoOK {
		word, value, _ := strings.Cut(also, " ")
		switch {
		case also == "no reply":
			if len(got) == 0 {
				return true
			}
			continue
		case word != "id" && word != "code" || len(want) != 1:
			continue
		}
		changed := map[string]json.RawMessage{}
		for k, v := range want[0] {
			changed[k] = v
		}
		if word == "id" {
			changed["id"] = json.RawMessage(value)
		} else {
			changed["error_code"] = json.RawMessage(value)
		}
		if each(got, []map[string]json.RawMessage{changed}) {
			return true
		}
	}
	return false
}

// each reports whether the wanted replies are there and no others, whatever
// the order.
func each(got []message, want []map[string]json.RawMessage) bool {
	rest := slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(rest, func(m message) bool { return fits(m, w) })
		if i < 0 {
			return false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return len(rest) == 0
}

func fits(m message, want map[string]json.RawMessage) bool {
	if options, ok := want["any_of"]; ok {
		var list []map[string]json.RawMessage
		return json.Unmarshal(options, &list) == nil && slices.ContainsFunc(list, func(o map[string]json.RawMessage) bool {
			if o["id"] == nil {
				o["id"] = want["id"]
			}
			return fits(m, o)
		})
	}
	if string(m.ID) != string(want["id"]) || m.JSONRPC != "2.0" {
		return false
	}
	if _, ok := want["result"]; ok { // "object"
		return m.Error == nil && bytes.HasPrefix(m.Result, []byte("{"))
	}
	var e struct {
		Code    int
		Message string
		Data    struct{ Reason string }
	}
	if json.Unmarshal(m.Error, &e) != nil || e.Message == "" || e.Data.Reason == "" {
		return false
	}
	var codes []int
	_ = json.Unmarshal(want["error_code_in"], &codes) // absent is none
	var one int
	if json.Unmarshal(want["error_code"], &one) == nil {
		codes = append(codes, one)
	}
	return slices.Contains(codes, e.Code)
}

func shownReplies(got []message) string {
	var b strings.Builder
	for _, m := range got {
		fmt.Fprintf(&b, "[%s %s%s]", m.ID, m.Result, m.Error)
	}
	return b.String()
}

func jsonOf(v any) string {
	b, _ := json.Marshal(v) // what was JSON is JSON
	return string(b)
}

// peakMemory is the most memory a process ever had resident, in bytes; 0 where
// that cannot be read.
func peakMemory(p *agentProcess) int64 {
	if p.cmd == nil || runtime.GOOS != "linux" {
		return 0
	}
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	if err != nil {
		return 0
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	_, _ = fmt.Sscan(text, &kib)
	return kib << 10
}

// children counts the processes that a process has started; 0 where that
// cannot be read.
func children(p *agentProcess) int {
	if p.cmd == nil || runtime.GOOS != "linux" {
		return 0
	}
	pid := strconv.Itoa(p.cmd.Process.Pid)
	found := 0
	threads, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "children"))
	for _, name := range threads {
		if list, err := os.ReadFile(name); err == nil {
			found += len(strings.Fields(string(list)))
		}
	}
	return found
}
