package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tokenCommand runs "berth token" with a data directory of its own.
func tokenCommand(t *testing.T, dir string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return berth(t, dir, "", append([]string{"token", "--data-dir", filepath.Join(dir, "data")}, args...)...)
}

// TestToken: made, listed, revoked; the token is printed once, alone on
// standard output.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	root := t.TempDir()
	code, out, errOut := tokenCommand(t, dir, "create")
	if code != 0 || !regexp.MustCompile(`^berth_[A-Za-z0-9_-]{43}\n$`).MatchString(out) || !strings.Contains(errOut, "token-1") {
		t.Fatalf("create: %d %q %q", code, out, errOut)
	}
	token := strings.TrimSpace(out)
	code, out, _ = tokenCommand(t, dir, "create", "--json", "--name", "ci", "--agents", "default", "--level", "read_only", "--root", root, "--observe", "--allow-mcp-commands")
	var made struct {
		Token, Name, Level   string
		Agents, Roots        []string
		Observe, MCPCommands bool `json:",omitempty"`
	}
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil {
		t.Fatalf("create --json: %d %q %v", code, out, err)
	}
	if made.Name != "ci" || made.Level != "read_only" || len(made.Roots) != 1 || len(made.Agents) != 1 || !made.Observe || !strings.HasPrefix(made.Token, "berth_") {
		t.Errorf("made %+v", made)
	}
	code, out, _ = tokenCommand(t, dir, "list")
	if code != 0 || !strings.Contains(out, "token-1") || !strings.Contains(out, "observe only; agents default; at most read_only; below ") || strings.Contains(out, token) {
		t.Errorf("list: %d %q", code, out)
	}
	code, out, _ = tokenCommand(t, dir, "list", "--json")
	var list []map[string]any
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list) != 2 || list[0]["last_used"] != nil {
		t.Errorf("list --json: %d %q %v", code, out, err)
	}
	if code, out, _ := tokenCommand(t, dir, "revoke", "token-1"); code != 0 || !strings.Contains(out, "is revoked") {
		t.Errorf("revoke: %d %q", code, out)
	}
	if code, _, errOut := tokenCommand(t, dir, "revoke", "token-1"); code != 1 || !strings.Contains(errOut, "berth token list") {
		t.Errorf("revoke again: %d %q", code, errOut)
	}
}

// TestToken_RevokeWhenBroken: whatever is wrong with the configuration, a token
// that got into wrong hands can be revoked.
func TestToken_RevokeWhenBroken(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "elsewhere")
	config := filepath.Join(dir, "config.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place := "data_dir = " + strconv.Quote(data) + "\n"
	for _, tt := range []struct {
		name, text string
		args       []string
	}{
		{"a setting", place + "[gateway]\nlisten = 7\n", nil},
		{"an agent", place + "[agents.a]\nmodel = \"nowhere/x\"\n", nil},
		{"the file", "[gateway\n", []string{"--data-dir", data}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(place)
			if code, _, errOut := berth(t, dir, "", "token", "create", "--name", "lost"); code != 0 {
				t.Fatalf("create: %d %s", code, errOut)
			}
			write(tt.text)
			code, out, errOut := berth(t, dir, "", append([]string{"token", "revoke", "lost"}, tt.args...)...)
			if code != 0 || !strings.Contains(out, "is revoked") || !strings.Contains(errOut, data) || !strings.Contains(errOut, "config.toml") {
				t.Errorf("revoke: %d %q %q", code, out, errOut)
			}
			code, _, errOut = berth(t, dir, "", append([]string{"token", "revoke", "lost"}, tt.args...)...)
			if code != 1 || !strings.Contains(errOut, "there is no token") || !strings.Contains(errOut, "config.toml") {
				t.Errorf("revoke again: %d %q", code, errOut)
			}
		})
	}
}

// TestToken_Refuses: what it does not make, and why.
func TestToken_Refuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--name", "bridge"}, 1, "has by itself"},
		{[]string{"--name", "a b"}, 1, "is not a name"},
		{[]string{"--agents", "nobody"}, 1, `no agent "nobody"`},
		{[]string{"--level", "god"}, 1, "is no level"},
		{[]string{"--root", filepath.Join(dir, "nowhere")}, 1, "nowhere"},
		{[]string{"--root", file}, 1, "is not a directory"},
		{[]string{"extra"}, 2, "extra"},
	} {
		if code, out, errOut := tokenCommand(t, dir, append([]string{"create"}, tt.args...)...); code != tt.code || out != "" || !strings.Contains(errOut, tt.want) {
			t.Errorf("%v: %d %q %q, want %q", tt.args, code, out, errOut, tt.want)
		}
	}
	if code, out, _ := tokenCommand(t, dir, "list"); code != 0 || !strings.Contains(out, "There is no token") {
		t.Errorf("list: %d %q", code, out)
	}
}
