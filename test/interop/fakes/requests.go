package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// sent is a request as it came over the wire.
type sent struct {
	Dialect string            `json:"dialect"`
	Case    string            `json:"case"`
	Method  string            `json:"method"`
	Address string            `json:"address"` // path and query as on the wire
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// requests prints what the adapters send to each fake in each case.
func requests(ctx context.Context, out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, f := range fakes() {
		for _, c := range cases() {
			all, err := f.ask(ctx, c)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", f.name, c.name, err)
			}
			for _, s := range all {
				if err := enc.Encode(s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ask runs a case against a fake and returns the requests it took.
func (f fake) ask(ctx context.Context, c askCase) (all []sent, err error) {
	server := f.New().Replies(c.replies...)
	recorder := &recorder{next: server}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	wire := &http.Server{Handler: recorder, ReadHeaderTimeout: time.Minute}
	var running sync.WaitGroup
	running.Go(func() { _ = wire.Serve(l) })
	client := llm.NewClient(llm.HTTPConfig{Transport: detour(l.Addr().String())})
	defer func() {
		client.Close()
		_ = wire.Close()
		running.Wait()
	}()
	base := "http://" + l.Addr().String()
	if f.host != "" {
		base = "https://" + f.host
	}
	cfg := f.Provider("fake", base)
	cfg.APIKey = func() (string, error) { return f.secret(), nil }
	model, err := f.Opener.Open(llm.Provider{ProviderConfig: cfg, Client: client}, f.Info())
	if err != nil {
		return nil, err
	}
	if err := c.run(ctx, model); err != nil {
		return nil, err
	}
	if problems := server.Problems(); len(problems) > 0 {
		return nil, fmt.Errorf("the fake refuses: %q", problems)
	}
	for _, s := range recorder.all() {
		s.Dialect, s.Case = f.name, c.name
		all = append(all, s)
	}
	return all, nil
}

// detour is a network on which every host is the one at its address, and
// nothing is encrypted.
type detour string

func (d detour) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = r.URL.Host
	r.URL.Scheme, r.URL.Host = "http", string(d)
	return http.DefaultTransport.RoundTrip(r)
}

// recorder notes requests on their way.
type recorder struct {
	next http.Handler
	mu   sync.Mutex
	seen []sent
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s := sent{Method: r.Method, Address: r.RequestURI, Headers: map[string]string{"Host": r.Host}, Body: string(body)}
	for name := range r.Header {
		s.Headers[name] = r.Header.Get(name)
	}
	rec.mu.Lock()
	rec.seen = append(rec.seen, s)
	rec.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	rec.next.ServeHTTP(w, r)
}

func (rec *recorder) all() []sent {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.seen)
}

// askCase is something that the engine asks a model.
type askCase struct {
	name    string
	replies []porttest.Reply
	run     func(context.Context, ports.Model) error
}

var (
	dot   = domain.Image{MIME: "image/png", Data: []byte("\x89PNG\r\n\x1a\n a picture of a dot")}
	sound = domain.Audio{MIME: "audio/wav", Data: []byte("RIFF a sound")}
)

// cases are one request for each thought level, and whole conversations.
func cases() []askCase {
	done := porttest.Reply{Parts: []porttest.ReplyPart{porttest.SendText("Done.")}}
	var all []askCase
	for _, level := range []domain.ThoughtLevel{
		"", domain.ThoughtsOff, domain.ThoughtsMinimal, domain.ThoughtsLow, domain.ThoughtsMedium, domain.ThoughtsHigh, domain.ThoughtsXHigh,
	} {
		all = append(all, once("thoughts "+string(level), done, func(r *domain.ModelRequest) {
			r.Thoughts, r.MaxOutputTokens = level, 20_000
		}))
	}
	return append(all,
		once("bare", done, func(r *domain.ModelRequest) { r.System, r.Tools, r.MaxOutputTokens = "", nil, 0 }),
		once("media", done, func(r *domain.ModelRequest) {
			r.Messages = []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "See and hear."}, dot, sound}}}
		}),
		once("of another model", done, func(r *domain.ModelRequest) {
			call := domain.ModelCall{ID: "t1-c1", ProviderID: "toolu/1?", Name: "read_file", Args: []byte(`{"path":"a"}`)}
			r.Messages = append(r.Messages,
				domain.ModelReply{Text: "I look.", Thought: "Hm.", Calls: []domain.ModelCall{call}, Opaque: &domain.Opaque{Provider: "other/x", Data: []byte(`{"v":1}`)}},
				domain.ToolOutput{Call: call, Text: ""},
				domain.ModelReply{Text: "I was say"},
				domain.UserInput{Blocks: []domain.Block{domain.Text{Text: "[The previous turn was cancelled before it ended.]"}, domain.Text{Text: "Go on."}}})
		}),
		askCase{"turn", append(slices.Clone(scenes()["turn"][:1]), signedAgain(), done), turn("")},
		askCase{"turn that thinks", append(slices.Clone(scenes()["turn"][:1]), signedAgain(), done), turn(domain.ThoughtsHigh)},
	)
}

