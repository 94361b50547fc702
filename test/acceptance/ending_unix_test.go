//go:build unix

package acceptance

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
)

// endingModel hangs in each of the ways a turn can be found in by its end.
const endingModel = `--- next when "hang"
text "Hanging."
hang
--- next when "deaf"
text "Deaf."
stall 10m
--- next when "ask"
call write_file {"path":"effect.txt","content":"once\n"}
--- next always
text "Idle."
`

// occupied are the states a process is in when it is told to end. Each prompt
// that runs is to be answered "cancelled".
var occupied = []struct {
	name, prompt string
	ready        func(message) bool
}{
	{name: "idle"},
	{"while the model hangs", "hang", saysText("Hanging.")},
	{"while the model does not listen", "deaf", saysText("Deaf.")},
	{"with a permission open", "ask", func(m message) bool { return m.Method == "session/request_permission" }},
}

func saysText(text string) func(message) bool {
	return func(m message) bool { return strings.Contains(string(m.Params), text) }
}

// occupy brings a process to a state and returns the session.
func occupy(t *testing.T, prompt string, ready func(message) bool) (*agentProcess, world, string) {
	t.Helper()
	w := (&scenario{model: endingModel}).prepare(t)
	p := launch(t, w, nil, []string{"BERTH_store__required=true"})
	return p, w, p.occupy(w, prompt, ready)
}

// occupy brings an agent to a state and returns the session.
func (p *agentProcess) occupy(w world, prompt string, ready func(message) bool) string {
	p.t.Helper()
	p.initialize()
	id := p.newSession(w)
	if prompt != "" {
		p.request("p", "session/prompt", promptOf(id, prompt))
		p.await("the state", ready)
	}
	return id
}

// TestEnding: however the process is told to end, what runs is cancelled and
// answered, and it is gone in time with status 0.
func TestEnding(t *testing.T) {
	for _, how := range []struct {
		name  string
		do    func(*agentProcess)
		limit time.Duration
	}{
		{"end of input", func(p *agentProcess) { p.in.Close() }, 3 * time.Second},
		{"SIGTERM", func(p *agentProcess) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, 5 * time.Second},
		{"SIGINT", func(p *agentProcess) { _ = p.cmd.Process.Signal(syscall.SIGINT) }, 5 * time.Second},
		{"SIGHUP", func(p *agentProcess) { _ = p.cmd.Process.Signal(syscall.SIGHUP) }, 5 * time.Second},
	} {
		for _, state := range occupied {
			t.Run(how.name+" "+state.name, func(t *testing.T) {
				t.Parallel()
				p, w, id := occupy(t, state.prompt, state.ready)
				how.do(p)
				p.endsWith(0, how.limit)
				if state.prompt != "" {
					if got := stopReason(p.answer("p")); got != "cancelled" {
						t.Errorf("the prompt was answered %s", got)
					}
				}
				if _, err := os.Stat(filepath.Join(w.work, "effect.txt")); err == nil {
					t.Error("a call ran that nobody allowed")
				}
				next := launch(t, w, nil, []string{"BERTH_store__required=true"})
				next.initialize()
				if m := next.call("load", "session/load", `{"sessionId":"`+id+`","cwd":`+quoted(w.work)+`,"mcpServers":[]}`); m.Error != nil {
					t.Errorf("the session does not load: %s", m.Error)
				}
				if got := stopReason(next.call("after", "session/prompt", promptOf(id, "next"))); got != "end_turn" {
					t.Errorf("the next prompt was answered %s", got)
				}
			})
		}
	}
}

// TestEnding_InTime: an agent is gone within the time it promises to the
// moment, in time that passes for nothing else.
func TestEnding_InTime(t *testing.T) {
	for _, how := range []struct {
		name    string
		do      func(*agentProcess)
		promise time.Duration
	}{
		{"end of input", func(p *agentProcess) { p.in.Close() }, 3 * time.Second},
		{"told to end", func(p *agentProcess) { p.end(domain.ProcessEnding) }, 5 * time.Second},
		{"nobody reads", func(p *agentProcess) {
			p.out.Close()
			_, _ = io.WriteString(p.in, `{"jsonrpc":"2.0","id":"q","method":"session/list","params":{}}`+"\n") // it may have ended by itself
		}, 5 * time.Second},
	} {
		for _, state := range occupied {
			t.Run(how.name+" "+state.name, func(t *testing.T) {
				w := (&scenario{model: endingModel, config: "[store]\ndriver = \"memory\"\n"}).prepare(t)
				synctest.Test(t, func(t *testing.T) {
					p := serve(t, w, bootstrap.WithSandbox(held{}))
					p.occupy(w, state.prompt, state.ready)
					start := time.Now()
					how.do(p)
					<-p.done
					if took := time.Since(start); took > how.promise {
						t.Errorf("it took %v, and promised are %v", took, how.promise)
					}
					time.Sleep(time.Hour) // in a process, what does not listen dies with it
				})
			})
		}
	}
}

