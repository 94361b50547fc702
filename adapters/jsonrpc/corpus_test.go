package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/google/go-cmp/cmp"
)

// corpusCase is one line of testdata/protocol-bad-input.jsonl.
type corpusCase struct {
	ID, Description string
	Input           struct {
		Transport, State string
		Send             []struct {
			Text, B64 *string
			Chunks    []string
			Gen       *struct {
				Prefix, Repeat, Middle, Suffix string
				Times                          int
				RepeatEnd                      string `json:"repeat_end"`
			}
			NoNewline bool `json:"no_newline"`
			EOF       bool
		}
	}
	Expected struct {
		Replies []map[string]json.RawMessage
		Alive   bool
		AlsoOK  []string `json:"also_ok"`
		Assert  []string
	}
}

// needsAgent are the cases that the tables below cannot decide. They and those
// whose state needs a session are the agent's, in the acceptance tests.
var needsAgent = map[string]string{
	"PR-075": "looks for the directory",
	"PR-076": "starts tool servers",
}

// TestCorpus plays every case that needs no more than the peer and a table of
// simple methods.
func TestCorpus(t *testing.T) {
	file, err := os.ReadFile("testdata/protocol-bad-input.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range bytes.Lines(file) {
		var c corpusCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		peer := c.Input.Transport == "any" || c.Input.Transport == "stdio"
		state := c.Input.State == "fresh" || c.Input.State == "initialized"
		if peer && state && needsAgent[c.ID] == "" {
			ran++
			t.Run(c.ID, func(t *testing.T) { c.run(t) })
		}
	}
	if ran < 75 {
		t.Errorf("only %d cases ran", ran)
	}
}

func (c *corpusCase) run(t *testing.T) {
	h := &corpusHandler{}
	r := serve(t, h.methods())
	if c.Input.State == "initialized" {
		r.open()
	}
	input, eof := c.input(t)
	go func() {
		_, _ = r.in.Write(input)
		if eof {
			_ = r.in.Close()
			return
		}
		_, _ = r.in.Write([]byte(call(`"probe"`, "_probe/none", `{}`) + "\n"))
	}()
	var got []map[string]json.RawMessage
	alive := false
	for !alive {
		line := r.recv()
		if line == "" {
			break
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("the peer wrote %q", line)
		}
		if string(m["id"]) == `"probe"` {
			alive = true
		} else {
			got = append(got, m)
		}
	}
	if alive != c.Expected.Alive {
		t.Errorf("alive %v, want %v", alive, c.Expected.Alive)
	}
	if !c.matches(got) {
		t.Errorf("%s: got %s, want %s or %q", c.Description, show(got), show(c.Expected.Replies), c.Expected.AlsoOK)
	}
	for _, a := range c.Expected.Assert {
		if a == "session/list is not executed" && h.listed.Load() != 0 || a == "no session is created" && h.created.Load() != 0 {
			t.Errorf("not so: %s", a)
		}
	}
	r.finish()
}

// input builds the bytes to send.
func (c *corpusCase) input(t *testing.T) (in []byte, eof bool) {
	for _, s := range c.Input.Send {
		switch {
		case s.EOF:
			return in, true
		case s.Text != nil:
			in = append(in, strings.ReplaceAll(*s.Text, "{{WS}}", "/ws")...)
		case s.B64 != nil:
			var b []byte
			if err := json.Unmarshal([]byte(`"`+*s.B64+`"`), &b); err != nil {
				t.Fatal(err)
			}
			in = append(in, b...)
		case s.Chunks != nil:
			in = append(in, strings.Join(s.Chunks, "")...)
		case s.Gen != nil:
			g := s.Gen
			in = append(in, g.Prefix+strings.Repeat(g.Repeat, g.Times)+g.Middle+strings.Repeat(g.RepeatEnd, g.Times)+g.Suffix...)
		default:
			t.Fatalf("unknown item in %s", c.ID)
		}
		if !s.NoNewline {
			in = append(in, '\n')
		}
	}
	return in, false
}

