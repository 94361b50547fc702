package acp1

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

func domainCause(err error, cause *domain.Cause) bool { return errors.Is(err, cause) }

func TestPrompt_Content(t *testing.T) {
	blob := base64.StdEncoding.EncodeToString([]byte("\x00\x01bytes"))
	cases := []struct {
		name, prompt string
		lenient      bool
		senses       bool           // pictures and sounds were offered
		want         []domain.Block // nil when refused
		says         string
	}{
		{name: "a string", prompt: `"hi <b>"`, want: []domain.Block{domain.Text{Text: "hi <b>"}}},
		{name: "a text", prompt: `[{"type":"text","text":"a\nb"}]`, want: []domain.Block{domain.Text{Text: "a\nb"}}},
		{name: "a text without a type", prompt: `[{"text":"a"}]`, want: []domain.Block{domain.Text{Text: "a"}}},
		{name: "malformed annotations", prompt: `[{"type":"text","text":"a","annotations":7,"_meta":[]}]`, want: []domain.Block{domain.Text{Text: "a"}}},
		{name: "a text resource", prompt: `[{"type":"resource","resource":{"uri":"file:///n.md","mimeType":"text/markdown","text":"# N"}}]`,
			want: []domain.Block{domain.Resource{URI: "file:///n.md", MIME: "text/markdown", Text: "# N"}}},
		{name: "an empty text resource", prompt: `[{"type":"resource","resource":{"uri":"u","text":""}}]`, want: []domain.Block{domain.Resource{URI: "u"}}},
		{name: "a blob", prompt: `[{"type":"resource","resource":{"uri":"u","mimeType":5,"blob":"` + blob + `"}}]`,
			want: []domain.Block{domain.Resource{URI: "u", Blob: []byte("\x00\x01bytes"), Binary: true}}},
		{name: "an empty blob", prompt: `[{"type":"resource","resource":{"uri":"u","blob":""}}]`,
			want: []domain.Block{domain.Resource{URI: "u", Blob: []byte{}, Binary: true}}},
		{name: "a link", prompt: `[{"type":"resource_link","uri":"zed:///x?y","name":"文 件","title":"T","description":"D","mimeType":"text/html","size":9000}]`,
			want: []domain.Block{domain.Link{URI: "zed:///x?y", Name: "文 件", Title: "T", Description: "D", MIME: "text/html", Size: 9000}}},
		{name: "a link with malformed optionals", prompt: `[{"type":"resource_link","uri":"u","name":"n","size":"big","title":null}]`,
			want: []domain.Block{domain.Link{URI: "u", Name: "n"}}},
		{name: "several in order", prompt: `[{"type":"text","text":""},{"type":"resource_link","uri":"u","name":"n"},{"type":"text","text":"b"}]`,
			want: []domain.Block{domain.Text{}, domain.Link{URI: "u", Name: "n"}, domain.Text{Text: "b"}}},
		{name: "text of any type in zeroclaw", prompt: `[{"type":"note","text":"a"}]`, lenient: true, want: []domain.Block{domain.Text{Text: "a"}}},
		{name: "a resource without a uri in zeroclaw", prompt: `[{"type":"resource","resource":{"text":"a"}}]`, lenient: true,
			want: []domain.Block{domain.Resource{Text: "a"}}},
		{name: "a link without a name in zeroclaw", prompt: `[{"type":"resource_link","uri":"file:///a/b.go"}]`, lenient: true,
			want: []domain.Block{domain.Link{URI: "file:///a/b.go", Name: "b.go"}}},

		{name: "a picture", prompt: `[{"type":"image","mimeType":"image/PNG","data":"aGk=","uri":"file:///a.png"}]`, senses: true,
			want: []domain.Block{domain.Image{MIME: "image/png", Data: []byte("hi"), URI: "file:///a.png"}}},
		{name: "a sound", prompt: `[{"type":"audio","mimeType":"audio/wav","data":"aGk="}]`, senses: true,
			want: []domain.Block{domain.Audio{MIME: "audio/wav", Data: []byte("hi")}}},
		{name: "a picture of no type", prompt: `[{"type":"image","data":"aGk="}]`, senses: true, says: "mimeType is required"},
		{name: "a picture of another type", prompt: `[{"type":"image","mimeType":"text/html","data":"aGk="}]`, senses: true, says: `mimeType of an image block must begin with "image/"`},
		{name: "a sound of half a type", prompt: `[{"type":"audio","mimeType":"audio/","data":"aGk="}]`, senses: true, says: `must begin with "audio/"`},
		{name: "a picture without data", prompt: `[{"type":"image","mimeType":"image/png"}]`, senses: true, says: "data is required"},
		{name: "an empty picture", prompt: `[{"type":"image","mimeType":"image/png","data":""}]`, senses: true, says: "data is empty"},
		{name: "a picture that is no base64", prompt: `[{"type":"image","mimeType":"image/png","data":"a b"}]`, senses: true, says: "data is not padded standard base64"},
		{name: "a picture that is no string", prompt: `[{"type":"image","mimeType":"image/png","data":5}]`, senses: true, says: "data must be a string"},

		{name: "missing", prompt: ``, says: "prompt is required"},
		{name: "null", prompt: `null`, says: "prompt must be"},
		{name: "a number", prompt: `5`, says: "prompt must be"},
		{name: "an object", prompt: `{"type":"text","text":"a"}`, says: "prompt must be"},
		{name: "empty", prompt: `[]`, says: "prompt is empty"},
		{name: "an empty string", prompt: `""`, says: "prompt is empty"},
		{name: "blank", prompt: `[{"type":"text","text":" \n\t"}]`, says: "prompt is empty"},
		{name: "a null block", prompt: `[null]`, says: "prompt[0]: a content block must be an object"},
		{name: "a bare string", prompt: `["hi"]`, says: "prompt[0]: a content block must be an object"},
		{name: "no type", prompt: `[{"data":"x"}]`, says: "type is required"},
		{name: "a null type", prompt: `[{"type":null,"text":"a"}]`, says: "type must be a string"},
		{name: "an unknown type", prompt: `[{"type":"text","text":"a"},{"type":"hologram","data":"x"}]`, says: `prompt[1]: type "hologram"`},
		{name: "a text that is none", prompt: `[{"type":"text","text":5}]`, says: "text must be a string"},
		{name: "an image", prompt: `[{"type":"image","mimeType":"image/png","data":"aGk="}]`, says: "promptCapabilities.image is false"},
		{name: "audio", prompt: `[{"type":"audio","mimeType":"audio/wav","data":"aGk="}]`, says: "promptCapabilities.audio is false"},
		{name: "an image in zeroclaw", prompt: `[{"type":"image","data":"aGk="}]`, lenient: true, says: "image"},
		{name: "a link without a name", prompt: `[{"type":"resource_link","uri":"u"}]`, says: "name is required"},
		{name: "a link without a uri", prompt: `[{"type":"resource_link","name":"n"}]`, says: "uri is required"},
		{name: "a resource that is none", prompt: `[{"type":"resource","resource":"x"}]`, says: "resource must be an object"},
		{name: "a resource without a uri", prompt: `[{"type":"resource","resource":{"text":"a"}}]`, says: "resource.uri is required"},
		{name: "a resource without content", prompt: `[{"type":"resource","resource":{"uri":"u","text":5}}]`, says: "needs a text or a blob"},
		{name: "a blob that is no string", prompt: `[{"type":"resource","resource":{"uri":"u","blob":5}}]`, says: "resource.blob must be a string"},
		{name: "broken base64", prompt: `[{"type":"resource","resource":{"uri":"u","blob":"@@@"}}]`, says: "base64"},
		{name: "base64 without padding", prompt: `[{"type":"resource","resource":{"uri":"u","blob":"aGk"}}]`, says: "base64"},
		{name: "base64 of the url alphabet", prompt: `[{"type":"resource","resource":{"uri":"u","blob":"-_-_"}}]`, says: "base64"},
		{name: "base64 with a line break", prompt: `[{"type":"resource","resource":{"uri":"u","blob":"aGVs\nbG8="}}]`, says: "line breaks"},
		{name: "base64 with trailing bits", prompt: `[{"type":"resource","resource":{"uri":"u","blob":"aGl="}}]`, says: "base64"},
		{name: "a good blob before a bad one", prompt: `[{"type":"resource","resource":{"uri":"a","blob":"aGk="}},{"type":"resource","resource":{"uri":"b","blob":"@@@"}}]`,
			says: "prompt[1]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := contentReader{lenient: c.lenient, images: c.senses, audio: c.senses, maxBlobs: 1000}
			got, err := r.prompt([]byte(c.prompt))
			if c.want == nil {
				if err == nil {
					t.Fatalf("read %v", got)
				}
				if !domain.HasCode(err, domain.InvalidArgument) {
					t.Errorf("error %v is not invalid argument", err)
				}
				contains(t, err.Error(), c.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("read %#v\nwant %#v", got, c.want)
			}
		})
	}
}

