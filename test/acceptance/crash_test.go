package acceptance

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to check the file as another program would

	"github.com/berth-dev/berth/adapters/acpclient"
)

var crashes = flag.Int("crashes", 24, "how often the agent is killed in mid-turn")

// crashModel does a turn without effects, then one with a write, then one
// that answers whatever was before. The calls of a process that is started
// again are its own: nothing of the killed turn may be run by itself.
const crashModel = `--- next when "first"
text "One."
--- next when "second"
text "I will write. "
call write_file {"path":"effect.txt","content":"once\n"}
--- next when "second"
text "Written."
delay 20ms
text " Really."
--- next when "third"
text "Three."
`

// crashPoint is a moment of the second turn.
type crashPoint struct {
	name string
	at   func(u acpclient.Update) bool // kill when an update says so
	ask  string                        // or at the permission request: "open" or "answered"
}

var crashPoints = []crashPoint{
	{name: "while text streams", at: func(u acpclient.Update) bool { return u.Kind == "agent_message_chunk" }},
	{name: "when the call is announced", at: func(u acpclient.Update) bool { return u.Kind == "tool_call" }},
	{name: "with the permission open", ask: "open"},
	{name: "when the permission is answered", ask: "answered"},
	{name: "while the call runs", at: func(u acpclient.Update) bool { return u.Status == "in_progress" }},
	{name: "when the call has ended", at: func(u acpclient.Update) bool { return u.Status == "completed" }},
	{name: "before the response", at: func(u acpclient.Update) bool { return u.Text == "Written." }},
	{name: "at a random moment"},
}

// TestCrash_EveryAcknowledgedTurnSurvives kills the agent at each step of a
// turn with a tool call. Afterwards the acknowledged turn is there, the
// interrupted one is marked, no effect is repeated, the store is whole, and
// the next prompt works.
func TestCrash_EveryAcknowledgedTurnSurvives(t *testing.T) {
	for n := range *crashes {
		p := crashPoints[n%len(crashPoints)]
		t.Run(fmt.Sprintf("%d %s", n, p.name), func(t *testing.T) {
			t.Parallel()
			crash(t, p)
		})
	}
}

// seen collects what a client is shown.
type seen struct {
	mu   sync.Mutex
	user []string
	text []string
	last map[string]string // status by call
}

func (s *seen) add(u acpclient.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u.Kind == "user_message_chunk":
		s.user = append(s.user, u.Text)
	case u.Kind == "agent_message_chunk":
		s.text = append(s.text, u.Text)
	case u.ToolCallID != "" && u.Status != "":
		s.last[u.ToolCallID] = u.Status
	}
}

