package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// DefaultWindow is the most tokens of context that are asked for unless
// configuration or the model's own parameters say otherwise. The memory that a
// model takes grows with its window, so the whole of what it was trained for
// may not fit the machine.
const DefaultWindow = 32768

// complete adds what names alone tell, for the catalogue and until the server
// was asked.
func complete(info domain.ModelInfo) domain.ModelInfo {
	info.ContextWindow = min(info.ContextWindow, DefaultWindow)
	name := strings.ToLower(info.Ref.Model)
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	info.Images = info.Images || llm.Says(name, "vision", "llava", "moondream", "minicpm-v", "-vl", "2.5vl", "gemma3", "gemma4", "mistral-small3")
	info.Thoughts = info.Thoughts || levelled(name) || llm.Says(name, "deepseek-r1", "magistral", "qwq", "-thinking") ||
		(strings.HasPrefix(name, "qwen3") && !strings.HasPrefix(name, "qwen3-coder"))
	return info
}

// levelled reports whether a model's name says that it takes a level of
// thought in place of on and off.
func levelled(name string) bool { return strings.Contains(name, "gpt-oss") }

// facts is what a server says of a model.
type facts struct {
	window int64 // tokens; what is asked for
	// elsewhere is set for a model that the server passes on to another host:
	// its window is its own and cannot be set.
	elsewhere bool
	// refuses is set for a server that refuses what does not fit when told to.
	// An older one cuts it.
	refuses bool
	levels  bool // thought is a level, not on and off

	known  bool // the server told the abilities
	tools  bool
	sees   bool
	hears  bool
	thinks bool
}

// apply corrects what is said of a model. Configuration keeps the last word.
func (f *facts) apply(info *domain.ModelInfo, set llm.ModelFacts) {
	info.ContextWindow = f.window
	if !f.known {
		return
	}
	for _, b := range []struct {
		set *bool
		is  bool
		to  *bool
	}{{set.Images, f.sees, &info.Images}, {set.Audio, f.hears, &info.Audio}, {set.Tools, f.tools, &info.Tools}, {set.Thoughts, f.thinks, &info.Thoughts}} {
		if *b.to = b.is; b.set != nil {
			*b.to = *b.set
		}
	}
}

// learn asks the server about the model, once. A server that cannot tell is
// used all the same; one that does not answer, or has no such model, would not
// do better with a conversation.
func (m *Model) learn(ctx context.Context) (*facts, error) {
	if f := m.learned.Load(); f != nil {
		return f, nil
	}
	said, err := m.show(ctx)
	sure := true
	var failed *llm.Failure
	switch {
	case err == nil:
	case !errors.As(err, &failed), failed.Status == 0, noModel(failed):
		return nil, err
	default:
		// It answers, and what is wrong the conversation's answer will say. A
		// server without this question need not be asked again.
		sure = failed.Status == http.StatusNotFound || failed.Status == http.StatusMethodNotAllowed
	}
	f := m.facts(said)
	refuses, settled, err := m.recent(ctx)
	if err != nil {
		return nil, err
	}
	if f.refuses = refuses; sure && settled {
		m.learned.Store(f)
	}
	return f, nil
}

// noModel reports whether a failure says that the server has no such model,
// and not that it has no such page.
func noModel(f *llm.Failure) bool {
	return f.Status == http.StatusNotFound && strings.Contains(strings.ToLower(f.Words), "model")
}

// shown is the answer to a question about a model.
type shown struct {
	Capabilities []string                   `json:"capabilities"`
	Info         map[string]json.RawMessage `json:"model_info"`
	Parameters   string                     `json:"parameters"`
	RemoteHost   string                     `json:"remote_host"`
	Details      struct {
		Family string `json:"family"`
	} `json:"details"`
}

