package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// posts is a client's connection by Streamable HTTP, as frames: what it writes
// is posted, and what it reads comes by the streams of the connection and of
// each session that it has named.
type posts struct {
	net    *network
	token  string
	http   *http.Client
	ctx    context.Context
	cancel context.CancelFunc
	frames chan []byte

	mu     sync.Mutex
	conn   string            // id
	asks   map[string]string // sessions of the agent's requests, by id
	open   map[string]bool   // streams, by session; "" is the connection's
	cables []*cable
}

var _ jsonrpc.Frames = (*posts)(nil)

func (n *network) posts(token string) *posts {
	p := &posts{net: n, token: token, frames: make(chan []byte, 10_000), asks: map[string]string{}, open: map[string]bool{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := n.dial(ctx)
		if err == nil {
			p.mu.Lock()
			p.cables = append(p.cables, c)
			p.mu.Unlock()
		}
		return c, err
	}}}
	return p
}

// Read returns the next message of any stream.
func (p *posts) Read() ([]byte, error) {
	select {
	case frame := <-p.frames:
		return frame, nil
	case <-p.ctx.Done():
		return nil, io.EOF
	}
}

// Close ends everything without a word.
func (p *posts) Close() error {
	p.cancel()
	p.http.CloseIdleConnections()
	p.cut()
	return nil
}

// cut cuts what the connection is carried by. Its streams are opened again.
func (p *posts) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.cables {
		c.cut()
	}
	p.cables = nil
}

// bye ends the connection in an orderly way.
func (p *posts) bye() {
	if answer, err := p.do(p.ctx, http.MethodDelete, "", nil, "", ""); err == nil {
		answer.Body.Close()
	}
}

// do makes a request. The caller closes the body of the answer.
func (p *posts) do(ctx context.Context, method, session string, body []byte, name, value string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1/acp", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	conn := p.conn
	p.mu.Unlock()
	for k, v := range map[string]string{
		"Authorization": "Bearer " + p.token, "Acp-Connection-Id": conn, "Acp-Session-Id": session, name: value,
	} {
		if k != "" && v != "" {
			r.Header.Set(k, v)
		}
	}
	answer, err := p.http.Do(r)
	if err == nil && answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		answer.Body.Close()
		return nil, fmt.Errorf("%s: %s %s", method, answer.Status, text)
	}
	return answer, err
}

// Write posts a message. The first one opens the connection.
func (p *posts) Write(frame []byte) error {
	session := p.sessionOf(frame)
	p.mu.Lock()
	first := p.conn == ""
	p.mu.Unlock()
	if session != "" {
		p.listen(session)
	}
	answer, err := p.do(p.ctx, http.MethodPost, session, frame, "Content-Type", "application/json")
	if err != nil {
		p.cancel() // whether it arrived nobody knows
		return err
	}
	defer answer.Body.Close()
	if first {
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			p.cancel()
			return err
		}
		p.mu.Lock()
		p.conn = answer.Header.Get("Acp-Connection-Id")
		p.mu.Unlock()
		p.frames <- bytes.TrimSpace(body)
		p.listen("")
	}
	return nil
}

// sessionOf is the session that a message of the client belongs to.
func (p *posts) sessionOf(frame []byte) string {
	var m message
	_ = json.Unmarshal(frame, &m)
	if m.Method == "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.asks[string(m.ID)]
	}
	var params struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(m.Params, &params)
	return params.SessionID
}

// listen opens a stream, once.
func (p *posts) listen(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[session] {
		return
	}
	p.open[session] = true
	go p.follow(session) // ends with Close
}

// follow reads a stream, and opens it again where it broke off.
func (p *posts) follow(session string) {
	last := ""
	for p.ctx.Err() == nil {
		answer, err := p.do(p.ctx, http.MethodGet, session, nil, "Last-Event-ID", last)
		if err == nil {
			last, err = p.events(answer.Body, session, last)
			answer.Body.Close()
		}
		if err != nil && strings.HasPrefix(err.Error(), "GET: 4") {
			p.cancel()
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.ctx.Done():
		}
	}
}

// events reads the events of one answer and returns the id of the last.
func (p *posts) events(body io.Reader, session, last string) (string, error) {
	lines := bufio.NewReader(body)
	id, data := "", ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return last, errors.Join(err)
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "id":
			id = value
		case name == "data":
			data += value
		case line == "\n" && data != "":
			p.came(session, []byte(data))
			last, data = id, ""
		}
	}
}

// came takes a message of the agent.
func (p *posts) came(session string, frame []byte) {
	var m message
	_ = json.Unmarshal(frame, &m)
	if m.Method != "" && m.ID != nil {
		p.mu.Lock()
		p.asks[string(m.ID)] = session
		p.mu.Unlock()
	}
	var made struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(m.Result, &made) == nil && made.SessionID != "" {
		p.listen(made.SessionID)
	}
	select {
	case p.frames <- frame:
	case <-p.ctx.Done():
	}
}
