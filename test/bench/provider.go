package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// provider is an OpenAI-compatible endpoint in this process. The newest user
// message tells it what to say: "chunks=5000 every=2ms".
type provider struct {
	url    string // base URL, ends in /v1
	server *http.Server
	done   chan error
}

// word is what one chunk holds; about a token.
const word = "benchmark "

// serve starts a provider on a free port of the loopback interface.
func serve(ctx context.Context) (*provider, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{url: "http://" + listener.Addr().String() + "/v1", done: make(chan error, 1)}
	p.server = &http.Server{Handler: http.HandlerFunc(complete), ReadHeaderTimeout: patience}
	go func() { p.done <- p.server.Serve(listener) }()
	return p, nil
}

// Close ends all exchanges and waits for the server.
func (p *provider) Close() error {
	err := p.server.Close()
	if e := <-p.done; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// complete streams one completion, as fast as it is read.
func complete(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var body struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	wish := ""
	for _, m := range body.Messages {
		if m.Role == "user" {
			wish = string(m.Content)
		}
	}
	chunks, every := wanted(wish)
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for range chunks {
		if every > 0 {
			select {
			case <-time.After(every):
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", word)
		if every > 0 || chunks == 1 {
			if flush.Flush() != nil {
				return
			}
		}
	}
	io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// wanted reads the numbers of a wish.
func wanted(wish string) (chunks int, every time.Duration) {
	chunks = 1
	for field := range strings.FieldsFuncSeq(wish, func(r rune) bool { return r == ' ' || r == '"' }) {
		if v, ok := strings.CutPrefix(field, "chunks="); ok {
			if n, err := strconv.Atoi(v); err == nil {
				chunks = n
			}
		}
		if v, ok := strings.CutPrefix(field, "every="); ok {
			if d, err := time.ParseDuration(v); err == nil {
				every = d
			}
		}
	}
	return chunks, every
}