func TestPrompt_BlobLimits(t *testing.T) {
	part := func(n int) string {
		return `{"type":"resource","resource":{"uri":"u","blob":"` + base64.StdEncoding.EncodeToString(make([]byte, n)) + `"}}`
	}
	cases := []struct {
		name  string
		sizes []int
		total int
		says  string
	}{
		{"one at the limit", []int{domain.MaxBlobBytes}, 32 << 20, ""},
		{"one above the limit", []int{domain.MaxBlobBytes + 1}, 32 << 20, "the limit is 10485760"},
		{"together at the limit", []int{60, 40}, 100, ""},
		{"together above the limit", []int{60, 41}, 100, "more than 100 bytes together"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var parts []string
			for _, n := range c.sizes {
				parts = append(parts, part(n))
			}
			r := contentReader{maxBlobs: c.total}
			_, err := r.prompt([]byte("[" + strings.Join(parts, ",") + "]"))
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("read")
			}
			contains(t, err.Error(), c.says)
		})
	}
}

// FuzzPrompt: whatever JSON comes, the reader ends, and what it accepts is
// usable and within the limits.
func FuzzPrompt(f *testing.F) {
	for _, s := range []string{
		`"hi"`, `[{"type":"text","text":"a"}]`, `[{"text":"a"},null]`, `[{"type":"resource","resource":{"uri":"u","blob":"aGk="}}]`,
		`[{"type":"resource_link","uri":"u","name":"n","size":1e400}]`, `[{"type":"image"}]`, `{"a":[`, `[{"type":"\u0074ext","text":"\ud83d\ude00"}]`, ``,
	} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, lenient bool) {
		r := contentReader{lenient: lenient, images: true, audio: true, maxBlobs: 64}
		blocks, err := r.prompt(raw)
		if err != nil {
			if !domain.HasCode(err, domain.InvalidArgument) {
				t.Fatalf("error %v has no code", err)
			}
			return
		}
		total := 0
		for _, b := range blocks {
			if res, ok := b.(domain.Resource); ok {
				total += len(res.Blob)
			}
		}
		if !(domain.Prompt{Blocks: blocks}).Usable() || total > 64 {
			t.Fatalf("accepted %d blocks with %d bytes of blobs", len(blocks), total)
		}
	})
}