// TestEnding_SecondSignal ends a process at once that is still on its way out:
// both signals wait for it while it is stopped.
func TestEnding_SecondSignal(t *testing.T) {
	p, _, _ := occupy(t, "deaf", saysText("Deaf."))
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCONT} {
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	p.endsWith(1, patience)
}

// TestEnding_NobodyReads: when the client closes its end of standard output,
// the process ends quietly by itself, mid-turn too.
func TestEnding_NobodyReads(t *testing.T) {
	for _, state := range occupied {
		t.Run(state.name, func(t *testing.T) {
			t.Parallel()
			p, _, _ := occupy(t, state.prompt, state.ready)
			p.out.Close()
			<-p.read
			// Whatever it writes next finds nobody.
			_, _ = io.WriteString(p.in, `{"jsonrpc":"2.0","id":"q","method":"session/list","params":{}}`+"\n")
			p.endsWith(0, 5*time.Second)
			if said := strings.TrimSpace(p.stderr.String()); strings.Count(said, "\n") > 2 {
				t.Errorf("it is not quiet about it:\n%s", said)
			}
		})
	}
}

// TestStdout_CarriesMessagesOnly: the log may be as loud as it can, closed, or
// unread; standard output stays the protocol's and the agent goes on.
func TestStdout_CarriesMessagesOnly(t *testing.T) {
	talk := func(t *testing.T, p *agentProcess, w world) {
		t.Helper()
		p.initialize()
		id := p.newSession(w)
		p.send(`{`, `hello`, `[]`, `{"jsonrpc":"2.0","method":"nobody/knows"}`)
		p.request("ask", "session/prompt", promptOf(id, "ask"))
		q := p.await("the question", func(m message) bool { return m.Method == "session/request_permission" })
		p.send(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`)
		if got := stopReason(p.answer("ask")); got != "end_turn" {
			t.Errorf("the prompt was answered %s", got)
		}
		for range 300 {
			if got := stopReason(p.call("n", "session/prompt", promptOf(id, "again"))); got != "end_turn" {
				t.Fatalf("a prompt was answered %s", got)
			}
		}
		p.in.Close()
		p.endsWith(0, 3*time.Second)
	}
	command := func(w world) *exec.Cmd {
		cmd := exec.Command(binary, "acp", "--config-dir", w.config, "--data-dir", w.data, "--log-level", "trace")
		cmd.Env = append(cleanEnv(w), "BERTH_store__driver=memory")
		return cmd
	}
	t.Run("loud log", func(t *testing.T) {
		t.Parallel()
		w := (&scenario{model: endingModel}).prepare(t)
		p := begin(t, command(w))
		talk(t, p, w)
		if p.stderr.String() == "" {
			t.Error("there is no log")
		}
	})
	t.Run("closed log", func(t *testing.T) {
		t.Parallel()
		w := (&scenario{model: endingModel}).prepare(t)
		cmd := command(w)
		cmd.Args = append([]string{"sh", "-c", `exec "$0" "$@" 2>&-`, binary}, cmd.Args[1:]...)
		sh, err := exec.LookPath("sh")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = sh
		talk(t, begin(t, cmd), w)
	})
	t.Run("unread log", func(t *testing.T) {
		t.Parallel()
		w := (&scenario{model: endingModel}).prepare(t)
		cmd := command(w)
		unread, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer unread.Close()
		defer end.Close()
		cmd.Stderr = end
		talk(t, begin(t, cmd), w)
	})
	t.Run("log whose reader is gone", func(t *testing.T) {
		t.Parallel()
		w := (&scenario{model: endingModel}).prepare(t)
		cmd := command(w)
		unread, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer end.Close()
		cmd.Stderr = end
		p := begin(t, cmd)
		unread.Close()
		talk(t, p, w)
	})
}
