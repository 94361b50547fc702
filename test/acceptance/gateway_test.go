package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/bootstrap"
)

// gatewayToken names the variable with the token that the clients of a script
// show unless its tokens section gives them one of their own. Its value is a
// canary, so the token of a run may turn up nowhere.
const gatewayToken = "BERTH_GATEWAY_TOKEN"

// gateway runs a daemon for one script, and its clients: WebSockets, or
// bridges in front of it.
type gateway struct {
	t      *testing.T
	s      *scenario
	w      world
	bridge bool
	mon    *monitor
	log    *logBuffer
	tokens map[string]string // by client

	mu      sync.Mutex
	daemon  *process
	url     string
	wire    *wire
	sockets []*socket
	bridges map[string]*process // by client
	last    *process            // of them
}

func runGateway(t *testing.T, s *scenario, bridge bool) {
	w := s.prepare(t)
	s.warmUp(t, w)
	kept := newLeaks()
	r := &gateway{
		t: t, s: s, w: w, bridge: bridge, mon: newMonitor(false), log: &logBuffer{},
		tokens: map[string]string{}, bridges: map[string]*process{},
	}
	for _, line := range s.tokens {
		r.makeToken(line)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	run, err := transcript.Play(ctx, s.script, transcript.Options{
		Connect: r.connect, Monitor: watchers(r.mon.frame, kept.frame),
		Vars: map[string]string{"WORK": w.work, "DATA": w.data, "CONFIG": w.config},
		Kill: r.kill, Restart: r.restart, Cut: r.cut, Exit: r.exit, Update: *update,
	})
	for _, p := range r.bridges {
		r.joinBridge(p)
	}
	for _, c := range r.sockets {
		<-c.Gone()
	}
	if serr := r.stop(); serr != nil {
		t.Error(serr)
	}
	s.judge(t, run, err, r.mon, r.log.String())
	s.checkLog(t, r.log.String())
	s.checkFiles(t, w)
	checkLeaks(t, kept, w, r.log.String())
}

// makeToken makes the token that a line of the tokens section asks for: the
// name of the client that shows it, and flags of "berth token create".
func (r *gateway) makeToken(line string) {
	r.t.Helper()
	f := strings.Fields(r.w.fill(line))
	out, err := r.command(append([]string{"token", "create", "--name"}, f...)...).Output()
	if err != nil {
		r.t.Fatalf("berth token create --name %s: %v", line, err)
	}
	r.tokens[f[0]] = strings.TrimSpace(string(out))
}

// command is a command of the binary in the script's world.
func (r *gateway) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, append(args, "--config-dir", r.w.config, "--data-dir", r.w.data)...)
	cmd.Dir = r.w.config
	cmd.Env = slices.DeleteFunc(cleanEnv(r.w), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(r.s.unset, name)
	})
	return cmd
}

// start starts the daemon and waits until it listens. The caller holds mu.
func (r *gateway) start(ctx context.Context) error {
	cmd := r.command("daemon", "--listen", "127.0.0.1:0", "--log-level", "trace")
	cmd.Env = append(cmd.Env, "BERTH_store__required=true")
	ready := &listens{to: r.log, yes: make(chan struct{})}
	cmd.Stderr = ready
	if err := cmd.Start(); err != nil {
		return err
	}
	r.daemon = wait(cmd)
	select {
	case <-ready.yes:
	case <-r.daemon.done:
		return errors.New("the daemon did not start")
	case <-ctx.Done():
		return errors.New("the daemon does not listen")
	}
	info, _, err := bootstrap.FindDaemon(r.w.data)
	if err != nil {
		return err
	}
	r.url = info.URL
	if r.s.cuts() {
		r.wire, err = newWire(info.Address)
		if err != nil {
			return err
		}
		r.url = r.wire.url()
	}
	return nil
}

// connect makes a connection of a client to the daemon, which is started if
// there is none.
func (r *gateway) connect(ctx context.Context, client string) (jsonrpc.Frames, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mon.reset(client)
	if old := r.bridges[client]; old != nil {
		r.joinBridge(old) // it may hold the client's sessions until then
	}
	if r.daemon == nil {
		if err := r.start(ctx); err != nil {
			return nil, err
		}
	}
	if r.bridge {
		return r.startBridge(client)
	}
	token, own := r.tokens[client]
	if !own {
		token = os.Getenv(gatewayToken)
	}
	c, err := ws.Dial(ctx, ws.DialConfig{URL: r.url, Token: token})
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: c, run: r, client: client}
	r.sockets = append(r.sockets, s)
	return s, nil
}