func TestPrompt_Result(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		id := r.newSession()
		m, before := r.answer(r.prompt(id, "hi"))
		want(t, "result", m.Result, `{"stopReason":"end_turn","_meta":{"berth":{"sessionId":"`+id+`","turnId":"t1","content":"hello",`+
			`"usage":{"totalTokens":10,"inputTokens":7,"outputTokens":3}}}}`)
		if n := len(updatesIn(before)); n != 1 {
			t.Errorf("%d updates before the response, want 1", n)
		}
		r.quiet()
	})
	openZeroclaw(t, newWorld(), func(r *rig) {
		id := r.ok(methodNew, `{}`).text("sessionId")
		m, _ := r.answer(r.prompt(id, "hi"))
		want(t, "result", m.Result, `{"sessionId":"`+id+`","stopReason":"end_turn","content":"hello","_meta":{"berth":{"turnId":"t1",`+
			`"usage":{"totalTokens":10,"inputTokens":7,"outputTokens":3}}}}`)
	})
}

func TestPrompt_LongContentIsCut(t *testing.T) {
	w := newWorld()
	w.turn = func(context.Context, ports.Client, domain.SessionID, domain.Prompt) (domain.TurnOutcome, error) {
		return domain.TurnOutcome{Stop: domain.StopEndTurn, Text: strings.Repeat("\x01", 12<<20)}, nil
	}
	open(t, w, func(r *rig) {
		m, _ := r.answer(r.prompt(r.newSession(), "hi")) // the rig checks the length of the line
		contains(t, objectOf(m.Result).in("_meta").in("berth").text("content"), "bytes left out here]")
	})
}

