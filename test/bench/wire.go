package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// wire carries messages between a client and the daemon. take is called for
// each message that comes, by one goroutine at a time, and the message is good
// until it returns.
type wire interface {
	// send sends one message; session is the one it belongs to, or "".
	send(message []byte, session string) error
	// listen makes what belongs to a session be heard from now on.
	listen(session string) error
	// close ends in an orderly way, cut as a broken network does. Both return
	// when nothing more is taken.
	close() error
	cut()
}

// dialer opens a wire.
type dialer func(ctx context.Context, take func([]byte)) (wire, error)

// socket is a WebSocket.
type socket struct {
	ws   *websocket.Conn
	mu   sync.Mutex // of writing
	done chan struct{}
}

// refusedError is the answer to a client that was turned away.
type refusedError struct {
	status int
	retry  string // Retry-After
}

func (e *refusedError) Error() string { return fmt.Sprintf("refused with %d", e.status) }

// dialSocket opens a WebSocket.
func dialSocket(url, token string) dialer {
	return func(ctx context.Context, take func([]byte)) (wire, error) {
		d := websocket.Dialer{Subprotocols: []string{"acp.v1"}, HandshakeTimeout: time.Minute, ReadBufferSize: 4 << 10, WriteBufferSize: 1 << 10}
		ws, answer, err := d.DialContext(ctx, url, http.Header{"Authorization": {"Bearer " + token}})
		if answer != nil && errors.Is(err, websocket.ErrBadHandshake) {
			return nil, &refusedError{answer.StatusCode, answer.Header.Get("Retry-After")}
		}
		if err != nil {
			return nil, err
		}
		s := &socket{ws: ws, done: make(chan struct{})}
		go s.read(take)
		return s, nil
	}
}

func (s *socket) read(take func([]byte)) {
	defer close(s.done)
	var buf []byte
	for {
		_, r, err := s.ws.NextReader()
		if err == nil {
			buf, err = readInto(buf[:0], r)
		}
		if err != nil {
			return
		}
		take(buf)
	}
}

// readInto reads all of r into a buffer that is used again.
func readInto(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

func (s *socket) send(message []byte, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ws.WriteMessage(websocket.TextMessage, message)
}

func (s *socket) listen(string) error { return nil }

func (s *socket) close() error {
	s.mu.Lock()
	err := s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(patience))
	s.mu.Unlock()
	if err == nil {
		err = s.ws.SetReadDeadline(time.Now().Add(patience))
	}
	<-s.done
	return errors.Join(err, s.ws.Close())
}

func (s *socket) cut() {
	_ = s.ws.NetConn().Close() // that is the cut
	<-s.done
}

// pipe is a child process that speaks on its standard streams.
type pipe struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	mu    sync.Mutex
	done  chan struct{} // closed when its output has ended
}

// dialPipe starts a child.
func dialPipe(args []string, env []string, dir string) dialer {
	return func(ctx context.Context, take func([]byte)) (wire, error) {
		p := &pipe{cmd: exec.CommandContext(ctx, args[0], args[1:]...), done: make(chan struct{})}
		p.cmd.Env, p.cmd.Dir = env, dir
		var err error
		if p.stdin, err = p.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		stdout, err := p.cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := p.cmd.Start(); err != nil {
			return nil, err
		}
		go func() {
			defer close(p.done)
			in := bufio.NewReaderSize(stdout, 1<<16)
			for {
				line, err := readLine(in)
				if err != nil {
					return
				}
				take(line)
			}
		}()
		return p, nil
	}
}

func (p *pipe) send(message []byte, _ string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.stdin.Write(append(message, '\n'))
	return err
}

func (p *pipe) listen(string) error { return nil }

func (p *pipe) close() error {
	p.mu.Lock()
	err := p.stdin.Close()
	p.mu.Unlock()
	<-p.done
	return errors.Join(err, p.cmd.Wait())
}

func (p *pipe) cut() {
	_ = p.cmd.Process.Kill() // that is the cut
	<-p.done
	_ = p.cmd.Wait() // killed
}