// startBridge starts a client's bridge. It finds the daemon by itself, unless
// the wire lies between them.
func (r *gateway) startBridge(client string) (jsonrpc.Frames, error) {
	args := []string{"bridge", "--verbose"}
	if r.wire != nil {
		args = append(args, "--url", r.wire.url())
	}
	cmd := r.command(args...)
	token, own := r.tokens[client]
	cmd.Env = slices.DeleteFunc(cmd.Env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(name, "BRIDGE_TOKEN") || name == gatewayToken && (own || r.wire == nil)
	})
	if own {
		cmd.Env = append(cmd.Env, gatewayToken+"="+token)
	}
	cmd.Stderr = r.log
	p, frames, err := pipe(cmd)
	if err != nil {
		return nil, err
	}
	r.bridges[client], r.last = p, p
	return frames, nil
}

// joinBridge waits for the end of a bridge whose input has ended.
func (r *gateway) joinBridge(p *process) {
	select {
	case <-p.done:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 && !p.killed {
			r.t.Errorf("a bridge ended with code %d", code)
		}
	case <-time.After(patience):
		r.t.Errorf("I9: a bridge still runs %v after its input ended", patience)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// kill kills the daemon; the words that follow are about a new one.
func (r *gateway) kill(context.Context, string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.daemon == nil {
		return errors.New("nothing to kill")
	}
	for _, p := range r.bridges {
		p.killed = true // without its daemon
	}
	err := r.daemon.cmd.Process.Kill()
	<-r.daemon.done
	r.daemon = nil
	return errors.Join(err, r.wire.close())
}

// restart ends the client's bridge, whose input has ended, and the daemon.
func (r *gateway) restart(_ context.Context, client string) error {
	if p := r.bridges[client]; p != nil {
		r.joinBridge(p)
	}
	return r.stop()
}

// exit is the end of the newest bridge. A daemon does not end with its clients:
// it is told to.
func (r *gateway) exit(ctx context.Context) (int, error) {
	if !r.bridge {
		return 0, r.stop()
	}
	select {
	case <-r.last.done:
		return r.last.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, errors.New("the bridge still runs")
	}
}

// stop ends the daemon as a service manager does.
func (r *gateway) stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.daemon
	if p == nil {
		return nil
	}
	r.daemon = nil
	defer r.wire.close()
	if err := endDaemon(p.cmd.Process); err != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
		return nil
	}
	select {
	case <-p.done:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("the daemon ended with code %d", code)
		}
		return nil
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("I9: the daemon still runs %v after it was told to end", patience)
	}
}

// cut cuts the sockets below every client. What is written down on this side
// is not lost; what is under way is.
func (r *gateway) cut(context.Context, string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire.cut()
	return nil
}

// socket is a client's WebSocket.
type socket struct {
	*ws.Conn
	run    *gateway
	client string
	left   bool // the client closed; of the script's goroutine and, behind Done, of its reader
}

// CloseWrite ends the connection: a WebSocket has no half that could stay open.
func (s *socket) CloseWrite() error {
	s.left = true
	return s.Close()
}

// Read returns io.EOF once the client itself has closed.
func (s *socket) Read() ([]byte, error) {
	data, err := s.Conn.Read()
	if err != nil && s.left {
		err = io.EOF
	}
	return data, err
}

// Drop cuts the connection without a word.
func (s *socket) Drop() error {
	if s.run.wire == nil {
		return errors.New("there is no wire to cut")
	}
	s.run.wire.cut()
	<-s.Done()
	return nil
}

// listens passes a log on and tells when it says that the daemon listens.
type listens struct {
	to   *logBuffer
	line []byte
	said bool
	yes  chan struct{}
}

// Write belongs to one goroutine.
func (l *listens) Write(p []byte) (int, error) {
	if !l.said {
		l.line = append(l.line, p...)
		if l.said = bytes.Contains(l.line, []byte("listening on ")); l.said {
			l.line = nil
			defer close(l.yes)
		}
	}
	return l.to.Write(p)
}
