package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// program is an agent under measurement: how to start it, and where it keeps
// things. Every run shares the directory, as it does for a user.
type program struct {
	name    string
	command func(dir string) []string
	dir     string
}

// process is one run of a program.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	born   time.Time
	done   chan struct{} // closed when the output has ended

	mu      sync.Mutex
	next    int
	waiting map[string]chan reply
	turn    *turn
	err     error // why the output ended
}

// reply is an answer and when it was read.
type reply struct {
	at     time.Time
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// turn is what was seen while a request ran.
type turn struct {
	first   time.Time // of the first text of the agent
	updates int       // message chunks of either side
	firstCh chan struct{}
}

// start runs the program.
func (p *program) start(ctx context.Context) (*process, error) {
	args := p.command(p.dir)
	c := &process{waiting: map[string]chan reply{}, done: make(chan struct{})}
	c.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	c.cmd.Dir = p.dir
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir}
	c.cmd.Stderr = &c.stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdin = stdin
	c.born = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.read(stdout)
	return c, nil
}

// ready starts the program and initializes it; it returns how long that took.
func (p *program) ready(ctx context.Context) (*process, time.Duration, error) {
	c, err := p.start(ctx)
	if err != nil {
		return nil, 0, err
	}
	r, err := c.call("initialize", `{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	if err != nil {
		return nil, 0, errors.Join(err, c.stop())
	}
	return c, r.at.Sub(c.born), nil
}

// stop ends the input and waits for the exit.
func (c *process) stop() error {
	err := c.stdin.Close()
	<-c.done
	if e := c.cmd.Wait(); e != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(c.cmd.Path), e, &c.stderr)
	}
	return err
}

// begin sends a request and returns where its answer comes.
func (c *process) begin(method, params string, t *turn) (<-chan reply, error) {
	ch := make(chan reply, 1)
	c.mu.Lock()
	c.next++
	id := strconv.Itoa(c.next)
	c.waiting[id] = ch
	c.turn = t
	c.mu.Unlock()
	_, err := fmt.Fprintf(c.stdin, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", id, method, params)
	return ch, err
}

// call sends a request and waits for its answer.
func (c *process) call(method, params string) (reply, error) {
	ch, err := c.begin(method, params, nil)
	if err != nil {
		return reply{}, err
	}
	return c.await(method, ch)
}

func (c *process) await(method string, ch <-chan reply) (reply, error) {
	select {
	case r := <-ch:
		if r.Error != nil {
			return r, fmt.Errorf("%s: error %d: %s", method, r.Error.Code, r.Error.Message)
		}
		return r, nil
	case <-c.done:
		return reply{}, fmt.Errorf("%s: the agent ended: %w\n%s", method, c.err, &c.stderr)
	case <-time.After(time.Minute):
		return reply{}, fmt.Errorf("%s: no answer within a minute\n%s", method, &c.stderr)
	}
}

// notify sends a notification.
func (c *process) notify(method, params string) error {
	_, err := fmt.Fprintf(c.stdin, `{"jsonrpc":"2.0","method":%q,"params":%s}`+"\n", method, params)
	return err
}

// session opens a session and returns its id as JSON.
func (c *process) session(dir string) (string, error) {
	r, err := c.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, dir))
	if err != nil {
		return "", err
	}
	var s struct {
		SessionID json.RawMessage `json:"sessionId"`
	}
	err = json.Unmarshal(r.Result, &s)
	return string(s.SessionID), err
}

// prompt starts a turn.
func (c *process) prompt(session, wish string) (*turn, <-chan reply, error) {
	t := &turn{firstCh: make(chan struct{})}
	ch, err := c.begin("session/prompt", fmt.Sprintf(`{"sessionId":%s,"prompt":[{"type":"text","text":%q}]}`, session, wish), t)
	return t, ch, err
}

// read takes the agent's output. Updates are counted and not decoded, so that
// this side is not what is measured.
func (c *process) read(stdout io.Reader) {
	defer close(c.done)
	in := bufio.NewReaderSize(stdout, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			c.err = err
			return
		}
		if bytes.Contains(line, []byte(`"method":"session/update"`)) {
			c.update(line)
			continue
		}
		var r struct {
			ID json.RawMessage `json:"id"`
			reply
		}
		if err := json.Unmarshal(line, &r); err != nil {
			c.err = fmt.Errorf("not JSON: %.100s", line)
			return
		}
		r.at = time.Now()
		c.mu.Lock()
		ch := c.waiting[string(r.ID)]
		delete(c.waiting, string(r.ID))
		c.mu.Unlock()
		if ch != nil {
			ch <- r.reply
		}
	}
}

func (c *process) update(line []byte) {
	if !bytes.Contains(line, []byte(`_message_chunk"`)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.turn
	if t == nil {
		return
	}
	t.updates++
	if t.first.IsZero() && bytes.Contains(line, []byte(`"agent_message_chunk"`)) {
		t.first = time.Now()
		if t.firstCh != nil {
			close(t.firstCh)
		}
	}
}
