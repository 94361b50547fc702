package openclaw_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

// asking is a run that asks for permission as the payload says, which has %s
// for the run, and waits.
func asking(payloads ...string) func(r *openclawtest.Run) {
	return func(r *openclawtest.Run) {
		r.Say("hm")
		for _, p := range payloads {
			r.Raw("exec.approval.requested", fmt.Sprintf(p, r.ID))
		}
		r.Hold(nil)
	}
}

// asked counts the requests that the editor gets, and those that are withdrawn.
type asked struct {
	open, gone int
	last       json.RawMessage
}

func (a *asked) answer(r *rig) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, p json.RawMessage) (any, error) {
		r.mu.Lock()
		a.open, a.last = a.open+1, p
		r.mu.Unlock()
		<-ctx.Done()
		r.mu.Lock()
		a.open, a.gone = a.open-1, a.gone+1
		r.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

func TestPermission_Odd(t *testing.T) {
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"a%d","request":{"command":"ls","runId":"%%s"}}`, i)
	}
	tests := []struct {
		name       string
		payloads   []string
		after      time.Duration
		open, gone int
		with       string // part of what the editor was asked
	}{
		{"no call is named", []string{`{"id":"a","request":{"command":"ls","runId":"%s"}}`}, 0, 1, 0, `"toolCallId":"approval:a"`},
		{
			"a clock that is behind ours", []string{`{"id":"a","createdAtMs":1000,"expiresAtMs":61000,"request":{"command":"ls","runId":"%s"}}`},
			59 * time.Second, 1, 0, "ls",
		},
		{
			"too late", []string{`{"id":"a","createdAtMs":1000,"expiresAtMs":61000,"request":{"command":"ls","runId":"%s"}}`},
			61 * time.Second, 0, 1, "ls",
		},
		{"twice", []string{`{"id":"a","request":{"command":"ls","runId":"%s"}}`, `{"id":"a","request":{"command":"ls","runId":"%s"}}`}, 0, 1, 0, "ls"},
		{"without end", many, 0, 64, 0, "ls"},
		{"wrong types", []string{`{"id":5,"request":"%s"}`, `{"id":"a","request":{"runId":["%s"]}}`}, 0, 0, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, with{gateway: openclawtest.Config{Script: asking(tt.payloads...)}}, func(r *rig) {
				a := &asked{}
				r.answer = a.answer(r)
				id := r.open()
				r.later("session/prompt", says(id, "hi"))
				time.Sleep(tt.after)
				synctest.Wait()
				if a.open != tt.open || a.gone != tt.gone || !strings.Contains(string(a.last), tt.with) {
					t.Errorf("%d are open and %d withdrawn, want %d and %d; asked %s", a.open, a.gone, tt.open, tt.gone, a.last)
				}
				for _, l := range r.told() {
					if strings.HasPrefix(l, "call  ") {
						t.Errorf("a call without an id: %s", l)
					}
				}
			})
		})
	}
}

// TestPermission_Review has a gateway that tells something while the list of
// open requests is on its way: that is newer than the list.
func TestPermission_Review(t *testing.T) {
	const ask = `{"id":"%s","request":{"command":"ls","runId":"%s"}}`
	tests := []struct {
		name       string
		meanwhile  func(o *openclawtest.Odd, run string)
		list       func(run string) string
		open, gone int
	}{
		{"a new one", func(o *openclawtest.Odd, run string) {
			o.Send(`{"type":"event","event":"exec.approval.requested","payload":` + fmt.Sprintf(ask, "b", run) + `}`)
		}, func(run string) string { return `[` + fmt.Sprintf(ask, "a", run) + `]` }, 2, 0},
		{"an answer", func(o *openclawtest.Odd, _ string) {
			o.Send(`{"type":"event","event":"exec.approval.resolved","payload":{"id":"c"}}`)
		}, func(run string) string {
			return `[` + fmt.Sprintf(ask, "a", run) + `,` + fmt.Sprintf(ask, "c", run) + `]`
		}, 1, 0},
		{"no list", func(*openclawtest.Odd, string) {}, func(string) string { return `{"pending":{}}` }, 1, 0},
		{"an empty one", func(*openclawtest.Odd, string) {}, func(string) string { return `{"pending":[]}` }, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := ""
			script := func(r *openclawtest.Run) {
				run = r.ID
				r.Raw("exec.approval.requested", fmt.Sprintf(ask, "a", r.ID))
				r.Hold(nil)
			}
			odd := func(o *openclawtest.Odd) bool {
				if o.Method != "exec.approval.list" || run == "" {
					return false
				}
				tt.meanwhile(o, run)
				time.Sleep(time.Second) // it is heard of first
				o.Send(`{"type":"res","id":"` + o.ID + `","ok":true,"payload":` + tt.list(run) + `}`)
				return true
			}
			play(t, with{gateway: openclawtest.Config{Script: script, Odd: odd}}, func(r *rig) {
				a := &asked{}
				r.answer = a.answer(r)
				id := r.open()
				r.later("session/prompt", says(id, "hi"))
				r.gw.Cut()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if a.open != tt.open || a.gone != tt.gone {
					t.Errorf("%d are open and %d withdrawn, want %d and %d", a.open, a.gone, tt.open, tt.gone)
				}
			})
		})
	}
}

// TestPermission_TooLate has a yes that the gateway has not heard of when the
// turn is cancelled: it is no yes any more.
func TestPermission_TooLate(t *testing.T) {
	for range 8 { // the order of two goroutines
		play(t, with{gateway: openclawtest.Config{Script: func(r *openclawtest.Run) { r.Exec("rm", "allow-once", "deny") }}}, func(r *rig) {
			r.answer = func(context.Context, json.RawMessage) (any, error) {
				r.gw.Shut(true)
				return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "allow-once"}}, nil
			}
			id := r.open()
			answer := r.later("session/prompt", says(id, "hi"))
			r.cancel(id)
			if out, err := answer(); err != nil || out["stopReason"] != "cancelled" {
				t.Errorf("answer %v, %v", out, err)
			}
			r.gw.Shut(false)
			time.Sleep(10 * time.Second)
			for _, q := range r.gw.Requests("exec.approval.resolve") {
				if strings.Contains(string(q.Params), "allow") {
					t.Errorf("the gateway was told %s", q.Params)
				}
			}
			if n := r.gw.Running(); n != 0 {
				t.Errorf("%d runs go on", n)
			}
		})
	}
}

// TestObserved_Many has a gateway that begins runs and ends none.
func TestObserved_Many(t *testing.T) {
	play(t, with{}, func(r *rig) {
		id := r.open()
		for i := range 300 {
			r.gw.Event("agent", fmt.Sprintf(`{"runId":"r%d","sessionKey":"agent:main:acp-bridge:%s","stream":"tool","data":{"phase":"start","toolCallId":"c%d","name":"read"}}`, i, id, i))
		}
		open := 0
		for _, l := range r.told() {
			switch {
			case strings.HasPrefix(l, "call "):
				open++
			case strings.HasPrefix(l, "done "):
				open--
			}
		}
		if open != 64 {
			t.Errorf("%d calls are open, want 64", open)
		}
	})
}
