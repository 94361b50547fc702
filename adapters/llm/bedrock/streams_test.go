package bedrock

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest/wire"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

const claude = "us.anthropic.claude-sonnet-4-20250514-v1:0"

// canned answers every request with the same bytes, without a network.
type canned struct {
	body string
	step func(io.Reader) io.Reader // nil for all at once
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	var r io.Reader = strings.NewReader(c.body)
	if c.step != nil {
		r = c.step(r)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(r)}, nil
}

// over returns a model over a transport.
func over(t testing.TB, rt http.RoundTripper, name string) *Model {
	t.Helper()
	p := llm.Provider{
		Client: llm.NewClient(llm.HTTPConfig{Transport: rt, Now: func() time.Time { return time.Unix(0, 0) }}),
		ProviderConfig: llm.ProviderConfig{
			Name: "fake", BaseURL: BaseURL("us-east-1"), APIKey: func() (string, error) { return "a-key-of-the-tests", nil },
		},
	}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: name}, Tools: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// told is one reply in a line: texts bare, thoughts in stars, calls with their
// arguments, usage, how it ended.
func told(ctx context.Context, m *Model, req domain.ModelRequest) (line string, opaque *domain.Opaque, err error) {
	var b strings.Builder
	for ev, failed := range m.Stream(ctx, req) {
		if failed != nil {
			return b.String(), nil, failed
		}
		switch ev := ev.(type) {
		case domain.TextDelta:
			b.WriteString(ev.Text + " ")
		case domain.ThoughtDelta:
			b.WriteString("*" + ev.Text + "* ")
		case domain.CallRequested:
			fmt.Fprintf(&b, "%s:%s%s ", ev.Call.ProviderID, ev.Call.Name, ev.Call.Args)
		case domain.UsageReported:
			fmt.Fprintf(&b, "%d+%d(%d,%d) ", ev.Usage.Input, ev.Usage.Output, ev.Usage.CachedRead, ev.Usage.CachedWrite)
		case domain.Finish:
			b.WriteString("." + string(ev.Reason))
			opaque = ev.Opaque
		default:
			fmt.Fprintf(&b, "%T ", ev)
		}
	}
	return b.String(), opaque, nil
}

