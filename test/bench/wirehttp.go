package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// streams is a connection of Streamable HTTP.
type streams struct {
	url, token string
	id         string // Acp-Connection-Id
	http       *http.Client
	ctx        context.Context //nolint:containedctx // of its streams
	cancel     context.CancelFunc
	take       func([]byte)
	taking     sync.Mutex
	reading    sync.WaitGroup

	mu   sync.Mutex
	open map[string]*listening // by session
}

// listening is one stream.
type listening struct {
	cancel context.CancelFunc
	done   chan struct{}
	last   string // the id of the last event
}

// newNetwork makes network connections of HTTP/1.1, or one of HTTP/2 in clear
// text.
func newNetwork(two bool) *http.Client {
	t := &http.Transport{Protocols: new(http.Protocols), ReadBufferSize: 4 << 10, WriteBufferSize: 1 << 10}
	t.Protocols.SetHTTP1(!two)
	t.Protocols.SetUnencryptedHTTP2(two)
	return &http.Client{Transport: t}
}

// dialStreams opens a connection. The first message sent must be initialize.
func dialStreams(url, token string, network *http.Client) dialer {
	return func(_ context.Context, take func([]byte)) (wire, error) {
		s := &streams{url: url, token: token, http: network, take: take, open: map[string]*listening{}}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		return s, nil
	}
}

// request sends one request.
func (s *streams) request(ctx context.Context, method, session string, body []byte, head ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if s.id != "" {
		r.Header.Set("Acp-Connection-Id", s.id)
	}
	if session != "" {
		r.Header.Set("Acp-Session-Id", session)
	}
	for i := 0; i+1 < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	return s.http.Do(r)
}

// send posts a message. The first one opens the connection and its stream.
func (s *streams) send(message []byte, session string) error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	answer, err := s.request(ctx, http.MethodPost, session, message, "Content-Type", "application/json")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if s.id != "" {
		if answer.StatusCode != http.StatusAccepted {
			return fmt.Errorf("a message was answered %s: %.200s", answer.Status, body)
		}
		return nil
	}
	if s.id = answer.Header.Get("Acp-Connection-Id"); answer.StatusCode != http.StatusOK || s.id == "" {
		return &refusedError{answer.StatusCode, answer.Header.Get("Retry-After")}
	}
	if err := s.listen(""); err != nil {
		return err
	}
	s.hand(body)
	return nil
}

func (s *streams) hand(message []byte) {
	s.taking.Lock()
	defer s.taking.Unlock()
	s.take(message)
}

// listen opens the stream of a session, or with "" the connection's own.
func (s *streams) listen(session string) error { return s.follow(session, "") }

// again breaks the stream of a session and opens it anew where it was.
func (s *streams) again(session string) error {
	s.mu.Lock()
	l := s.open[session]
	s.mu.Unlock()
	l.cancel()
	<-l.done
	return s.follow(session, l.last)
}

// follow opens a stream, behind the given event if there is one.
func (s *streams) follow(session, last string) error {
	head := []string{"Accept", "text/event-stream"}
	if last != "" {
		head = append(head, "Last-Event-ID", last)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	answer, err := s.request(ctx, http.MethodGet, session, nil, head...)
	if err != nil {
		cancel()
		return err
	}
	if answer.StatusCode != http.StatusOK {
		defer cancel()
		defer answer.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 200)) // for the message alone
		return fmt.Errorf("a stream was answered %s: %s", answer.Status, body)
	}
	l := &listening{cancel: cancel, done: make(chan struct{}), last: last}
	s.mu.Lock()
	s.open[session] = l
	s.mu.Unlock()
	s.reading.Go(func() {
		defer cancel()
		defer close(l.done)
		defer answer.Body.Close()
		s.hear(answer.Body, l)
	})
	return nil
}

// hear hands on what comes on a stream. An event counts when it is whole.
func (s *streams) hear(body io.Reader, l *listening) {
	in := bufio.NewReaderSize(body, 4<<10)
	id := ""
	for {
		line, err := readLine(in)
		if err != nil {
			return
		}
		if v, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			id = string(bytes.TrimSpace(v))
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			s.hand(data)
			l.last = id
		}
	}
}

// readLine reads a line of any length.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = in.ReadSlice('\n')
		long = append(long, line...)
	}
	return long, err
}

func (s *streams) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := s.request(ctx, http.MethodDelete, "", nil)
	if err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusAccepted {
			err = errors.New("DELETE was answered " + strings.ToLower(answer.Status))
		}
	}
	s.cut()
	return err
}

func (s *streams) cut() {
	s.cancel()
	s.reading.Wait()
	s.http.CloseIdleConnections()
}
