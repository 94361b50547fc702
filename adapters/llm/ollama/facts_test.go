package ollama

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func yes() *bool { b := true; return &b }
func no() *bool  { return new(bool) }

// TestWindow: the window is what configuration says, else what the model's
// parameters say, else as much as the model was trained for within bounds; it
// is never more than the model has, every request sets it, and Info tells it.
func TestWindow(t *testing.T) {
	info := func(rest string) string {
		return `{"model_info":{"general.architecture":"a","a.context_length":` + rest
	}
	for _, c := range []struct {
		name       string
		show       string
		configured int64
		catalogue  int64
		base       string // of the provider
		want       int64
		unset      bool // the request does not set it
	}{
		{"a small model", info("8192}}"), 0, 0, "", 8192, false},
		{"a large model", info("262144}}"), 0, 0, "", DefaultWindow, false},
		{"configured", info("262144}}"), 100_000, 0, "", 100_000, false},
		{"configured beyond the model", info("8192}}"), 100_000, 0, "", 8192, false},
		{"parameters of the model", info(`262144},"parameters":"stop   \"num_ctx 5\"\nnum_ctx                        65536\ntemperature 1"}`), 0, 0, "", 65536, false},
		{"parameters beyond the model", info(`8192},"parameters":"num_ctx 65536"}`), 0, 0, "", 8192, false},
		{"configured over parameters", info(`262144},"parameters":"num_ctx 65536"}`), 16384, 0, "", 16384, false},
		{"a number with a fraction", info("8192.0}}"), 0, 0, "", 8192, false},
		{"another part of the model has a length too", `{"model_info":{"general.architecture":"a","b.context_length":77,"a.context_length":8192}}`, 0, 0, "", 8192, false},
		{"no architecture", `{"model_info":{"b.context_length":8192}}`, 0, 0, "", 8192, false},
		{"nonsense", `{"model_info":{"general.architecture":5,"b.context_length":"x"}}`, 0, 0, "", DefaultWindow, false},
		{"no answer, catalogue", "404 404 page not found", 0, 16000, "", 16000, false},
		{"no answer, a large one in the catalogue", "404 404 page not found", 0, 131072, "", DefaultWindow, false},
		{"no answer at all", "404 404 page not found", 0, 0, "", DefaultWindow, false},
		{"no JSON", "it works", 0, 0, "", DefaultWindow, false},
		{"runs elsewhere", info(`262144},"remote_host":"https://ollama.com:443","remote_model":"x"}`), 0, 0, "", 262144, true},
		{"runs elsewhere, configured", info(`262144},"remote_host":"https://ollama.com:443"}`), 100_000, 0, "", 100_000, true},
		{"Ollama's own service", info("262144}}"), 0, 0, "http://ollama.com/api", 262144, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{show: c.show, chat: answer(http.StatusOK, done("stop", ""))}
				m := s.model(t, func(p *llm.Provider, info *domain.ModelInfo) {
					info.ContextWindow = max(c.catalogue, c.configured)
					if c.base != "" {
						p.BaseURL = c.base
					}
					p.Models = map[string]llm.ModelFacts{"fake-1": {ContextWindow: c.configured}}
				})
				if before := m.Info().ContextWindow; before != max(c.configured, min(c.catalogue, DefaultWindow)) {
					t.Errorf("before it asked, the window is %d", before)
				}
				for range 2 {
					if line, err := got(t, m, porttest.SampleRequest()); line != ".stop" {
						t.Fatalf("%q, %v", line, err)
					}
				}
				if n := m.Info().ContextWindow; n != c.want {
					t.Errorf("Info says %d, want %d", n, c.want)
				}
				for _, req := range s.chats(t) {
					opts, _ := req["options"].(map[string]any)
					if n, set := opts["num_ctx"]; set == c.unset || set && n != float64(c.want) {
						t.Errorf("num_ctx is %v, want %d", n, c.want)
					}
				}
				if n := s.count("/api/show"); n != 1 {
					t.Errorf("the server was asked about the model %d times", n)
				}
			})
		})
	}
}

// TestAbilities: what the server says a model can do is over what its name
// lets guess, and under what is configured.
func TestAbilities(t *testing.T) {
	type can struct{ tools, images, audio, thoughts bool }
	for _, c := range []struct {
		name string
		show string
		set  llm.ModelFacts
		want can
	}{
		{"all", able, llm.ModelFacts{}, can{true, true, true, true}},
		{"only text", `{"capabilities":["completion"]}`, llm.ModelFacts{}, can{}},
		{"tools", `{"capabilities":["completion","tools"]}`, llm.ModelFacts{}, can{tools: true}},
		{"configured", `{"capabilities":["completion"]}`, llm.ModelFacts{Images: yes(), Tools: yes()}, can{tools: true, images: true}},
		{"configured away", able, llm.ModelFacts{Images: no(), Thoughts: no()}, can{tools: true, audio: true}},
		{"an old server says nothing", `{"model_info":{}}`, llm.ModelFacts{}, can{tools: true, images: true, thoughts: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{show: c.show, chat: answer(http.StatusOK, done("stop", ""))}
				m := s.model(t, func(p *llm.Provider, info *domain.ModelInfo) {
					info.Images, info.Thoughts = true, true
					p.Models = map[string]llm.ModelFacts{"fake-1": c.set}
				})
				if _, err := got(t, m, domain.ModelRequest{Messages: porttest.SampleRequest().Messages}); err != nil {
					t.Fatal(err)
				}
				i := m.Info()
				if is := (can{i.Tools, i.Images, i.Audio, i.Thoughts}); is != c.want {
					t.Errorf("it can %+v, want %+v", is, c.want)
				}
			})
		})
	}
}

