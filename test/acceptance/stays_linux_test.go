package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stayers are command lines that leave something behind that wants to stay.
// TOK is a number that only the processes of one command have among their
// arguments; stay.sh ignores every signal that can be ignored.
var stayers = []struct{ name, line string }{
	{"in the background", `bash stay.sh TOK &`},
	{"of a child", `(bash stay.sh TOK &)`},
	{"of a grandchild", `( (bash stay.sh TOK &) & )`},
	{"in a session of its own", `setsid bash stay.sh TOK &`},
	{"as a daemon", `setsid -f bash stay.sh TOK`},
	{"without hangups", `nohup bash stay.sh TOK >/dev/null 2>&1 &`},
	{"disowned", `bash -c 'setsid bash -c "(bash stay.sh TOK &)" & disown'`},
	{"without environment", `env -i setsid -f /bin/bash stay.sh TOK`},
	{"stopped", `(kill -STOP $BASHPID; exec sleep TOK) &`},
	{"writing", `(trap '' PIPE TERM; while :; do echo still here; sleep 0.05; : TOK; done) &`},
	{"starting others", `(trap '' TERM; for i in 1 2 3 4 5 6 7 8; do setsid -f sleep TOK; done; exec sleep TOK) &`},
	{"without streams", `(exec <&- >&- 2>&-; setsid -f sleep TOK) &`},
}

// endings are the ways in which the commands of an agent come to an end.
var endings = []struct {
	name  string
	goes  bool // the commands themselves have ended when it comes
	end   func(p *agentProcess, sessions []string)
	after func(p *agentProcess, n int) // what must have been answered
}{
	{name: "the call ends", goes: true, end: func(*agentProcess, []string) {}, after: answeredAs("end_turn")},
	{name: "cancel", end: func(p *agentProcess, sessions []string) {
		for _, id := range sessions {
			p.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + id + `"}}`)
		}
	}, after: answeredAs("cancelled")},
	{name: "session/close", end: func(p *agentProcess, sessions []string) {
		for i, id := range sessions {
			p.request(fmt.Sprint("close", i), "session/close", `{"sessionId":"`+id+`"}`)
		}
		for i := range sessions {
			if m := p.answer(fmt.Sprint("close", i)); m.Error != nil {
				p.t.Errorf("session/close: %s", m.Error)
			}
		}
	}, after: answeredAs("cancelled")},
	{name: "end of input", end: func(p *agentProcess, _ []string) {
		p.in.Close()
		<-p.done
	}},
	{name: "SIGKILL of the agent", end: func(p *agentProcess, _ []string) {
		_ = p.cmd.Process.Kill()
		<-p.done
	}},
}

// answeredAs waits for the answers of the prompts.
func answeredAs(want string) func(p *agentProcess, n int) {
	return func(p *agentProcess, n int) {
		p.t.Helper()
		for i := range n {
			if got := stopReason(p.answer(fmt.Sprint("p", i))); got != want {
				p.t.Errorf("%s: the prompt was answered %s, want %s", stayers[i].name, got, want)
			}
		}
	}
}

// TestNothingStays runs commands that fork, daemonise and ignore signals in
// an agent, all at once, and ends them in each way there is: nothing is left.
func TestNothingStays(t *testing.T) {
	for b, box := range []string{"auto", "none"} {
		for n, e := range endings {
			t.Run("sandbox "+box+", "+e.name, func(t *testing.T) {
				t.Parallel()
				p, sessions, tokens := staying(t, box, e.goes, b*len(endings)+n)
				for i := range stayers {
					if !e.goes {
						p.await(stayers[i].name, saysText("ready "+tokens[i]))
						if len(alive(tokens[i])) == 0 {
							t.Errorf("%s: it is not seen, so its end proves nothing", stayers[i].name)
						}
					}
				}
				if e.goes {
					e.after(p, len(sessions))
				}
				from := time.Now()
				e.end(p, sessions)
				if !e.goes && e.after != nil {
					e.after(p, len(sessions))
				}
				over := time.Now()
				left := tokens
				for limit := over.Add(patience); len(left) > 0 && time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
					left = stillAlive(left)
				}
				for _, token := range left {
					t.Errorf("processes are left: %v", alive(token))
				}
				if len(left) > 0 {
					return
				}
				t.Logf("%d commands, told over after %v, nothing left %v later", len(stayers), over.Sub(from).Round(time.Millisecond), time.Since(over).Round(time.Millisecond))
			})
		}
	}
}

// staying starts an agent in which every stayer runs in a session of its own.
// A command that goes ends by itself, and leaves what it started. No two runs
// have the same number at a time.
func staying(t *testing.T, box string, goes bool, number int) (p *agentProcess, sessions, tokens []string) {
	t.Helper()
	s := &scenario{
		config: fmt.Sprintf("[acp]\nmax_sessions = %d\n[profiles.default]\nlevel = \"full\"\nsandbox = %q\n", len(stayers), box),
		files:  map[string][]byte{"stay.sh": []byte("trap '' TERM HUP INT QUIT PIPE USR1 USR2; while :; do sleep \"$1\"; done\n")},
	}
	for i, st := range stayers {
		token := fmt.Sprintf("%d.%d%02d", 3000+i, os.Getpid(), number)
		line := strings.ReplaceAll(st.line, "TOK", token) + "\necho rea''dy " + token // what is awaited is the output, not the command that is shown
		if !goes {
			line += "\ntrap '' TERM HUP INT\nwhile :; do sleep " + token + "; done"
		}
		s.model += fmt.Sprintf("--- next when %q\ncall shell {\"command\":%s}\n", fmt.Sprintf("go %d.", i), quoted(line))
		tokens = append(tokens, token)
	}
	s.model += "--- next always\ntext \"done\"\n"
	w := s.prepare(t)
	p = launch(t, w, nil, []string{"BERTH_store__required=true"})
	t.Cleanup(func() { // also when the test fails on the way
		for _, token := range tokens {
			for _, pid := range alive(token) {
				if proc, err := os.FindProcess(pid); err == nil {
					_ = proc.Kill()
				}
			}
		}
	})
	p.initialize()
	for i := range stayers {
		m := p.call(fmt.Sprint("n", i), "session/new", `{"cwd":`+quoted(w.work)+`,"mcpServers":[]}`)
		id := sessionOf(m)
		if id == "" {
			t.Fatalf("session/new: %s", m.Error)
		}
		if box == "auto" && !strings.Contains(string(m.Result), `"posture":"strong"`) {
			t.Skipf("level full needs a sandbox, and there is none here: %s", m.Result)
		}
		sessions = append(sessions, id)
		p.request(fmt.Sprint("p", i), "session/prompt", promptOf(id, fmt.Sprintf("go %d.", i)))
	}
	return p, sessions, tokens
}

// alive returns the processes that have the token among their arguments.
func alive(token string) []int {
	var list []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range files {
		var pid int
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(token)) {
			if _, err := fmt.Sscanf(path, "/proc/%d/cmdline", &pid); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
}

func stillAlive(tokens []string) []string {
	var left []string
	for _, token := range tokens {
		if len(alive(token)) > 0 {
			left = append(left, token)
		}
	}
	return left
}
