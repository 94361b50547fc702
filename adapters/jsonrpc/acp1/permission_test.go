package acp1

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

func editRequest(id domain.SessionID) domain.PermissionRequest {
	return domain.PermissionRequest{
		Session: id, Turn: "t1", Reason: "Edits need your consent.",
		Call: domain.CallOpened{
			ID: "c1", Name: "edit_file", Title: "Edit total.go", Kind: domain.KindEdit, Status: domain.CallPending,
			Content:   []domain.CallContent{domain.Diff{Path: "/proj/total.go", OldText: "a", NewText: "b"}},
			Locations: []domain.Location{{Path: "/proj/total.go", Line: 3}}, RawInput: []byte(`{"path":"total.go"}`),
		},
		Options: []domain.PermissionOption{
			{ID: "allow-once", Name: "Allow", Kind: domain.AllowOnce}, {ID: "reject-once", Name: "Reject", Kind: domain.RejectOnce},
		},
	}
}

func TestPermission_Request(t *testing.T) {
	var got domain.Decision
	w := newWorld()
	w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
		var err error
		got, err = c.Ask(ctx, editRequest(id))
		return domain.TurnOutcome{Stop: domain.StopEndTurn}, err
	}
	open(t, w, func(r *rig) {
		id := r.newSession()
		p := r.prompt(id, "go")
		m := r.next()
		if m.Method != methodPermission || m.ID != `"zc-out-1"` {
			t.Fatalf("sent %s with id %s", m.Method, m.ID)
		}
		want(t, "params", m.Params, `{"sessionId":"`+id+`","toolCall":{"toolCallId":"c1","title":"Edit total.go","name":"edit_file",`+
			`"kind":"edit","status":"pending","content":[{"type":"content","content":{"type":"text","text":"Edits need your consent."}},`+
			`{"type":"diff","path":"/proj/total.go","oldText":"a","newText":"b"}],"locations":[{"path":"/proj/total.go","line":3}],`+
			`"rawInput":{"path":"total.go"}},"options":[{"optionId":"allow-once","name":"Allow","kind":"allow_once"},`+
			`{"optionId":"reject-once","name":"Reject","kind":"reject_once"}]}`)
		r.respond(m.ID, `{"outcome":{"outcome":"selected","optionId":"allow-once","extra":1},"_meta":{}}`)
		r.answer(p)
	})
	if got != (domain.Decision{Outcome: domain.Selected, Option: "allow-once"}) {
		t.Errorf("decision %+v", got)
	}
}

func TestPermission_Decision(t *testing.T) {
	cases := []struct {
		name, result string
		zeroclaw     bool
		want         domain.Outcome
	}{
		{"selected", `{"outcome":{"outcome":"selected","optionId":"reject-once"}}`, false, domain.Selected},
		{"cancelled", `{"outcome":{"outcome":"cancelled"}}`, false, domain.Withdrawn},
		{"cancelled in zeroclaw", `{"outcome":{"outcome":"cancelled"}}`, true, domain.Unanswered},
		{"an option that was not offered", `{"outcome":{"outcome":"selected","optionId":"root"}}`, false, domain.Unanswered},
		{"an option by its kind", `{"outcome":{"outcome":"selected","optionId":"allow_once"}}`, false, domain.Unanswered},
		{"no option", `{"outcome":{"outcome":"selected"}}`, false, domain.Unanswered},
		{"a null option", `{"outcome":{"outcome":"selected","optionId":null}}`, false, domain.Unanswered},
		{"a bare word", `{"outcome":"allow_once"}`, false, domain.Unanswered},
		{"an unknown outcome", `{"outcome":{"outcome":"approved","optionId":"allow-once"}}`, false, domain.Unanswered},
		{"null", `null`, false, domain.Unanswered},
		{"a list", `[]`, false, domain.Unanswered},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			on := &connection{}
			a := &agreement{}
			if c.zeroclaw {
				a.dialect = jsonrpc.Zeroclaw
			}
			on.agreed.Store(a)
			got := (&client{on: on}).decision([]byte(c.result), editRequest("s").Options)
			if got.Outcome != c.want || (got.Outcome == domain.Unanswered) != (got.Note != "") {
				t.Errorf("decision %+v, want outcome %d", got, c.want)
			}
		})
	}
}

// Nobody answers: the question ends by itself, and the client is told.
func TestPermission_Timeout(t *testing.T) {
	w := newWorld()
	w.set = func(p *Params) { p.Limits.SessionTimeout = time.Minute }
	asked := make(chan domain.Decision, 1)
	w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
		d, err := c.Ask(ctx, editRequest(id))
		asked <- d
		return domain.TurnOutcome{Stop: domain.StopEndTurn}, err
	}
	open(t, w, func(r *rig) {
		p := r.prompt(r.newSession(), "go")
		q := r.next()
		time.Sleep(time.Minute + time.Second) // in the bubble
		withdrawn := r.next()
		want(t, "params", withdrawn.Params, `{"requestId":`+string(q.ID)+`}`)
		m, _ := r.answer(p)
		want(t, "stopReason", objectOf(m.Result)["stopReason"], `"end_turn"`)
		if d := <-asked; d.Outcome != domain.Unanswered || !strings.Contains(d.Note, "within 1m0s") {
			t.Errorf("decision %+v", d)
		}
		r.respond(q.ID, `{"outcome":{"outcome":"selected","optionId":"allow-once"}}`) // too late
		r.quiet()
	})
}

