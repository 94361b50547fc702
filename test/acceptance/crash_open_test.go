package acceptance

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const crashOpenModel = `--- next when "write"
text "Writing. "
call write_file {"path":"effect.txt","content":"once\n"}
--- next when "write"
text "Written."
--- next always
text "Said."
`

// TestCrash_OutsideATurn kills the agent while it opens sessions and takes
// uploads. Whatever moment it was, the next process finds whole sessions and
// works on.
func TestCrash_OutsideATurn(t *testing.T) {
	for n := range *crashes {
		for name, round := range map[string]func(*testing.T, world){
			"while a session is made":   crashInNew,
			"while a session is loaded": crashInLoad,
			"while an upload is stored": crashInUpload,
		} {
			if n%8 != 0 && *crashes <= 24 {
				continue // a few of each will do by default
			}
			t.Run(fmt.Sprintf("%d %s", n, name), func(t *testing.T) {
				t.Parallel()
				w := (&scenario{model: crashOpenModel}).prepare(t)
				round(t, w)
				checkStore(t, filepath.Join(w.data, "sessions", "acp-sessions.db"))
			})
		}
	}
}

func again(t *testing.T, w world) *agentProcess {
	t.Helper()
	p := launch(t, w, nil, []string{"BERTH_store__required=true", "BERTH_profiles__default__level=full"})
	p.initialize()
	return p
}

// killed ends a process at once.
func (p *agentProcess) killed() {
	_ = p.cmd.Process.Kill()
	<-p.done
	<-p.read
}

// load opens a stored session and returns the updates it was replayed with.
func (p *agentProcess) load(w world, id string) []string {
	p.t.Helper()
	m := p.call("load", "session/load", `{"sessionId":"`+id+`","cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
	if m.Error != nil {
		p.t.Fatalf("session %s does not load: %s", id, m.Error)
	}
	var ups []string
	for _, m := range p.seen {
		ups = append(ups, string(m.Params))
	}
	p.seen = nil
	return ups
}

// listed returns the ids of the stored sessions.
func (p *agentProcess) listed() []string {
	p.t.Helper()
	var res struct {
		Sessions []struct {
			SessionID string `json:"sessionId"`
		} `json:"sessions"`
	}
	if m := p.call("list", "session/list", `{}`); json.Unmarshal(m.Result, &res) != nil {
		p.t.Fatalf("session/list: %s", m.Error)
	}
	var ids []string
	for _, s := range res.Sessions {
		ids = append(ids, s.SessionID)
	}
	return ids
}

func crashInNew(t *testing.T, w world) {
	p := again(t, w)
	told := p.newSession(w)
	p.request("n", "session/new", `{"cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
	time.Sleep(rand.N(6 * time.Millisecond)) // the moment is what is tried
	p.killed()
	next := again(t, w)
	ids := next.listed()
	if !slices.Contains(ids, told) || len(ids) > 2 {
		t.Errorf("sessions %v, of which the client knew %s", ids, told)
	}
	for _, id := range ids {
		next.load(w, id)
		if got := stopReason(next.call("p", "session/prompt", promptOf(id, "hello"))); got != "end_turn" {
			t.Errorf("the prompt in session %s was answered %s", id, got)
		}
		next.seen = nil
	}
}

func crashInLoad(t *testing.T, w world) {
	p := again(t, w)
	id := p.newSession(w)
	for _, text := range []string{"one", "write", "three"} {
		if got := stopReason(p.call("p", "session/prompt", promptOf(id, text))); got != "end_turn" {
			t.Fatalf("the prompt was answered %s", got)
		}
	}
	p.in.Close()
	p.endsWith(0, patience)
	first := again(t, w)
	want := first.load(w, id)
	first.killed()
	effect, err := os.Stat(filepath.Join(w.work, "effect.txt"))
	if err != nil {
		t.Fatal(err)
	}
	torn := again(t, w)
	torn.request("l", "session/load", `{"sessionId":"`+id+`","cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
	if rand.IntN(2) == 0 {
		torn.await("the replay", func(m message) bool { return m.Method == "session/update" })
	} else {
		time.Sleep(rand.N(6 * time.Millisecond)) // the moment is what is tried
	}
	torn.killed()
	last := again(t, w)
	if got := last.load(w, id); !slices.Equal(got, want) {
		t.Errorf("after the kill the history is\n%s\nbefore it was\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := stopReason(last.call("p", "session/prompt", promptOf(id, "next"))); got != "end_turn" {
		t.Errorf("the next prompt was answered %s", got)
	}
	if now, err := os.Stat(filepath.Join(w.work, "effect.txt")); err != nil || !os.SameFile(now, effect) || !now.ModTime().Equal(effect.ModTime()) {
		t.Errorf("the effect was made again: %v", err)
	}
}

// uploaded finds the stored copies that a history names.
var uploaded = regexp.MustCompile(`"(file://[^"]*/uploads/[^"]*)"`)

func crashInUpload(t *testing.T, w world) {
	p := again(t, w)
	id := p.newSession(w)
	blob := []byte(strings.Repeat("a picture of a ship ", 50_000))
	block := `{"type":"resource","resource":{"uri":"file:///ship.bin","mimeType":"application/octet-stream","blob":"` + base64.StdEncoding.EncodeToString(blob) + `"}}`
	p.request("p", "session/prompt", `{"sessionId":"`+id+`","prompt":[{"type":"text","text":"see"},`+block+`]}`)
	time.Sleep(rand.N(50 * time.Millisecond)) // the moment is what is tried
	p.killed()
	next := again(t, w)
	history := strings.Join(next.load(w, id), "\n")
	named := uploaded.FindAllStringSubmatch(history, -1)
	if strings.Contains(history, "see") && len(named) == 0 {
		t.Errorf("the turn is there and its upload is not: %.500s", history)
	}
	for _, m := range named {
		u, err := url.Parse(m[1])
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(u.Path)
		if err != nil || sha256.Sum256(data) != sha256.Sum256(blob) {
			t.Errorf("%s: %d bytes, %v", u.Path, len(data), err)
		}
	}
	// The same file again: what the kill left does not stand in the way.
	m := next.call("again", "session/prompt", `{"sessionId":"`+id+`","prompt":[{"type":"text","text":"see"},`+block+`]}`)
	if got := stopReason(m); got != "end_turn" {
		t.Errorf("the next prompt was answered %s", got)
	}
}
