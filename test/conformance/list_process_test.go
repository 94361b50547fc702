package conformance

import (
	"encoding/json"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// Standard output stays clean when a library prints, when a turn panics, when
// the process dies by the runtime's hand, and when it never comes to serve.
func TestChecklist_002_stdout_is_clean(t *testing.T) {
	t.Parallel()
	t.Run("a library prints and panics", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.configure(t, "", "")
		log := &buffer{}
		l := broken()
		l.stderr = log
		scene{launch: l, script: session + `> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"print"}]}
says "Fine."
< {"stopReason":"end_turn"}
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"print and panic"}]}
< error {"code":-32603}
eof
end
exit 0
`}.playIn(t, w)
		lines := []string{"a library prints", "or to standard error"}
		if runtime.GOOS != "windows" {
			lines = append(lines, "by the descriptor") // there, handles have no such numbers
		}
		for _, line := range lines {
			if !strings.Contains(log.String(), line) {
				t.Errorf("standard error does not hold %q: %s", line, log.String())
			}
		}
	})
	t.Run("the runtime ends the process", func(t *testing.T) {
		t.Parallel()
		if runtime.GOOS == "windows" {
			t.Skip("there is no SIGQUIT")
		}
		w := newWorld(t)
		w.configure(t, "", "")
		log := &buffer{}
		a, err := start(w, launch{stderr: log})
		if err != nil {
			t.Fatal(err)
		}
		frames := jsonrpc.NewStdio(a.stdout, a.stdin, 0)
		defer frames.Close()
		exchange(t, frames, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
		if err := a.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
			t.Fatal(err)
		}
		a.wait(t, patience)
		if f, err := frames.Read(); err == nil {
			t.Errorf("on the way out: %s", f)
		}
		for _, fault := range a.faults() {
			t.Error(fault)
		}
		if !strings.Contains(log.String(), "goroutine") {
			t.Errorf("standard error: %s", log.String())
		}
	})
	t.Run("the settings are wrong", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.configure(t, "", "[acp]\nno_such_key = 1\n")
		cmd := exec.Command(binary, "acp", "--config-dir", w.config, "--data-dir", w.data)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || len(out) > 0 || !strings.Contains(string(exit.Stderr), "no_such_key") {
			t.Errorf("error %v, standard output %q", err, out)
		}
	})
}

// exchange sends a line and returns the next frame.
func exchange(t *testing.T, frames *jsonrpc.Stdio, line string) jsonrpc.Message {
	t.Helper()
	if err := frames.Write([]byte(line)); err != nil {
		t.Fatal(err)
	}
	f, err := frames.Read()
	if err != nil {
		t.Fatal(err)
	}
	m, err := jsonrpc.Parse(f)
	if err != nil {
		t.Fatalf("%v in %s", err, f)
	}
	return m
}

// At the end of its input, at SIGTERM, and when nobody reads its output any
// more, the agent ends quietly and at once, whatever is going on.
func TestChecklist_018_the_end(t *testing.T) {
	t.Parallel()
	playFile(t, "eof_mid_turn_answers_and_ends")
	playFile(t, "eof_with_open_permission_ends")
	const streams = `chunks 100000 "tick " every 1ms`
	t.Run("end of input", func(t *testing.T) {
		t.Parallel()
		o := scene{model: "text \"One\"\nhang", script: session + prompt + `says "One"
eof
< @p {"stopReason":"cancelled"}
end
exit 0
`}.play(t)
		if took := time.Since(o.frames[len(o.frames)-1].Time); took > 3*time.Second+slack {
			t.Errorf("the agent needed %v", took)
		}
	})
	t.Run("terminate", func(t *testing.T) {
		t.Parallel()
		if runtime.GOOS == "windows" {
			t.Skip("there is no SIGTERM")
		}
		a, frames := streaming(t, streams, nil)
		if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		last := ""
		for {
			f, err := frames.Read()
			if err != nil {
				break
			}
			last = string(f)
		}
		if code := a.wait(t, 5*time.Second+slack); code != 0 || !strings.Contains(last, `"cancelled"`) {
			t.Errorf("code %d, last line %s", code, last)
		}
		for _, fault := range a.faults() {
			t.Error(fault)
		}
	})
	t.Run("nobody reads", func(t *testing.T) {
		t.Parallel()
		log := &buffer{}
		a, frames := streaming(t, streams, log)
		// The read end only: the agent may not learn of it by its input.
		if err := a.stdout.Close(); err != nil {
			t.Fatal(err)
		}
		if code := a.wait(t, 5*time.Second+slack); code != 0 {
			t.Errorf("code %d", code)
		}
		_ = frames.Close()
		if s := log.String(); strings.Contains(s, "panic") || strings.Contains(s, "goroutine ") {
			t.Errorf("standard error: %s", s)
		}
	})
}

// streaming starts an agent and leaves it in the middle of a turn.
func streaming(t *testing.T, model string, log *buffer) (*agent, *jsonrpc.Stdio) {
	t.Helper()
	w := newWorld(t)
	w.configure(t, model, "")
	l := launch{}
	if log != nil {
		l.stderr = log
	}
	a, err := start(w, l)
	if err != nil {
		t.Fatal(err)
	}
	frames := jsonrpc.NewStdio(a.stdout, a.stdin, 0)
	t.Cleanup(func() { _ = frames.Close(); a.wait(t, 5*time.Second+slack) })
	exchange(t, frames, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	cwd, _ := json.Marshal(w.work) // a string always encodes
	sid := text(exchange(t, frames, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":`+string(cwd)+`,"mcpServers":[]}}`).Result, "sessionId")
	if _, err := frames.Read(); err != nil { // the commands
		t.Fatal(err)
	}
	exchange(t, frames, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"`+sid+`","prompt":[{"type":"text","text":"go"}]}}`)
	return a, frames
}

func TestChecklist_156_errors_end_nothing(t *testing.T) {
	t.Parallel()
	scene{
		model: "error unavailable \"down\"\n--- next\ntext \"ok\"",
		script: session + `>> garbage
< #null error {"code":-32700}
>> []
< #null error {"code":-32600}
> session/fly {}
< error {"code":-32601}
> session/new {}
< error {"code":-32602}
> session/load {"sessionId":"gone","cwd":"$WORK","mcpServers":[]}
< error {"code":-32002}
> session/prompt @fails {"sessionId":"$sid","prompt":[{"type":"text","text":"x"}]}
< @fails error {"code":-32603}
` + turn,
	}.play(t)
}

// A turn that panics is an error of its own prompt. Another session's turn and
// the session itself go on.
func TestChecklist_157_a_panic_stays_in_its_turn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(t, "", "")
	l := broken()
	l.stderr = &buffer{} // tells of the panic, as it should
	scene{launch: l, script: session + `> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$other"}
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"panic"}]}
< error {"code":-32603,"data":{"reason":"INTERNAL_ERROR"}}
> session/prompt {"sessionId":"$other","prompt":[{"type":"text","text":"hi"}]}
says "Fine."
< {"stopReason":"end_turn"}
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"hi"}]}
says "Fine."
< {"stopReason":"end_turn"}
eof
end
exit 0
`}.playIn(t, w)
}