// The events of the tests.
func ev(name, payload string) string { return wire.Event(name, payload) }
func text(i int, s string) string {
	return ev("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"text":%s}}`, i, wire.JS(s)))
}

func think(i int, member, s string) string {
	return ev("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"reasoningContent":{%q:%s}}}`, i, member, wire.JS(s)))
}

func begin(i int, id, name string) string {
	return ev("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, i, id, name))
}

func args(i int, s string) string {
	return ev("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"toolUse":{"input":%s}}}`, i, wire.JS(s)))
}
func stop(i int) string      { return ev("contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, i)) }
func end(why string) string  { return ev("messageStop", `{"stopReason":"`+why+`"}`) }
func counts(s string) string { return ev("metadata", `{"usage":{`+s+`},"metrics":{"latencyMs":1}}`) }

// start is the beginning of all replies.
func start() string { return ev("messageStart", `{"role":"assistant","p":"abc"}`) }

// TestStreams is the table of what streams say.
func TestStreams(t *testing.T) {
	one := start() + text(0, "a") + stop(0)
	call := begin(0, "t1", "read_file") + args(0, `{"path":`) + args(0, `"x"}`) + stop(0)
	for _, c := range []struct {
		name string
		body string
		want string
		code domain.Code // with the words that follow, where it fails
		says string
	}{
		{"text", one + end("end_turn") + counts(`"inputTokens":3,"outputTokens":4,"totalTokens":7`), "a 3+4(0,0) .stop", 0, ""},
		{"text without a beginning", text(0, "a") + end("end_turn"), "a .stop", 0, ""},
		{"text of several blocks", start() + text(0, "a") + stop(0) + text(1, "b") + text(1, "") + stop(1) + end("end_turn"), "a b .stop", 0, ""},
		{"cached input is input", one + end("end_turn") + counts(`"inputTokens":3,"outputTokens":4,"cacheReadInputTokens":100,"cacheWriteInputTokens":20`), "a 123+4(100,20) .stop", 0, ""},
		{"no counts", one + end("end_turn"), "a .stop", 0, ""},
		{"counts of nothing", one + end("end_turn") + ev("metadata", `{"metrics":{}}`), "a .stop", 0, ""},
		{"counts that are none", one + end("end_turn") + ev("metadata", `{"usage":7}`), "a .stop", 0, ""},
		{"counts of other forms", one + end("end_turn") + counts(`"inputTokens":3.0,"outputTokens":"4","cacheReadInputTokens":-1`), "a 3+4(0,0) .stop", 0, ""},
		{"counts first", start() + counts(`"inputTokens":3,"outputTokens":4`) + text(0, "a") + end("end_turn"), "a 3+4(0,0) .stop", 0, ""},
		{"a broken frame behind the end", one + end("end_turn") + "rubbish that is no frame", "a .stop", 0, ""},
		{"an exception behind the end", one + end("end_turn") + wire.Exception("internalServerException", "late"), "a .stop", 0, ""},
		{"a stop sequence", one + end("stop_sequence"), "a .stop", 0, ""},
		{"at the limit", one + end("max_tokens"), "a .length", 0, ""},
		{"at the end of the window", one + end("model_context_window_exceeded"), "a .length", 0, ""},
		{"a guardrail", one + end("guardrail_intervened"), "a .refusal", 0, ""},
		{"a filter", one + end("content_filtered"), "a .refusal", 0, ""},
		{"a refusal", one + end("refusal"), "a .refusal", 0, ""},
		{"output nobody can read", one + end("malformed_model_output"), "a ", domain.Unavailable, "malformed_model_output"},
		{"a call nobody can read", one + end("malformed_tool_use") + counts(`"inputTokens":1,"outputTokens":2`), "a 1+2(0,0) ", domain.Unavailable, "malformed_tool_use"},
		{"a new reason", one + end("to be <continued>"), "a ", domain.Unavailable, `"tobecontinued"`},
		{"no reason", one + ev("messageStop", `{}`), "a ", domain.Unavailable, "end without a reason"},
		{"two ends", one + end("end_turn") + end("end_turn"), "a ", domain.Unavailable, "two of them"},
		{"two beginnings", start() + start(), "", domain.Unavailable, "two beginnings"},
		{"text behind the end", one + end("end_turn") + text(1, "b"), "a ", domain.Unavailable, "content behind its end"},
		{"thoughts", start() + think(0, "text", "hm") + think(0, "signature", "s") + stop(0) + text(1, "a") + end("end_turn"), "*hm* a .stop", 0, ""},
		{"a call", start() + call + end("tool_use"), `t1:read_file{"path":"x"} .calls`, 0, ""},
		{"a call at an end that is none of calls", start() + call + end("end_turn"), `t1:read_file{"path":"x"} .calls`, 0, ""},
		{"a call at the limit", start() + call + end("max_tokens"), ".length", 0, ""},
		{"a call of a filtered reply", start() + call + end("content_filtered"), ".refusal", 0, ""},
		{"a call without arguments", start() + begin(0, "t1", "list") + stop(0) + end("tool_use"), "t1:list{} .calls", 0, ""},
		{"a call that was not closed", start() + begin(0, "t1", "list") + args(0, "{}") + end("tool_use"), "", domain.Unavailable, "not whole"},
		{"a call without a name", start() + begin(0, "t1", "") + stop(0) + end("tool_use"), "", domain.Unavailable, "not whole"},
		{"a call that begins twice", start() + begin(0, "t1", "a") + begin(0, "t2", "b"), "", domain.Unavailable, "begins twice"},
		{"arguments of nothing", start() + args(0, "{}"), "", domain.Unavailable, "has not begun"},
		{"arguments behind their end", start() + call + args(0, "{}"), "", domain.Unavailable, "has not begun"},
		{"arguments that are no text", start() + begin(0, "t", "x") + ev("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"toolUse":{"input":{}}}}`), "", domain.Unavailable, "holds no text"},
		{"no call where one was told", one + end("tool_use"), "a ", domain.Unavailable, "calls none"},
		{"calls beside each other", start() + begin(0, "t1", "a") + begin(1, "t2", "b") + args(1, `{"n":2}`) + args(0, `{"n":1}`) + stop(1) + stop(0) + end("tool_use"), `t1:a{"n":1} t2:b{"n":2} .calls`, 0, ""},
		{"an index that comes again", start() + call + begin(0, "t2", "b") + stop(0) + end("tool_use"), `t1:read_file{"path":"x"} t2:b{} .calls`, 0, ""},
		{"halves of a character", start() + ev("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"\ud83d"}}`) + ev("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"\ude00!"}}`) + end("end_turn"), "\U0001F600! .stop", 0, ""},
		{"half a character", start() + ev("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"\ud83d"}}`) + stop(0) + end("end_turn"), "\uFFFD .stop", 0, ""},
		{"unknown events and deltas", start() + ev("citation", "not even JSON") + ev("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"citation":{"a":1},"text":null}}`) + text(0, "a") + end("end_turn"), "a .stop", 0, ""},
		{"a text that is none", start() + ev("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":7}}`), "", domain.Unavailable, "holds no text"},
		{"an event that is no JSON", start() + ev("contentBlockDelta", `{"contentBlockIndex":`), "", domain.Unavailable, "no JSON"},
		{"a frame of no kind", start() + wire.Frame("{}", wire.Text(":event-type", "messageStop")), "", domain.Unavailable, "unknown kind"},
		{"a wrong checksum", start() + text(0, "a") + strings.Replace(text(0, "b"), `"b"`, `"c"`, 1), "a ", domain.Unavailable, "wrong checksum"},
		{"nothing", "", "", domain.Unavailable, "ended its reply before"},
		{"a cut between frames", one, "a ", domain.Unavailable, "ended its reply before"},
		{"a cut in a frame", one + text(1, "b")[:30], "a ", domain.Unavailable, "broke off in the middle"},
		{"a frame without end", one + wire.Raw(1<<31, 0, ""), "a ", domain.Unavailable, "longer than 32 MiB"},
		{"a web page", "<!doctype html><html>", "", domain.Unavailable, "web page"},
		{"an error object", `{"message":"no such thing"}`, "", domain.Unavailable, "no such thing"},
		{"another document", `{"output":{}}`, "", domain.Unavailable, "no event stream"},
		{"throttled", one + wire.Exception("throttlingException", "Too many tokens, please wait."), "a ", domain.RateLimited, "please wait"},
		{"spent", one + wire.Exception("throttlingException", "Too many tokens per day, please wait."), "a ", domain.QuotaExhausted, "per day"},
		{"invalid", one + wire.Exception("validationException", "no"), "a ", domain.ProviderRejected, "no"},
		{"too long", one + wire.Exception("validationException", "Input is too long for requested model."), "a ", domain.ContextTooLong, "too long"},
		{"a failed model", one + wire.Exception("modelStreamErrorException", "it fell"), "a ", domain.Unavailable, "it fell"},
		{"a failed server", one + wire.Exception("internalServerException", "it fell"), "a ", domain.Unavailable, "it fell"},
		{"no service", one + wire.Exception("serviceUnavailableException", "busy"), "a ", domain.Unavailable, "busy"},
		{"a late model", one + wire.Exception("modelTimeoutException", "late"), "a ", domain.Unavailable, "late"},
		{"an unknown exception", one + wire.Exception("weatherException", "rain"), "a ", domain.Unavailable, "rain"},
		{"an exception without words", one + wire.Frame("", wire.Text(":message-type", "exception"), wire.Text(":exception-type", "throttlingException")), "a ", domain.RateLimited, "rate limit"},
		{"an error", one + wire.Frame("", wire.Text(":message-type", "error"), wire.Text(":error-code", "AccessDeniedException"), wire.Text(":error-message", "not yours")), "a ", domain.AuthRequired, "not yours"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for way, step := range map[string]func(io.Reader) io.Reader{"at once": nil, "bytes": iotest.OneByteReader} {
				line, _, err := told(t.Context(), over(t, canned{c.body, step}, claude), porttest.SampleRequest())
				if line != c.want {
					t.Errorf("%s: %q, want %q (%v)", way, line, c.want, err)
				}
				if c.says == "" && err != nil || c.says != "" && (domain.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%s: error %v, want %v with %q", way, err, c.code, c.says)
				}
			}
		})
	}
}

// lingering answers and keeps the connection open.
type lingering string

func (l lingering) RoundTrip(req *http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader(string(l)), until{req.Context()})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

// until is a reader that brings nothing before a context ends.
type until struct{ ctx context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}

// TestStreams_Lingering: a server that keeps the connection open behind the
// end of a reply is not waited for longer than counts are worth, and not at
// all once they are there.
func TestStreams_Lingering(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want string
		most time.Duration
	}{
		"without counts": {start() + text(0, "a") + end("end_turn"), "a .stop", afterStop},
		"with counts":    {start() + text(0, "a") + end("end_turn") + counts(`"inputTokens":1,"outputTokens":2`), "a 1+2(0,0) .stop", 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				line, _, err := told(t.Context(), over(t, lingering(c.body), claude), porttest.SampleRequest())
				if took := time.Since(began); line != c.want || err != nil || took > c.most {
					t.Errorf("%q, %v after %s", line, err, took)
				}
			})
		})
	}
}

// TestStreams_Long: what a reply may hold in memory is bounded.
func TestStreams_Long(t *testing.T) {
	piece := args(0, strings.Repeat("x", 1<<20))
	many := strings.Repeat(begin(0, "t", "n")+stop(0), maxBlocks+1)
	for name, body := range map[string]string{
		"arguments": start() + begin(0, "t", "n") + strings.Repeat(piece, llm.MaxEvent>>20+1),
		"signature": start() + strings.Repeat(think(0, "signature", strings.Repeat("x", 1<<20)), llm.MaxEvent>>20+1),
		"blocks":    start() + many,
	} {
		_, _, err := told(t.Context(), over(t, canned{body: body}, claude), porttest.SampleRequest())
		if domain.CodeOf(err) != domain.Unavailable || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStreams_Kept: thoughts come back as they were sent and in their order,
// and only to the model they are of; a reply that was changed loses them.
func TestStreams_Kept(t *testing.T) {
	secret := []byte{0, 1, 0xff}
	body := start() +
		think(0, "text", "first ") + think(0, "text", "thought é") + think(0, "signature", "c2l") + think(0, "signature", "n<&>") + stop(0) +
		ev("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":`+wire.JS(secret)+`}}}`) + stop(1) +
		text(2, "I read.") + stop(2) +
		begin(3, "t1", "read_file") + args(3, `{"path":"a"}`) + stop(3) +
		think(4, "text", "") + think(4, "signature", "empty") + stop(4) +
		think(5, "text", "unsigned") + stop(5) +
		begin(6, "t2", "read_file") + args(6, `{"path":"b"}`) + stop(6) +
		end("tool_use")
	m := over(t, canned{body: body}, claude)
	_, opaque, err := told(t.Context(), m, porttest.SampleRequest())
	if err != nil || opaque == nil {
		t.Fatalf("%v, %v", opaque, err)
	}
	reply := domain.ModelReply{Text: "I read.", Thought: "first thought éunsigned", Opaque: opaque, Calls: []domain.ModelCall{
		{ID: "1", ProviderID: "t1", Name: "read_file", Args: []byte(`{"path":"a"}`)}, {ID: "2", ProviderID: "t2", Name: "read_file", Args: []byte(`{"path":"b"}`)},
	}}
	whole := `[{"reasoningContent":{"reasoningText":{"text":"first thought é","signature":"c2ln<&>"}}},{"reasoningContent":{"redactedContent":"AAH/"}},` +
		`{"text":"I read."},{"toolUse":{"toolUseId":"t1","name":"read_file","input":{"path":"a"}}},` +
		`{"reasoningContent":{"reasoningText":{"text":"","signature":"empty"}}},{"toolUse":{"toolUseId":"t2","name":"read_file","input":{"path":"b"}}}]`
	plain := `[{"text":"I read."},{"toolUse":{"toolUseId":"t1","name":"read_file","input":{"path":"a"}}},{"toolUse":{"toolUseId":"t2","name":"read_file","input":{"path":"b"}}}]`
	altered := func(change func(*domain.ModelReply)) domain.ModelReply {
		r := reply
		change(&r)
		return r
	}
	for _, c := range []struct {
		name  string
		model *Model
		reply domain.ModelReply
		want  string
	}{
		{"the same", m, reply, whole},
		{"another model", over(t, canned{}, "anthropic.claude-opus-4-20250514-v1:0"), reply, plain},
		{"another provider", m, altered(func(r *domain.ModelReply) { r.Opaque = &domain.Opaque{Provider: "other", Data: opaque.Data} }), plain},
		{"another thought", m, altered(func(r *domain.ModelReply) { r.Thought = "shorter" }), plain},
		{"broken", m, altered(func(r *domain.ModelReply) { r.Opaque = &domain.Opaque{Provider: "fake", Data: []byte("{")} }), plain},
		{"below nothing", m, altered(func(r *domain.ModelReply) {
			r.Opaque = &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"` + claude + `","parts":[{"text":-1},{"text":8},{"thought":{"size":24}},{"call":true},{"call":true}]}`)}
		}), plain},
		{"of no kind", m, altered(func(r *domain.ModelReply) {
			r.Opaque = &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"` + claude + `","parts":[{"text":7},{"thought":{"size":24}},{"call":true},{"call":true},{}]}`)}
		}), plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := porttest.SampleRequest()
			req.Messages = append(req.Messages, c.reply, domain.ToolOutput{Call: c.reply.Calls[0], Text: "x"}, domain.ToolOutput{Call: c.reply.Calls[1], Text: "y"})
			sent, err := c.model.render(req, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(sent, []byte(`{"role":"assistant","content":`+c.want+`}`)) {
				t.Errorf("sent %s\nwant %s", sent, c.want)
			}
		})
	}
	// A signature alone is worth keeping.
	signed := start() + think(0, "text", "hm") + think(0, "signature", "s") + stop(0) + text(1, "a") + end("end_turn")
	if _, opaque, err := told(t.Context(), over(t, canned{body: signed}, claude), porttest.SampleRequest()); err != nil || opaque == nil ||
		string(opaque.Data) != `{"model":"`+claude+`","parts":[{"thought":{"size":2,"signature":"s"}},{"text":1}]}` {
		t.Errorf("kept %v, %v", opaque, err)
	}
	// What nobody signed, and what came out of order, is not kept.
	for name, body := range map[string]string{
		"unsigned": start() + think(0, "text", "hm") + stop(0) + text(1, "a") + end("end_turn"),
		"tangled":  start() + think(0, "text", "hm") + text(1, "a") + think(0, "signature", "s") + end("end_turn"),
	} {
		if _, opaque, err := told(t.Context(), over(t, canned{body: body}, claude), porttest.SampleRequest()); opaque != nil || err != nil {
			t.Errorf("%s: kept %v, %v", name, opaque, err)
		}
	}
}

// FuzzReply: whatever a server sends in right frames, a reply says the same
// however it was cut, ends once, and requests whole calls only.
func FuzzReply(f *testing.F) {
	f.Add("messageStart {}\ncontentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"text\":\"a\\ud83d\"}}\ncontentBlockStop {\"contentBlockIndex\":0}\nmessageStop {\"stopReason\":\"end_turn\"}\nmetadata {\"usage\":{\"inputTokens\":1}}", uint8(3))
	f.Add("contentBlockStart {\"contentBlockIndex\":1,\"start\":{\"toolUse\":{\"toolUseId\":\"t\",\"name\":\"n\"}}}\ncontentBlockDelta {\"contentBlockIndex\":1,\"delta\":{\"toolUse\":{\"input\":\"{}\"}}}\ncontentBlockStop {\"contentBlockIndex\":1}\nmessageStop {\"stopReason\":\"tool_use\"}", uint8(1))
	f.Add("contentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"reasoningContent\":{\"text\":\"h\"}}}\ncontentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"reasoningContent\":{\"signature\":\"s\",\"redactedContent\":\"AAA=\"}}}\nmessageStop {\"stopReason\":\"max_tokens\"}", uint8(9))
	f.Add("!throttlingException {\"message\":\"x\"}\nmessageStop {\"stopReason\":\"\"}", uint8(2))
	f.Fuzz(func(t *testing.T, script string, step uint8) {
		var body strings.Builder
		for line := range strings.SplitSeq(script, "\n") {
			name, payload, _ := strings.Cut(line, " ")
			if len(name) > 1000 {
				continue
			}
			if class, ok := strings.CutPrefix(name, "!"); ok {
				body.WriteString(wire.Frame(payload, wire.Text(":message-type", "exception"), wire.Text(":exception-type", class)))
			} else {
				body.WriteString(wire.Event(name, payload))
			}
		}
		line, opaque, err := told(t.Context(), over(t, canned{body: body.String()}, claude), domain.ModelRequest{})
		cut, kept, cutErr := told(t.Context(), over(t, canned{body.String(), func(r io.Reader) io.Reader {
			data, _ := io.ReadAll(r)
			return &stepReader{data: data, step: int(step)%17 + 1}
		}}, claude), domain.ModelRequest{})
		if line != cut || fmt.Sprint(err) != fmt.Sprint(cutErr) || fmt.Sprint(opaque) != fmt.Sprint(kept) {
			t.Fatalf("at once %q %v %v; in steps %q %v %v", line, opaque, err, cut, kept, cutErr)
		}
		if err == nil && !strings.Contains(line, ".") {
			t.Fatalf("%q has no end", line)
		}
	})
}
