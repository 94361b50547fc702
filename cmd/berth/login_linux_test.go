package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// dialogue is a person who answers questions in turn, as they are asked.
type dialogue struct {
	bytes.Buffer
	person io.Writer
	steps  [][2]string // the end of a question, the answer
	at     int         // where the last question ended
}

// number answers with the number that the provider spare has in the list.
const number = "the number of spare"

func (d *dialogue) Write(p []byte) (int, error) {
	n, err := d.Buffer.Write(p)
	if len(d.steps) > 0 && strings.HasSuffix(d.String()[d.at:], d.steps[0][0]) {
		d.at = d.Len()
		answer := d.steps[0][1]
		if answer == number {
			list, _, _ := strings.Cut(d.String(), "  spare ")
			answer = list[strings.LastIndexByte(list, '\n')+1:] + "\n"
		}
		d.steps = d.steps[1:]
		if _, err := io.WriteString(d.person, answer); err != nil {
			return 0, err
		}
	}
	return n, err
}

func TestLogin_AtATerminal(t *testing.T) {
	const which, key = "by name or number [gated]: ", "(it is not shown): "
	for _, tt := range []struct {
		name  string
		args  []string
		steps [][2]string
		code  int
		keeps string // the stored key
		says  []string
	}{
		{"the usual provider", nil, [][2]string{{which, "\n"}, {key, "sk-canaryx\x7f\r"}}, 0, "sk-canary", []string{"gated accepts the key (1 models)", "Agents that use it: default"}},
		{"by number", nil, [][2]string{{which, "0\n"}, {which, number}, {key, "sk-canary\r"}}, 0, "sk-canary", []string{"no provider of this name", "No agent uses spare yet", "agents.default.model spare/MODEL"}},
		{"by name, after a wrong one", nil, [][2]string{{which, "nobody\n"}, {which, "gated\n"}, {key, "sk-canary\r"}}, 0, "sk-canary", []string{"no provider of this name takes a key"}},
		{"named on the command line", []string{"gated"}, [][2]string{{key, " sk-canary \r"}}, 0, "sk-canary", nil},
		{"another key after a refused one", []string{"gated"}, [][2]string{{key, "sk-canary-wrong\r"}, {key, "sk-canary\r"}}, 0, "sk-canary", []string{"refused its API key", "Try again"}},
		{"three refused ones", []string{"gated"}, [][2]string{{key, "sk-canary1\r"}, {key, "sk-canary2\r"}, {key, "sk-canary3\r"}}, 1, "", []string{"nothing was changed"}},
		{"interrupted", []string{"gated"}, [][2]string{{key, "sk-canary\x03"}}, 1, "", []string{"\nberth: no key came; nothing was changed"}},
		{"ended at the choice", nil, [][2]string{{which, "\x04"}}, 1, "", []string{"nothing was changed"}},
		{"nothing typed", []string{"gated"}, [][2]string{{key, "\r"}}, 1, "", []string{"no key came"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			gate := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer sk-canary" {
					rw.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = io.WriteString(rw, `{"data":[{"id":"m"}]}`)
			}))
			defer gate.Close()
			for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"} {
				t.Setenv(name, "")
			}
			dir, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
			config := fmt.Sprintf("[providers.gated]\ntype = \"openai-compatible\"\nbase_url = \"%s/v1\"\nmax_retries = 0\n[providers.spare]\ntype = \"openai-compatible\"\nbase_url = \"%s/v2\"\n[agents.default]\nmodel = \"gated/m\"\n", gate.URL, gate.URL)
			if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			person, program := terminal(t)
			before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			asked := &dialogue{person: person, steps: tt.steps}
			code := runWith(t, program, &out, asked, append([]string{"login", "--file", "--config-dir", dir, "--data-dir", data}, tt.args...)...)
			said := asked.String() + out.String()
			if code != tt.code || len(asked.steps) > 0 || strings.Contains(said, "canary") {
				t.Errorf("exit code %d, want %d; %d questions were not asked; it said\n%s", code, tt.code, len(asked.steps), said)
			}
			for _, want := range tt.says {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
			file, _ := os.ReadFile(filepath.Join(data, "credentials.toml"))
			if (tt.keeps == "") != (len(file) == 0) || tt.keeps != "" && !strings.Contains(string(file), "api_key = \""+tt.keeps+"\"\n") {
				t.Errorf("the file holds %q", file)
			}
			after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			if err != nil || *after != *before {
				t.Errorf("the terminal was left as %+v, %v; it was %+v", after, err, before)
			}
		})
	}
}

func TestClient_SignsInAtATerminal(t *testing.T) {
	const question = "sign in by [key]: "
	for _, tt := range []struct {
		name  string
		steps [][2]string
		code  int
	}{
		{"another way", [][2]string{{question, "web\n"}}, 0},
		{"another way, after a wrong one", [][2]string{{question, "nothing\n"}, {question, "web\n"}}, 0},
		{"the first way, which does not help", [][2]string{{question, "\n"}}, 1},
		{"none", [][2]string{{question, "\x04"}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("FAKE_AGENT", "web")
			t.Setenv("FAKE_METHODS", `[{"id":"key","name":"A key"},{"id":"web","name":"A page"}]`)
			person, program := terminal(t)
			asked := &dialogue{person: person, steps: tt.steps}
			code := runWith(t, program, io.Discard, asked, "client", "-p", "hello", "--cwd", t.TempDir(), "--", os.Args[0], "-test.run=^TestClient_SignsIn$")
			if code != tt.code || len(asked.steps) > 0 || !strings.Contains(asked.String(), "please sign in\nWays to sign in:\n  key - A key\n  web - A page\n") {
				t.Errorf("exit code %d, want %d; %d questions were not asked:\n%s", code, tt.code, len(asked.steps), asked.String())
			}
		})
	}
}
