package openclaw_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/openclaw"
	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

// TestHalves has a gateway that cuts texts in the middle of a character: what
// it says next has the character, and nothing is lost over it.
func TestHalves(t *testing.T) {
	play(t, with{gateway: openclawtest.Config{Script: func(r *openclawtest.Run) {
		r.Raw("agent", `{"stream":"assistant","data":{"delta":"a\ud83d","text":"a\ud83d","itemId":"i"}}`)
		r.Raw("agent", `{"stream":"assistant","data":{"delta":"\ude00b","text":"a😀b","itemId":"i"}}`)
		r.Raw("agent", `{"stream":"thinking","data":{"delta":"t\ud83d","text":"t\ud83d"}}`)
		r.Raw("agent", `{"stream":"thinking","data":{"delta":"\ude00","text":"t😀"}}`)
		r.Raw("agent", `{"stream":"tool","data":{"phase":"start","toolCallId":"c","name":"read","args":{"x":"\ud83d"}}}`)
		r.Raw("chat", `{"state":"final","message":{"role":"assistant","content":"cut \ud83d"}}`)
	}}}, func(r *rig) {
		id := r.open()
		r.call("session/prompt", says(id, "hi"))
		want := []string{"say a😀b", "think t😀", "call c read read", "say cut \uFFFD", "done c completed"}
		told := slices.DeleteFunc(r.told(), func(l string) bool { return strings.HasPrefix(l, "usage ") })
		if d := cmp.Diff(want, told); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
		if n := r.gw.Dials(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestFlapping has gateways that let the bridge in and end the connection at
// once, or upon each request. They are not asked without end, nor all the time.
func TestFlapping(t *testing.T) {
	t.Run("it says nonsense", func(t *testing.T) {
		play(t, with{gateway: openclawtest.Config{Odd: func(o *openclawtest.Odd) bool { o.Send("{"); return true }}}, func(r *rig) {
			r.begin()
			time.Sleep(5 * time.Minute)
			if n := r.gw.Dials(); n < 20 || n > 130 {
				t.Errorf("%d connections in 5 minutes", n)
			}
		})
	})
	for _, method := range []string{"sessions.describe", "chat.send", "chat.history"} {
		t.Run("it ends at "+method, func(t *testing.T) {
			armed := false
			odd := func(o *openclawtest.Odd) bool {
				if armed && o.Method == method {
					o.Cut()
					return true
				}
				return false
			}
			play(t, with{gateway: openclawtest.Config{Odd: odd}}, func(r *rig) {
				id := r.open()
				armed = true
				ask := map[string]string{"chat.send": "session/prompt", "sessions.describe": "session/load", "chat.history": "session/load"}[method]
				params := says(id, "hi")
				if ask == "session/load" {
					params = `{"sessionId":"` + id + `","cwd":"/ws","mcpServers":[]}`
				}
				if _, err := r.try(ask, params); code(err) != -32603 || !strings.Contains(err.Error(), "lost") {
					t.Errorf("error %v", err)
				}
				if n := r.gw.Dials(); n > 8 {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

// TestSilent has a gateway that does not answer.
func TestSilent(t *testing.T) {
	for _, method := range []string{"sessions.create", "sessions.describe", "commands.list", "agents.list"} {
		t.Run(method, func(t *testing.T) {
			play(t, with{gateway: openclawtest.Config{Odd: func(o *openclawtest.Odd) bool { return o.Method == method }}}, func(r *rig) {
				r.begin()
				_, err := r.try("session/new", `{"cwd":"/ws","mcpServers":[]}`)
				if method == "commands.list" && err != nil || method != "commands.list" && (code(err) != -32603 || !strings.Contains(err.Error(), "did not answer")) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// stuck is a gateway that reads nothing more once it is told to.
type stuck struct {
	jsonrpc.Frames
	full, over chan struct{}
}

func (s *stuck) Write(frame []byte) error {
	if strings.Contains(string(frame), `"chat.send"`) {
		close(s.full)
		<-s.over
		return context.Canceled
	}
	return s.Frames.Write(frame)
}

func (s *stuck) Close() error {
	select {
	case <-s.over:
	default:
		close(s.over)
	}
	return s.Frames.Close()
}

// TestCancel_Stuck cancels a prompt that the gateway is slow to read. It is
// answered at once.
func TestCancel_Stuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, first := make(chan struct{}), true
		r := newRig(t, with{bridge: func(c *openclaw.Config) {
			dial := c.Dial
			c.Dial = func(ctx context.Context) (jsonrpc.Frames, error) {
				f, err := dial(ctx)
				if err == nil && first {
					first = false
					f = &stuck{f, full, make(chan struct{})}
				}
				return f, err
			}
		}})
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		<-full
		before := time.Now()
		if err := r.conn.Notify(t.Context(), "session/cancel", json.RawMessage(`{"sessionId":"`+id+`"}`)); err != nil {
			t.Fatal(err)
		}
		if out, err := answer(); err != nil || out["stopReason"] != "cancelled" {
			t.Errorf("answer %v, %v", out, err)
		}
		if d := time.Since(before); d != 0 {
			t.Errorf("it took %s", d)
		}
		_ = r.end()
		r.gw.Close()
	})
}

// TestLog_Hostile has a gateway whose words would make lines of their own in a
// log, or move the cursor of a terminal.
func TestLog_Hostile(t *testing.T) {
	odd := func(o *openclawtest.Odd) bool {
		if o.Method != "commands.list" {
			return false
		}
		o.Send(`{"type":"res","id":"` + o.ID + `","ok":false,"error":{"code":"X","message":"a\nbridge: all is well\u001b[2J` + strings.Repeat("long ", 5000) + `"}}`)
		return true
	}
	play(t, with{gateway: openclawtest.Config{Odd: odd}}, func(r *rig) {
		r.open()
		for _, l := range r.logged {
			if strings.ContainsAny(l, "\n\x1b") || len(l) > 2100 {
				t.Errorf("logged %.100q of %d bytes", l, len(l))
			}
		}
	})
}
