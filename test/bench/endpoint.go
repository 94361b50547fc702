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
	"sync"
	"time"
)

// endpoint is the model of the daemon's figures: OpenAI-compatible, in this
// process. Like provider it does what the newest user message tells it, see
// wish, but it also asks for tools, writes the time into its words, and keeps
// accounts to hold the daemon's metrics against.
type endpoint struct {
	url    string // base URL, ends in /v1
	server *http.Server
	done   chan error
	born   time.Time // what the times in words are counted from

	mu    sync.Mutex
	own   map[string]time.Duration // how long the first word took to leave, by the wish's key
	books accounts
}

// accounts are what an endpoint was asked for and gave.
type accounts struct {
	requests  int // all
	complete  int // sent to their end
	calls     int // tool calls asked for
	tokensIn  int // of complete replies
	tokensOut int
}

// wish is what a prompt asks the endpoint for, written as words of the form
// name=value.
type wish struct {
	key    string        // to be found by in own; may be empty
	delay  time.Duration // before the first word
	chunks int           // words of the answer
	every  time.Duration // between them; 0 sends all at once
	tools  []string      // called one after the other before the answer
}

func (w wish) String() string {
	s := fmt.Sprintf("key=%s delay=%s chunks=%d every=%s", w.key, w.delay, w.chunks, w.every)
	if len(w.tools) > 0 {
		s += " tools=" + strings.Join(w.tools, ",")
	}
	return s
}

// parseWish reads what String writes. Words around it are passed over.
func parseWish(text string) wish {
	w := wish{chunks: 1}
	for field := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "key":
			w.key = value
		case "delay":
			w.delay, _ = time.ParseDuration(value)
		case "every":
			w.every, _ = time.ParseDuration(value)
		case "chunks":
			w.chunks, _ = strconv.Atoi(value)
		case "tools":
			w.tools = strings.Split(value, ",")
		}
	}
	return w
}

// newEndpoint starts one on a free port of the loopback interface.
func newEndpoint(ctx context.Context) (*endpoint, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoint{
		url: "http://" + listener.Addr().String() + "/v1", done: make(chan error, 1),
		born: time.Now(), own: map[string]time.Duration{},
	}
	e.server = &http.Server{Handler: e, ReadHeaderTimeout: patience}
	go func() { e.done <- e.server.Serve(listener) }()
	return e, nil
}

// Close ends all exchanges and waits for the server.
func (e *endpoint) Close() error {
	err := e.server.Close()
	if end := <-e.done; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// now is the time as it stands in words.
func (e *endpoint) now() time.Duration { return time.Since(e.born) }

// took returns, once, how long the first word of a wish took to leave.
func (e *endpoint) took(key string) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, ok := e.own[key]
	delete(e.own, key)
	return d, ok
}

// accounts returns what was done so far.
func (e *endpoint) accounts() accounts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.books
}

func (e *endpoint) count(change func(*accounts)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.books)
}

// ServeHTTP streams one completion.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	e.count(func(a *accounts) { a.requests++ })
	wish, step, err := asked(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	reason, out := "stop", wish.chunks
	switch {
	case step < len(wish.tools):
		reason, out = "tool_calls", 1
		e.count(func(a *accounts) { a.calls++ })
		fmt.Fprintf(w, chunkOf, call(wish, step), "null")
	case !e.speak(w, r, wish, came):
		return
	}
	fmt.Fprintf(w, chunkOf, "{}", strconv.Quote(reason))
	const in = 100
	e.count(func(a *accounts) {
		a.complete++
		a.tokensIn += in
		a.tokensOut += out
	})
	fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", in, out)
}

// chunkOf is one event, with its delta and its reason to finish in JSON.
const chunkOf = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"

// asked reads a request: its wish, and how many tools have been called for it.
func asked(r *http.Request) (w wish, step int, err error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return wish{}, 0, err
	}
	var body struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return wish{}, 0, err
	}
	text := ""
	for _, m := range body.Messages {
		switch m.Role {
		case "user":
			text, step = plain(m.Content), 0
		case "tool":
			step++
		}
	}
	return parseWish(text), step, nil
}

// plain is the text of a message's content: a string, or parts.
func plain(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		text += p.Text + " "
	}
	return text
}

// speak sends the words of an answer. It reports false if nobody listens.
func (e *endpoint) speak(w io.Writer, r *http.Request, wish wish, came time.Time) bool {
	pause := func(d time.Duration) bool {
		if d <= 0 {
			return true
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-r.Context().Done():
			return false
		}
	}
	flush := http.NewResponseController(w.(http.ResponseWriter))
	if !pause(wish.delay) {
		return false
	}
	for i := range wish.chunks {
		if i > 0 && !pause(wish.every) {
			return false
		}
		fmt.Fprintf(w, chunkOf, fmt.Sprintf(`{"content":"@%d "}`, e.now()), "null")
		if i == 0 && wish.key != "" {
			e.mu.Lock()
			e.own[wish.key] = time.Since(came)
			e.mu.Unlock()
		}
		if (i == 0 || wish.every > 0) && flush.Flush() != nil {
			return false
		}
	}
	return true
}

// call is the delta that asks for a tool.
func call(w wish, step int) string {
	name, args := w.tools[step], map[string]string{}
	switch name {
	case "write_file":
		args["path"], args["content"] = fmt.Sprintf("%s-%d.txt", w.key, step), "some words\n"
	case "read_file":
		args["path"] = "notes.txt"
	case "shell":
		args["command"] = "touch made-by-shell && sleep 0.02"
	}
	raw, _ := json.Marshal(args) // strings alone
	return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call-%s-%d","type":"function","function":{"name":%q,"arguments":%q}}]}`, w.key, step, name, raw)
}