func start(t *testing.T, w world, h acpclient.Handlers) *acpclient.Process {
	t.Helper()
	p, err := acpclient.Start(acpclient.Command{
		Path: binary, Args: []string{"acp", "--config-dir", w.config, "--data-dir", w.data}, Stderr: os.Stderr,
		Env: append(os.Environ(), "BERTH_store__required=true"),
	}, acpclient.Info{Name: "crash"}, h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func crash(t *testing.T, point crashPoint) {
	s := &scenario{model: crashModel}
	w := s.prepare(t)
	kill := make(chan struct{}, 1)
	now := func() {
		select {
		case kill <- struct{}{}:
		default:
		}
	}
	armed := false
	p := start(t, w, acpclient.Handlers{
		Update: func(u acpclient.Update) {
			if armed && point.at != nil && point.at(u) {
				now()
			}
		},
		Permission: func(ctx context.Context, r acpclient.PermissionRequest) acpclient.Choice {
			if point.ask == "open" {
				now()
				<-ctx.Done()
			}
			if point.ask == "answered" {
				defer now()
			}
			return acpclient.Choice{OptionID: "allow-once"}
		},
	})
	ctx := t.Context()
	id, err := p.NewSession(ctx, w.work, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Prompt(ctx, id, "first"); err != nil {
		t.Fatal(err)
	}
	armed = true
	acknowledged := make(chan bool, 1)
	go func() {
		_, err := p.Prompt(ctx, id, "second")
		acknowledged <- err == nil
	}()
	if point.at == nil && point.ask == "" {
		time.AfterFunc(time.Duration(rand.IntN(50_000))*time.Microsecond, now)
	}
	<-kill
	p.Kill()
	checkCrash(t, w, id, <-acknowledged)
}

// checkCrash looks at what a new process finds.
func checkCrash(t *testing.T, w world, id string, acknowledged bool) {
	effect := filepath.Join(w.work, "effect.txt")
	before, beforeErr := os.Stat(effect)
	got := &seen{last: map[string]string{}}
	p := start(t, w, acpclient.Handlers{Update: got.add})
	defer p.Stop()
	if err := p.Load(t.Context(), id, w.work); err != nil {
		t.Fatalf("load: %v", err)
	}
	got.mu.Lock()
	users, text := slices.Clone(got.user), strings.Join(got.text, "")
	for call, status := range got.last {
		if status != "completed" && status != "failed" {
			t.Errorf("call %s is %q after the load", call, status)
		}
		if status == "completed" && beforeErr != nil {
			t.Errorf("call %s is completed and its effect is not there", call)
		}
	}
	got.mu.Unlock()
	if len(users) == 0 || users[0] != "first" || !strings.HasPrefix(text, "One.") {
		t.Errorf("the acknowledged turn is not there: user %q, text %q", users, text)
	}
	finished := strings.Contains(text, "Written. Really.")
	switch {
	case len(users) == 1 && acknowledged:
		t.Error("the second turn was answered and is not there")
	case len(users) == 2 && !finished && !strings.Contains(text, "nterrupted"):
		t.Errorf("the interrupted turn is not marked: %q", text)
	case acknowledged && !finished:
		t.Errorf("the second turn was answered and is not whole: %q", text)
	}
	if _, err := p.Prompt(t.Context(), id, "third"); err != nil {
		t.Errorf("the next prompt: %v", err)
	}
	after, afterErr := os.Stat(effect)
	if (beforeErr == nil) != (afterErr == nil) || beforeErr == nil && !os.SameFile(before, after) {
		t.Error("an effect was made again after the crash")
	}
	if data, err := os.ReadFile(effect); err == nil && string(data) != "once\n" {
		t.Errorf("the effect is torn: %q", data)
	}
	if left, _ := filepath.Glob(filepath.Join(w.work, ".*")); len(left) > 0 && beforeErr == nil {
		t.Errorf("temporary files are left: %v", left)
	}
	checkStore(t, filepath.Join(w.data, "sessions", "acp-sessions.db"))
	checkLeaks(t, newLeaks(), w, "")
}

func checkStore(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(20000)") // the agent may be writing
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity check: %q, %v", verdict, err)
	}
}

// slowModel says something, lets it be read, goes on, and does not end.
const slowModel = `--- next when "slow"
text "Read "
text "long ago. "
delay 4s
text "Just now."
delay 1h
--- next when "next"
text "Done."
`

// TestCrash_WhatWasReadIsThere: a reply that is cut off by the end of the
// process is there afterwards, but for its last moment.
func TestCrash_WhatWasReadIsThere(t *testing.T) {
	t.Parallel()
	w := (&scenario{model: slowModel}).prepare(t)
	read := make(chan struct{}, 1)
	p := start(t, w, acpclient.Handlers{Update: func(u acpclient.Update) {
		if u.Text == "Just now." {
			read <- struct{}{}
		}
	}})
	id, err := p.NewSession(t.Context(), w.work, nil)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = p.Prompt(t.Context(), id, "slow") // the process dies meanwhile
	}()
	<-read
	p.Kill()
	<-answered
	got := &seen{last: map[string]string{}}
	p = start(t, w, acpclient.Handlers{Update: got.add})
	defer p.Stop()
	if err := p.Load(t.Context(), id, w.work); err != nil {
		t.Fatalf("load: %v", err)
	}
	got.mu.Lock()
	text := strings.Join(got.text, "")
	got.mu.Unlock()
	if rest, ok := strings.CutPrefix(text, "Read long ago. "); !ok || strings.Contains(rest, "Read") || !strings.Contains(rest, "nterrupted") {
		t.Errorf("what was read and how it ended is now %q", text)
	}
	if _, err := p.Prompt(t.Context(), id, "next"); err != nil {
		t.Errorf("the next prompt: %v", err)
	}
	checkStore(t, filepath.Join(w.data, "sessions", "acp-sessions.db"))
}
