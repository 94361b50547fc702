package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: the person's end and the program's.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal can be had here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal can be had here: %v", err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// answering answers a question when it is asked.
type answering struct {
	bytes.Buffer
	person io.Writer
	answer string
}

func (a *answering) Write(p []byte) (int, error) {
	n, err := a.Buffer.Write(p)
	if a.answer != "" && strings.HasSuffix(a.String(), "api_key: ") {
		answer := a.answer
		a.answer = ""
		if _, err := io.WriteString(a.person, answer); err != nil {
			return 0, err
		}
	}
	return n, err
}

func TestConfigSet_AtATerminal(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		code         int
		file         string
	}{
		{"typed", "sk-canaryx\x7f\r", 0, "[providers.openai]\napi_key = \"sk-canary\"\n"},
		{"interrupted", "sk-canary\x03", 1, ""},
		{"ended", "\x04", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			person, program := terminal(t)
			before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var out bytes.Buffer
			asked := &answering{person: person, answer: tt.answer}
			code := runWith(t, program, &out, asked, "config", "set", "providers.openai.api_key", "-", "--config-dir", dir)
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, asked.String())
			}
			if file, _ := os.ReadFile(filepath.Join(dir, "config.toml")); string(file) != tt.file {
				t.Errorf("the file holds %q, want %q", file, tt.file)
			}
			if !strings.HasPrefix(asked.String(), "providers.openai.api_key: ") || strings.Contains(asked.String()+out.String(), "canary") {
				t.Errorf("the person saw %q and %q", asked.String(), out.String())
			}
			after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil || *after != *before {
				t.Errorf("the terminal was left as %+v, %v; it was %+v", after, err, before)
			}
			// The terminal itself echoed nothing either.
			fd := int(person.Fd()) // once: each call makes it wait again
			if err := unix.SetNonblock(fd, true); err != nil {
				t.Fatal(err)
			}
			seen := make([]byte, 256)
			if n, err := unix.Read(fd, seen); err == nil && strings.Contains(string(seen[:n]), "canary") {
				t.Errorf("the terminal shows %q", seen[:n])
			}
		})
	}
}