// show asks about the model. An answer of another form tells nothing.
func (m *Model) show(ctx context.Context) (shown, error) {
	var s shown
	body, err := llm.Encode(struct {
		Model string `json:"model"`
	}{m.info.Ref.Model})
	if err != nil {
		return s, err
	}
	x, err := m.provider.Start(ctx, llm.Call{URL: m.base + "/api/show", Body: body, Authorize: authorize, Public: []string{m.info.Ref.Model}})
	if err != nil {
		return s, err
	}
	defer x.Close()
	data, err := io.ReadAll(io.LimitReader(x, llm.MaxEvent))
	if err != nil {
		return s, x.Cut(err)
	}
	if json.Unmarshal(data, &s) != nil {
		return shown{}, nil
	}
	return s, nil
}

// facts makes up its mind about what the server said.
func (m *Model) facts(s shown) *facts {
	f := &facts{
		elsewhere: m.cloud || s.RemoteHost != "",
		levels:    levelled(strings.ToLower(m.info.Ref.Model)) || llm.Says(strings.ToLower(s.Details.Family), "gptoss", "gpt-oss"),
		known:     len(s.Capabilities) > 0,
		tools:     slices.Contains(s.Capabilities, "tools"),
		sees:      slices.Contains(s.Capabilities, "vision"),
		hears:     slices.Contains(s.Capabilities, "audio"),
		thinks:    slices.Contains(s.Capabilities, "thinking"),
	}
	native := s.contextLength()
	switch set := m.provider.Models[m.info.Ref.Model].ContextWindow; {
	case set > 0:
		f.window = set
	case f.elsewhere && native > 0:
		f.window = native
	case s.numCtx() > 0:
		f.window = s.numCtx()
	case native > 0:
		f.window = DefaultWindow
	case m.info.ContextWindow > 0:
		f.window = m.info.ContextWindow
	default:
		f.window = DefaultWindow
	}
	if native > 0 {
		f.window = min(f.window, native)
	}
	return f
}

// contextLength returns the window that the model was trained for, 0 when it
// is not said.
func (s shown) contextLength() int64 {
	var arch string
	if json.Unmarshal(s.Info["general.architecture"], &arch) == nil && arch != "" {
		if n := number(s.Info[arch+".context_length"]); n > 0 {
			return n
		}
	}
	var least int64
	for name, raw := range s.Info {
		if n := number(raw); strings.HasSuffix(name, ".context_length") && n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// number reads a count, which some servers write with a fraction.
func number(raw json.RawMessage) int64 {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(n >= 1 && n < 1<<40) {
		return 0
	}
	return int64(n)
}

// numCtx returns the window that the model's parameters set, 0 for none. They
// are lines of a name and a value.
func (s shown) numCtx() int64 {
	for line := range strings.Lines(s.Parameters) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "num_ctx" {
			return number(json.RawMessage(words[1]))
		}
	}
	return 0
}

// recent reports whether the server refuses what is too long when told to,
// which Ollama does since 0.12.6. One that does not name its version is taken
// for one that does not; settled is false when that may have been chance. The
// error is that of a cancel.
func (m *Model) recent(ctx context.Context) (refuses, settled bool, err error) {
	var v struct {
		Version string `json:"version"`
	}
	err = m.provider.Fetch(ctx, llm.Call{URL: m.base + "/api/version", Authorize: authorize}, &v)
	if domain.HasCode(err, domain.Cancelled) {
		return false, false, err
	}
	return err == nil && refusing(v.Version), !domain.HasCode(err, domain.Unavailable), nil
}

// refusing reports whether a version is 0.12.6 or newer. Builds of developers
// call themselves 0.0.0.
func refusing(version string) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return false
	}
	var n [3]int
	for i, p := range parts {
		digits := p[:len(p)-len(strings.TrimLeft(p, "0123456789"))]
		v, err := strconv.Atoi(digits)
		if err != nil {
			return false
		}
		n[i] = v
	}
	return n == [3]int{} || slices.Compare(n[:], []int{0, 12, 6}) >= 0
}
