package jsonrpc

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// osPipes returns two connected ends over pipes of the system.
func osPipes(b *testing.B) (*Stdio, *Stdio) {
	b.Helper()
	aR, bW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	bR, aW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	return NewStdio(aR, aW, 0), NewStdio(bR, bW, 0)
}

// chunk is an update as the wire adapter writes it.
type chunk struct{ session, text string }

func (c *chunk) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"sessionId":`...)
	dst = AppendString(dst, c.session)
	dst = append(dst, `,"update":{"sessionUpdate":"agent_message_chunk","messageId":"0192f3aa-1111-7222-8333-944444444444","content":{"type":"text","text":`...)
	dst = AppendString(dst, c.text)
	return append(dst, `}}}`...)
}

var benchChunk = &chunk{"0192f3aa-0000-7000-8000-900000000000", "a dozen words of text as a model sends them in one go, no more\n"}

func BenchmarkRoundTrip(b *testing.B) {
	server, client := osPipes(b)
	echo := Method{Admit: func(_ context.Context, p json.RawMessage) (Task, error) {
		return func(context.Context) (Reply, error) { return Reply{Result: p}, nil }, nil
	}}
	cs := NewConn(server, Options{Client: true})
	cc := NewConn(client, Options{Client: true, IDs: NewIDs("zc-out-")})
	go func() { _ = cs.Serve(b.Context(), Methods{"echo": echo}) }()
	go func() { _ = cc.Serve(b.Context(), Methods{}) }()
	b.Run("one at a time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := cc.Call(b.Context(), "echo", benchChunk); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("64 at a time", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := cc.Call(b.Context(), "echo", benchChunk); err != nil {
					b.Error(err)
				}
			}
		})
	})
	cc.Close(nil)
	<-cc.Done()
	<-cs.Done()
}

// BenchmarkNotification sends updates from one Conn to another, which handles
// each of them.
func BenchmarkNotification(b *testing.B) {
	for name, params := range map[string]any{
		"appender": benchChunk,
		"raw":      json.RawMessage(benchChunk.AppendJSON(nil)),
		"struct": map[string]any{"sessionId": benchChunk.session, "update": map[string]any{
			"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": benchChunk.text}}},
	} {
		b.Run(name, func(b *testing.B) {
			server, client := osPipes(b)
			got, all := 0, make(chan struct{})
			cs := NewConn(server, Options{Client: true})
			cc := NewConn(client, Options{Client: true})
			go func() { _ = cs.Serve(b.Context(), Methods{}) }()
			n := b.N
			go func() {
				_ = cc.Serve(b.Context(), Methods{"session/update": {Notify: func(context.Context, json.RawMessage) (Task, error) {
					if got++; got == n {
						close(all)
					}
					return nil, nil
				}}})
			}()
			b.ReportAllocs()
			b.ResetTimer()
			for range n {
				if err := cs.Notify(b.Context(), "session/update", params); err != nil {
					b.Fatal(err)
				}
			}
			<-all
			b.StopTimer()
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msg/s")
			cs.Close(nil)
			<-cs.Done()
			<-cc.Done()
		})
	}
}

func BenchmarkEnvelope(b *testing.B) {
	update, _ := appendCall(nil, "", "session/update", benchChunk)
	prompt, _ := appendCall(nil, "17", "session/prompt", json.RawMessage(`{"sessionId":"0192f3aa-0000-7000-8000-900000000000","prompt":[{"type":"text","text":"`+
		strings.Repeat("look at the file and tell me ", 10)+`"},{"type":"resource_link","uri":"file:///w/a.go","name":"a.go"}]}`))
	picture, _ := appendCall(nil, "18", "session/prompt", json.RawMessage(`{"prompt":[{"type":"image","data":"`+strings.Repeat("QUJDREVGR0hJSktM", 2<<20)+`"}]}`))
	chinese, _ := appendCall(nil, "19", "session/prompt", json.RawMessage(`{"prompt":[{"type":"text","text":"`+strings.Repeat("日本語", 1<<20)+`"}]}`))
	for _, tt := range []struct {
		name string
		in   []byte
	}{{"update", update}, {"prompt", prompt}, {"picture 32 MiB", picture}, {"text 9 MiB not ASCII", chinese}} {
		b.Run("scan/"+tt.name, func(b *testing.B) {
			b.SetBytes(int64(len(tt.in)))
			b.ReportAllocs()
			var s scanner
			for b.Loop() {
				if _, err := s.message(tt.in, DefaultMaxDepth); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("encoding json/"+tt.name, func(b *testing.B) {
			b.SetBytes(int64(len(tt.in)))
			b.ReportAllocs()
			for b.Loop() {
				var m struct {
					Version string          `json:"jsonrpc"`
					ID      json.RawMessage `json:"id"`
					Method  string          `json:"method"`
					Params  json.RawMessage `json:"params"`
				}
				if err := json.Unmarshal(tt.in, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