// withFiles runs fn as a turn that uses the client's files.
func withFiles(t *testing.T, capabilities string, fn func(context.Context, ports.Files, domain.SessionID) error, script func(*rig)) error {
	t.Helper()
	var failed error
	w := newWorld()
	w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
		files, ok := c.Files()
		if !ok {
			return domain.TurnOutcome{}, errors.New("no files")
		}
		failed = fn(ctx, files, id)
		return domain.TurnOutcome{Stop: domain.StopEndTurn}, nil
	}
	run(t, w, func(r *rig) {
		r.initialize(`{"fs":` + capabilities + `}`)
		p := r.prompt(r.newSession(), "go")
		script(r)
		if m, _ := r.answer(p); m.Error != nil {
			t.Errorf("prompt: %v", m.Error)
		}
		synctest.Wait()
	})
	return failed
}

func TestFiles_Read(t *testing.T) {
	cases := []struct {
		name, answer string
		text         string
		code         domain.Code
		says         string // "" when it succeeds
	}{
		{"text", `"result":{"content":"a\r\nb","_meta":{},"extra":1}`, "a\r\nb", 0, ""},
		{"empty", `"result":{"content":""}`, "", 0, ""},
		{"null", `"result":null`, "", domain.Unavailable, "has no content"},
		{"no content", `"result":{}`, "", domain.Unavailable, "has no content"},
		{"no such file", `"error":{"code":-32002,"message":"gone"}`, "", domain.NotFound, "has no file /proj/a: gone"},
		{"not served", `"error":{"code":-32601,"message":"no"}`, "", domain.Unsupported, "does not serve fs/read_text_file"},
		{"refused", `"error":{"code":-32603,"message":"outside the project"}`, "", domain.Unavailable, "outside the project"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got string
			err := withFiles(t, `{"readTextFile":true}`, func(ctx context.Context, f ports.Files, id domain.SessionID) (err error) {
				got, err = f.ReadText(ctx, id, "/proj/a")
				return err
			}, func(r *rig) {
				m := r.next()
				if m.Method != methodReadFile || !strings.HasSuffix(string(m.Params), `,"path":"/proj/a"}`) {
					t.Errorf("sent %s %s", m.Method, m.Params)
				}
				r.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + c.answer + `}`)
			})
			if got != c.text || (err == nil) != (c.says == "") || c.says != "" && domain.CodeOf(err) != c.code {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil {
				contains(t, err.Error(), c.says)
			}
		})
	}
}

func TestFiles_Write(t *testing.T) {
	for _, result := range []string{`{}`, `null`, `{"_meta":{}}`, `[1]`} {
		err := withFiles(t, `{"writeTextFile":true}`, func(ctx context.Context, f ports.Files, id domain.SessionID) error {
			return f.WriteText(ctx, id, "/proj/ü", "a\n\"b\"")
		}, func(r *rig) {
			m := r.next()
			if m.Method != methodWriteFile || !strings.HasSuffix(string(m.Params), `,"path":"/proj/ü","content":"a\n\"b\""}`) {
				t.Errorf("sent %s %s", m.Method, m.Params)
			}
			r.respond(m.ID, result)
		})
		if err != nil {
			t.Errorf("result %s: %v", result, err)
		}
	}
}

// Nothing is sent for what the client does not offer or what cannot work.
func TestFiles_NotSent(t *testing.T) {
	cases := []struct {
		name, capabilities string
		use                func(context.Context, ports.Files, domain.SessionID) error
		code               domain.Code
	}{
		{"a write to a reader", `{"readTextFile":true}`, func(ctx context.Context, f ports.Files, id domain.SessionID) error {
			return f.WriteText(ctx, id, "/a", "")
		}, domain.Unsupported},
		{"a read from a writer", `{"writeTextFile":true,"readTextFile":"yes"}`, func(ctx context.Context, f ports.Files, id domain.SessionID) error {
			_, err := f.ReadText(ctx, id, "/a")
			return err
		}, domain.Unsupported},
		{"a relative path", `{"readTextFile":true}`, func(ctx context.Context, f ports.Files, id domain.SessionID) error {
			_, err := f.ReadText(ctx, id, "a")
			return err
		}, domain.InvalidArgument},
		{"more than a line may have", `{"writeTextFile":true}`, func(ctx context.Context, f ports.Files, id domain.SessionID) error {
			return f.WriteText(ctx, id, "/a", strings.Repeat("\x01", 2<<20))
		}, domain.TooLarge},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := withFiles(t, c.capabilities, c.use, func(*rig) {})
			if !domain.HasCode(err, c.code) {
				t.Errorf("got %v, want %v", err, c.code)
			}
		})
	}
}