func signedAgain() porttest.Reply {
	return porttest.Reply{Signed: true, Usage: usage, Parts: []porttest.ReplyPart{
		porttest.SendThought("One more."),
		porttest.SendCall{Name: "read_file", Args: `{"path":"b"}`, Pieces: 2}, porttest.SendCall{Name: "read_file", Args: `{"path":"c"}`, Pieces: 2},
	}}
}

func tools() []domain.ToolSpec {
	return append(porttest.SampleRequest().Tools,
		domain.ToolSpec{Name: "list_files", Kind: domain.KindRead, Schema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`)},
		domain.ToolSpec{Name: "mcp__db__query", Description: "Asks.", Kind: domain.KindOther, Schema: []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema",` +
			`"type":"object","properties":{"rows":{"type":["integer","null"],"minimum":0},"mode":{"enum":["a","b"]},"of":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string"}}}`)})
}

// once is a case of one request.
func once(name string, reply porttest.Reply, change func(*domain.ModelRequest)) askCase {
	return askCase{name, []porttest.Reply{reply}, func(ctx context.Context, m ports.Model) error {
		req := porttest.SampleRequest()
		req.Model, req.Tools = m.Info().Ref, tools()
		change(&req)
		_, err := hear(ctx, m, req)
		return err
	}}
}

// turn is a turn of three requests: the first reply's tools succeed with a
// picture and fail, the second's too.
func turn(level domain.ThoughtLevel) func(context.Context, ports.Model) error {
	return func(ctx context.Context, m ports.Model) error {
		req := porttest.SampleRequest()
		req.Model, req.Tools, req.Thoughts, req.MaxOutputTokens = m.Info().Ref, tools(), level, 20_000
		for step := 1; ; step++ {
			reply, err := hear(ctx, m, req)
			if err != nil || len(reply.Calls) == 0 {
				return err
			}
			for i := range reply.Calls {
				reply.Calls[i].ID = domain.CallID(fmt.Sprintf("turn-c%d.%d", step, i+1))
			}
			req.Messages = append(req.Messages, reply)
			for i, c := range reply.Calls {
				out := domain.ToolOutput{Call: c, Text: "It says: grüße.", Failed: i == 1}
				if i == 0 {
					out.Media = []domain.Block{dot}
				}
				req.Messages = append(req.Messages, out)
			}
		}
	}
}

// hear asks and returns the reply.
func hear(ctx context.Context, m ports.Model, req domain.ModelRequest) (domain.ModelReply, error) {
	var reply domain.ModelReply
	for ev, err := range m.Stream(ctx, req) {
		if err != nil {
			return reply, err
		}
		switch ev := ev.(type) {
		case domain.TextDelta:
			reply.Text += ev.Text
		case domain.ThoughtDelta:
			reply.Thought += ev.Text
		case domain.CallRequested:
			reply.Calls = append(reply.Calls, ev.Call)
		case domain.Finish:
			reply.Opaque = ev.Opaque
		case domain.UsageReported, domain.Retrying, domain.FellBack:
		}
	}
	return reply, nil
}
