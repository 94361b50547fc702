package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/bootstrap"
)

// berth runs the program with a configuration directory and an input of its
// own.
func berth(t *testing.T, dir, input string, args ...string) (code int, out, errOut string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var o, e bytes.Buffer
	code = runWith(t, in, &o, &e, append(args, "--config-dir", dir)...)
	return code, o.String(), e.String()
}

// runWith runs the program with another standard input.
func runWith(t *testing.T, in *os.File, out, errOut io.Writer, args ...string) int {
	t.Helper()
	before := os.Stdin
	defer func() { os.Stdin = before }()
	os.Stdin = in
	return run(bootstrap.Helper{}, args, out, errOut)
}

func TestConfigSet(t *testing.T) {
	const provider = "providers.local.type openai-compatible providers.local.base_url http://127.0.0.1:8000/v1"
	for _, tt := range []struct {
		name, input string
		args        []string
		code        int
		file        string   // what the file holds; "" for no file
		out         []string // parts of standard output
		err         []string // parts of standard error; none: nothing is said there
	}{
		{name: "one", args: []string{"acp.max_sessions", "20"}, file: "[acp]\nmax_sessions = 20\n", out: []string{": acp.max_sessions is set\n"}},
		{name: "a provider", args: strings.Fields(provider), file: "[providers.local]\ntype = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:8000/v1\"\n",
			out: []string{": providers.local.type is set\n", ": providers.local.base_url is set\n"}},
		{name: "half of a provider", args: strings.Fields(provider)[2:], code: 1, err: []string{"providers.local.type: is missing", "set by one command"}},
		{name: "a value is missing", args: strings.Fields(provider)[:3], code: 2, err: []string{"there is no value for providers.local.base_url", "config set PATH VALUE [PATH VALUE]..."}},
		{name: "a value behind =", args: []string{"providers.openai.api_key=sk-canary"}, code: 2, err: []string{"there is no value for providers.openai.api_key: it stands behind a space"}},
		{name: "nothing", code: 2, err: []string{"wrong number of arguments"}},
		{name: "a secret from standard input", input: "sk-canary\nmore\n", args: []string{"providers.openai.api_key", "-"}, file: "[providers.openai]\napi_key = \"sk-canary\"\n", out: []string{"api_key is set"}},
		{name: "a last line without an end", input: "sk-canary", args: []string{"providers.openai.api_key", "-"}, file: "[providers.openai]\napi_key = \"sk-canary\"\n", out: []string{"api_key is set"}},
		{name: "a line each", input: "sk-one\r\nsk-two\r\n", args: []string{"providers.openai.api_key", "-", "bridge.token", "-"},
			file: "[providers.openai]\napi_key = \"sk-one\"\n\n[bridge]\ntoken = \"sk-two\"\n", out: []string{"token is set"}},
		{name: "no line", args: []string{"providers.openai.api_key", "-"}, code: 1, err: []string{"providers.openai.api_key: standard input ended"}},
		{name: "an empty line", input: "\n", args: []string{"providers.openai.api_key", "-"}, code: 1, err: []string{"an empty line"}},
		{name: "a line without end", input: strings.Repeat("x", maxValue+3), args: []string{"providers.openai.api_key", "-"}, code: 1, err: []string{"longer than 65536 bytes"}},
		{name: "a secret as an argument", args: []string{"providers.openai.api_key", "sk-canary"}, file: "[providers.openai]\napi_key = \"sk-canary\"\n",
			out: []string{"api_key is set"}, err: []string{"warning: providers.openai.api_key", "env:NAME, file:PATH, or -"}},
		{name: "a reference as an argument", args: []string{"providers.openai.api_key", "env:KEY"}, file: "[providers.openai]\napi_key = \"env:KEY\"\n", out: []string{"api_key is set"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			code, out, errOut := berth(t, dir, tt.input, append([]string{"config", "set"}, tt.args...)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if file, _ := os.ReadFile(filepath.Join(dir, "config.toml")); string(file) != tt.file {
				t.Errorf("the file holds\n%s\nwant\n%s", file, tt.file)
			}
			for _, want := range tt.out {
				if !strings.Contains(out, want) {
					t.Errorf("standard output %q lacks %q", out, want)
				}
			}
			for _, want := range tt.err {
				if !strings.Contains(errOut, want) {
					t.Errorf("standard error %q lacks %q", errOut, want)
				}
			}
			if len(tt.err) == 0 && errOut != "" {
				t.Errorf("standard error says %q", errOut)
			}
			if strings.Contains(out+errOut, "canary") {
				t.Errorf("the secret is shown: %s%s", out, errOut)
			}
		})
	}
}

// TestConfigValidate_Warnings: what has no effect is a warning, and no
// failure.
func TestConfigValidate_Warnings(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[store]\ndriver = \"postgres\"\ndsn = \"postgres://h/d\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := berth(t, dir, "", "config", "validate")
	if code != 0 || !strings.HasPrefix(out, "warning: store.driver: ") || !strings.Contains(out, "not available in this version") || errOut != "" {
		t.Errorf("code %d, said %q and %q", code, out, errOut)
	}
}