// matches compares the replies with those expected, in any order, and then
// with what would do as well.
func (c *corpusCase) matches(got []map[string]json.RawMessage) bool {
	rest := slices.Clone(got)
	met := true
	for _, want := range c.Expected.Replies {
		i := slices.IndexFunc(rest, func(m map[string]json.RawMessage) bool { return replyMatches(m, want) })
		if i < 0 {
			met = false
			break
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if met && len(rest) == 0 {
		return true
	}
	for _, also := range c.Expected.AlsoOK {
		id, isID := strings.CutPrefix(also, "id ")
		switch {
		case also == "no reply" && len(got) == 0:
			return true
		case isID && len(got) == 1:
			changed := map[string]json.RawMessage{"id": json.RawMessage(id)}
			for k, v := range c.Expected.Replies[0] {
				if k != "id" {
					changed[k] = v
				}
			}
			if replyMatches(got[0], changed) {
				return true
			}
		}
	}
	return false
}

func replyMatches(got, want map[string]json.RawMessage) bool {
	if any, ok := want["any_of"]; ok {
		var options []map[string]json.RawMessage
		_ = json.Unmarshal(any, &options)
		return slices.ContainsFunc(options, func(o map[string]json.RawMessage) bool {
			if o["id"] == nil {
				o["id"] = want["id"]
			}
			return replyMatches(got, o)
		})
	}
	if string(got["id"]) != string(want["id"]) || string(got["jsonrpc"]) != `"2.0"` {
		return false
	}
	if r, ok := want["result"]; ok {
		return got["result"] != nil && (string(r) == `"object"` && got["result"][0] == '{' || sameJSON(got["result"], r))
	}
	var e struct {
		Code    int
		Message string
		Data    struct{ Reason string }
	}
	_ = json.Unmarshal(got["error"], &e)
	if e.Message == "" || e.Data.Reason == "" {
		return false
	}
	var codes []int
	_ = json.Unmarshal(want["error_code_in"], &codes)
	var one int
	if json.Unmarshal(want["error_code"], &one) == nil {
		codes = append(codes, one)
	}
	return slices.Contains(codes, e.Code)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}

func show(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// corpusHandler knows just enough methods for the cases to bite.
type corpusHandler struct {
	created, listed atomic.Int32
	decode          Decoder
}

func (h *corpusHandler) methods() Methods {
	now := func(f func(params json.RawMessage) (any, error)) Method {
		return Method{Admit: func(_ context.Context, params json.RawMessage) (Task, error) {
			v, err := f(params)
			return func(context.Context) (Reply, error) { return Reply{Result: v}, nil }, err
		}}
	}
	initialize := now(func(params json.RawMessage) (any, error) {
		var p struct {
			Version *int `json:"protocolVersion"`
		}
		if h.decode.Unmarshal(params, &p) != nil || p.Version == nil {
			return nil, domain.Errorf(domain.InvalidArgument, "protocolVersion must be an integer")
		}
		return json.RawMessage(`{"protocolVersion":1}`), nil
	})
	initialize.Flags = Opens
	session := now(func(params json.RawMessage) (any, error) {
		var p struct {
			ID string `json:"sessionId"`
		}
		if err := h.decode.Unmarshal(params, &p); err != nil || p.ID == "" {
			return nil, domain.Errorf(domain.InvalidArgument, "sessionId must be a string")
		}
		return nil, domain.NoSession(domain.SessionID(p.ID))
	})
	return Methods{
		"initialize":     initialize,
		"session/prompt": session,
		"session/load":   session,
		"session/cancel": {Notify: func(context.Context, json.RawMessage) (Task, error) { return nil, fmt.Errorf("unknown session") }},
		"session/list":   now(func(json.RawMessage) (any, error) { h.listed.Add(1); return nil, nil }),
		"session/new": now(func(params json.RawMessage) (any, error) {
			var p struct {
				Cwd string `json:"cwd"`
			}
			if err := h.decode.Unmarshal(params, &p); err != nil || !path.IsAbs(p.Cwd) || strings.ContainsRune(p.Cwd, 0) {
				return nil, domain.Errorf(domain.InvalidArgument, "cwd must be an absolute path")
			}
			h.created.Add(1)
			return nil, nil
		}),
	}
}