// TestComplete: what names alone tell.
func TestComplete(t *testing.T) {
	for name, want := range map[string]struct{ images, thoughts bool }{
		"llama3.2-vision:11b": {true, false}, "qwen2.5vl:7b": {true, false}, "qwen3-vl:8b": {true, true}, "llava": {true, false},
		"gemma4:e4b": {true, false}, "qwen3:8b": {false, true}, "qwen3-coder:30b": {false, false}, "gpt-oss:20b": {false, true},
		"hf.co/x/DeepSeek-R1-Distill:Q4": {false, true}, "llama3.1:8b": {false, false},
	} {
		info := complete(domain.ModelInfo{Ref: domain.ModelRef{Model: name}, ContextWindow: 1 << 20})
		if info.Images != want.images || info.Thoughts != want.thoughts || info.ContextWindow != DefaultWindow {
			t.Errorf("%s: %+v", name, info)
		}
	}
}

func TestRefusing(t *testing.T) {
	for version, want := range map[string]bool{
		"0.12.6": true, "0.12.5": false, "0.12.10": true, "0.13.0-rc1": true, "0.12.6-rc0": true, "v0.30.1": true, "1.0.0": true,
		"0.5.7": false, "0.0.0": true, "": false, "0.12": false, "dev": false, "x.y.z": false, "0.12.": false,
	} {
		if refusing(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

// TestLearn_Again: what was chance is asked again, what was an answer is not.
func TestLearn_Again(t *testing.T) {
	for _, c := range []struct {
		name, show, version string
		want                int
	}{
		{"an answer", able, "", 1},
		{"no such page", "404 404 page not found", "", 1},
		{"out of order", `500 {"error":"oops"}`, "", 2},
		{"busy", `503 {"error":"server busy"}`, "", 2},
		{"not allowed", `401 {"error":"unauthorized"}`, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{show: c.show, version: c.version, chat: answer(http.StatusOK, text("a")+done("stop", ""))}
				m := s.model(t, nil)
				for range 2 {
					if line, err := got(t, m, porttest.SampleRequest()); line != "a .stop" {
						t.Fatalf("%q, %v", line, err)
					}
				}
				if n := s.count("/api/show"); n != c.want {
					t.Errorf("asked %d times, want %d", n, c.want)
				}
			})
		})
	}
}

// TestLearn_Ends: a model that is not there, and a cancel, end the request
// before a conversation is sent.
func TestLearn_Ends(t *testing.T) {
	t.Run("no such model", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &server{show: `404 {"error":"model 'fake-1' not found"}`, chat: answer(http.StatusOK, done("stop", ""))}
			line, err := got(t, s.model(t, nil), porttest.SampleRequest())
			if line != "!provider rejected" || !strings.Contains(err.Error(), "ollama pull fake-1") || s.count("/api/chat") != 0 {
				t.Errorf("%q, %v", line, err)
			}
		})
	})
	t.Run("cancel", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := &server{chat: answer(http.StatusOK, done("stop", ""))}
			hang := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/api/show" {
					_, _ = io.Copy(io.Discard, req.Body)
					cancel(domain.CancelledByClient)
					<-req.Context().Done()
					return
				}
				s.ServeHTTP(w, req)
			})
			m := s.model(t, nil)
			m.provider.Client = connect(t, hang)
			for _, err := range m.Stream(ctx, porttest.SampleRequest()) {
				if !domain.HasCode(err, domain.Cancelled) {
					t.Errorf("%v", err)
				}
			}
			if n := s.count("/api/chat"); n != 0 {
				t.Errorf("%d conversations were sent", n)
			}
		})
	})
}

// TestFits: what cannot fit is not sent; a server that would cut is not sent
// what may not fit either; any other is left to decide.
func TestFits(t *testing.T) {
	prompt := func(tokens int) domain.ModelRequest {
		req := porttest.SampleRequest()
		req.Messages = []domain.ModelMessage{domain.UserInput{Blocks: []domain.Block{domain.Text{Text: strings.Repeat("word", tokens)}}}}
		return req
	}
	for _, c := range []struct {
		name    string
		version string
		show    string
		tokens  int
		sent    bool
	}{
		{"20,000 tokens", "0.30.1", able, 20_000, true},
		{"more than fits, to a server that says so", "0.30.1", able, 40_000, true},
		{"more than can fit", "0.30.1", able, 120_000, false},
		{"20,000 tokens, to a server that cuts", "0.5.7", able, 20_000, true},
		{"what may not fit, to a server that cuts", "0.5.7", able, 28_000, false},
		{"what may not fit, to a server without a version", "none", able, 28_000, false},
		{"to another host", "0.5.7", `{"remote_host":"x","model_info":{"a.context_length":40960},"capabilities":["tools"]}`, 45_000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{version: c.version, show: c.show, chat: answer(http.StatusOK, text("a")+done("stop", ""))}
				line, err := got(t, s.model(t, nil), prompt(c.tokens))
				if (s.count("/api/chat") == 1) != c.sent {
					t.Fatalf("sent %d times: %q, %v", s.count("/api/chat"), line, err)
				}
				if !c.sent && (line != "!context too long" || !strings.Contains(err.Error(), `32768 tokens`) || !strings.Contains(err.Error(), `providers.fake.models."fake-1".context_window`)) {
					t.Errorf("%q, %v", line, err)
				}
				for _, req := range s.chats(t) {
					if req["truncate"] != false || req["shift"] != false {
						t.Errorf("truncate is %v, shift %v", req["truncate"], req["shift"])
					}
				}
			})
		})
	}
}