func TestPrompt_Cancelled(t *testing.T) {
	cases := []struct {
		name, streamed, acp, zeroclaw string
	}{
		{"with text", "thinking", `"thinking"`, `"thinking\n\n[turn cancelled via client]"`},
		{"before the first token", "", ``, `"[turn cancelled via client]"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.turn = func(ctx context.Context, _ ports.Client, _ domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
				<-ctx.Done()
				return domain.TurnOutcome{Text: c.streamed}, errProvider
			}
			open(t, w, func(r *rig) {
				id := r.newSession()
				p := r.prompt(id, "go")
				r.quiet() // the turn runs
				r.notify("session/cancel", `{"sessionId":"`+id+`"}`)
				m, _ := r.answer(p)
				want(t, "stopReason", objectOf(m.Result)["stopReason"], `"cancelled"`)
				want(t, "content", objectOf(m.Result).in("_meta").in("berth")["content"], c.acp)
				r.quiet()
			})
			openZeroclaw(t, w, func(r *rig) {
				id := r.ok(methodNew, `{}`).text("sessionId")
				p := r.prompt(id, "go")
				r.quiet()
				if got := r.ok("session/cancel", `{"sessionId":"`+id+`"}`).String(); got != `{}` {
					t.Errorf("cancel as a request: %s", got)
				}
				m := r.lateAnswer(p)
				want(t, "stopReason", objectOf(m.Result)["stopReason"], `"cancelled"`)
				want(t, "content", objectOf(m.Result)["content"], c.zeroclaw)
			})
		})
	}
}

// A prompt and its cancel in one burst: the cancel always finds the turn.
func TestPrompt_CancelRightBehind(t *testing.T) {
	w := newWorld()
	w.turn = waits
	open(t, w, func(r *rig) {
		id := r.newSession()
		for range 200 {
			p := r.prompt(id, "go")
			r.notify("session/cancel", `{"sessionId":"`+id+`"}`)
			m, _ := r.answer(p)
			if got := objectOf(m.Result).text("stopReason"); got != "cancelled" {
				t.Fatalf("stopReason %q", got)
			}
			r.quiet()
		}
	})
}

func TestPrompt_Busy(t *testing.T) {
	cases := []struct {
		name     string
		busy     Busy
		zeroclaw bool
		code     int // 0 when it waits
	}{
		{"auto in acp waits", BusyAuto, false, 0},
		{"auto in zeroclaw is refused", BusyAuto, true, -32002},
		{"reject in acp", BusyReject, false, -31002},
		{"queue in zeroclaw", BusyQueue, true, 0},
		{"the zero setting is auto", "", false, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			release := make(chan struct{})
			w := newWorld()
			w.set = func(p *Params) { p.Busy = c.busy }
			w.turn = func(context.Context, ports.Client, domain.SessionID, domain.Prompt) (domain.TurnOutcome, error) {
				<-release
				return domain.TurnOutcome{Stop: domain.StopEndTurn}, nil
			}
			start := open
			if c.zeroclaw {
				start = openZeroclaw
			}
			start(t, w, func(r *rig) {
				release = make(chan struct{})
				id := r.ok(methodNew, `{"cwd":"/proj"}`).text("sessionId")
				first := r.prompt(id, "one")
				second := r.prompt(id, "two")
				if c.code != 0 {
					m, _ := r.answer(second)
					if m.Error == nil || m.Error.Code != c.code {
						t.Errorf("second prompt: %s %v, want error %d", m.Result, m.Error, c.code)
					} else {
						want(t, "data", m.Error.Data, `{"reason":"SESSION_BUSY","sessionId":"`+id+`"}`)
					}
				}
				close(release)
				r.answer(first)
				if c.code == 0 {
					m, came := r.passed[second] // of two that end at once either is the first
					if !came {
						m, _ = r.answer(second)
					}
					if m.Error != nil {
						t.Errorf("second prompt: %v", m.Error)
					}
				}
			})
		})
	}
}

// A request that is cancelled by its id ends like one cancelled by session.
func TestPrompt_CancelRequest(t *testing.T) {
	w := newWorld()
	w.turn = waits
	open(t, w, func(r *rig) {
		p := r.prompt(r.newSession(), "go")
		r.notify("$/cancel_request", `{"requestId":`+p+`}`)
		m, _ := r.answer(p)
		want(t, "stopReason", objectOf(m.Result)["stopReason"], `"cancelled"`)
	})
}

func TestPrompt_Errors(t *testing.T) {
	cases := []struct {
		name string
		err  error
		code int
		data string
		says string
	}{
		{"no key", domain.Errorf(domain.AuthRequired, "the key was refused"), -32000, `{"reason":"AUTH_REQUIRED","authMethods":["local"],"sessionId":"$"}`,
			"Authentication required: the key was refused"},
		{"already in these words", domain.Errorf(domain.AuthRequired, "authentication required: set X"), -32000,
			`{"reason":"AUTH_REQUIRED","authMethods":["local"],"sessionId":"$"}`, "authentication required: set X"},
		{"provider down", fmt.Errorf("step: %w", domain.WrapError(domain.Unavailable, errProvider, "the provider cannot be reached")), -32603,
			`{"reason":"PROVIDER_ERROR","sessionId":"$"}`, "the provider cannot be reached"},
		{"uncoded", errProvider, -32603, `{"reason":"INTERNAL_ERROR"}`, "Internal error"},
		{"its own session", domain.NoSession("other"), -32002, `{"reason":"SESSION_NOT_FOUND","sessionId":"other"}`, "other"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.turn = func(context.Context, ports.Client, domain.SessionID, domain.Prompt) (domain.TurnOutcome, error) {
				return domain.TurnOutcome{}, c.err
			}
			open(t, w, func(r *rig) {
				id := r.newSession()
				e := r.fails(c.code, "session/prompt", `{"sessionId":"`+id+`","prompt":"hi"}`)
				want(t, "data", e.Data, strings.ReplaceAll(c.data, "$", id))
				contains(t, e.Message, c.says)
				if strings.Contains(e.Message+string(e.Data), "10.0.0.7") {
					t.Errorf("the cause leaked: %s %s", e.Message, e.Data)
				}
				w.turn = nil
				r.ok("session/prompt", `{"sessionId":"`+id+`","prompt":"again"}`)
			})
		})
	}
}

// What a client's tracing sends along is handed on as it came; what is no
// string is nothing.
func TestPrompt_Trace(t *testing.T) {
	cases := []struct {
		name, meta string
		want       domain.Trace
	}{
		{"none", `null`, domain.Trace{}},
		{"both", `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1,b=2","other":{}}`,
			domain.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=1,b=2"}},
		{"no strings", `{"traceparent":5,"tracestate":[]}`, domain.Trace{}},
		{"no object", `"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, domain.Trace{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			open(t, w, func(r *rig) {
				r.ok("session/prompt", `{"sessionId":"`+r.newSession()+`","prompt":"go","_meta":`+c.meta+`}`)
			})
			if got := w.prompts[0].Trace; got != c.want {
				t.Errorf("trace %+v, want %+v", got, c.want)
			}
		})
	}
}
