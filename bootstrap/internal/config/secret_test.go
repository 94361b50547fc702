package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
)

// canaries are secrets of every way a configuration can hold one.
const canaries = `
[store]
driver = "postgres"
dsn = "postgres://u:canary1@h/db"
[bridge]
token = "canary2"
[providers.openai]
api_key = "canary3"
headers = { X-Key = "canary4" }
[providers.ref]
type = "openai"
api_key = "env:MY_KEY"
[mcp_servers.a]
command = "a"
env = { KEY = "canary6", REF = "file:key.txt" }
[mcp_servers.b]
url = "https://u:canary7@h/canary8?key=canary9"
headers = { Authorization = "Bearer canary10" }
`

func canaryOptions(t *testing.T) Options {
	t.Helper()
	o := options(t, canaries, "MY_KEY=canary5", "ANTHROPIC_API_KEY=canary12", "BERTH_PROVIDERS__OPENROUTER__API_KEY=canary13")
	if err := os.WriteFile(filepath.Join(o.Home, ".config/berth/key.txt"), []byte("canary11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestSecret_NeverPrinted puts a configuration with secrets through every
// way a value gets printed or encoded.
func TestSecret_NeverPrinted(t *testing.T) {
	o := canaryOptions(t)
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]string{}
	type hidden struct{ secret Secret }
	for name, v := range map[string]any{
		"config": c, "config value": *c, "provider": c.Providers["openai"], "server": c.MCPServers["b"], "secret": c.Bridge.Token,
		"pointer": &c.Bridge.Token, "map": c.MCPServers["a"].Env, "unexported field": hidden{c.Bridge.Token}, "slice": []any{c.Bridge.Token},
		"array": [1]hidden{{c.Bridge.Token}},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3v"} {
			outputs[name+" "+verb] = fmt.Sprintf(verb, v)
		}
		if j, err := json.Marshal(v); err == nil {
			outputs[name+" JSON"] = string(j)
		}
		var b bytes.Buffer
		slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
		if err := template.Must(template.New("x").Parse("{{.}}")).Execute(&b, v); err != nil {
			t.Fatal(err)
		}
		outputs[name+" log"] = b.String()
	}
	for name, run := range map[string]func(*bytes.Buffer) error{
		"list":          func(b *bytes.Buffer) error { return List(b, o, false) },
		"list JSON":     func(b *bytes.Buffer) error { return List(b, o, true) },
		"get":           func(b *bytes.Buffer) error { return Get(b, o, "bridge.token", false) },
		"get JSON":      func(b *bytes.Buffer) error { return Get(b, o, "providers.openai.api_key", true) },
		"get table":     func(b *bytes.Buffer) error { return Get(b, o, "mcp_servers", false) },
		"validate":      func(b *bytes.Buffer) error { return Validate(b, o, false, nil) },
		"validate JSON": func(b *bytes.Buffer) error { return Validate(b, o, true, nil) },
	} {
		var b bytes.Buffer
		if err := run(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		outputs["command "+name] = b.String()
	}
	for name, out := range outputs {
		if strings.Contains(strings.ToLower(out), "canary") || strings.Contains(out, fmt.Sprintf("%x", "canary")) || strings.Contains(out, "99 97 110 97 114 121") {
			t.Errorf("%s shows a secret:\n%.300s", name, out)
		}
	}
	for verb, want := range map[string]string{"%v": mask, "%s": mask, "%#v": "config.Secret([secret])"} {
		if got := fmt.Sprintf(verb, c.Bridge.Token); got != want {
			t.Errorf("%s prints %s, want %s", verb, got, want)
		}
	}
	if j, _ := json.Marshal(c.Bridge.Token); string(j) != `"[secret]"` {
		t.Errorf("JSON %s", j)
	}
	if got := fmt.Sprint(Secret{}); got != "" {
		t.Errorf("an unset secret prints %q", got)
	}
	for want, s := range map[string]Secret{
		"postgres://u:canary1@h/db": c.Store.DSN, "canary2": c.Bridge.Token, "canary3": c.Providers["openai"].APIKey, "canary4": c.Providers["openai"].Headers["X-Key"],
		"canary5": c.Providers["ref"].APIKey, "canary6": c.MCPServers["a"].Env["KEY"], "canary11": c.MCPServers["a"].Env["REF"],
		"https://u:canary7@h/canary8?key=canary9": c.MCPServers["b"].URL, "canary13": c.Providers["openrouter"].APIKey,
	} {
		if got, err := s.Reveal(); got != want || err != nil {
			t.Errorf("Reveal() = %q, %v, want %q", got, err, want)
		}
	}
}

func TestSecret_References(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	for _, tt := range []struct {
		name, value, want, err string
		keyring                Keyring
	}{
		{name: "variable", value: "env:SET", want: "v"},
		{name: "variable that is not set", value: "env:UNSET", err: "the environment variable UNSET is not set; set it where berth is started, or use file:PATH"},
		{name: "file", value: write("a", "v\n"), want: "v"},
		{name: "file with a Windows line end", value: write("b", "v\r\n"), want: "v"},
		{name: "file with one line end more", value: write("c", "v\n\n"), want: "v\n"},
		{name: "empty file", value: write("d", "\n"), err: "secret file DIR/d is empty"},
		{name: "long file", value: write("e", strings.Repeat("x", maxSecretFile+1)), err: "secret file DIR/e is longer than 65536 bytes"},
		{name: "missing file", value: "file:" + dir + "/none", err: "secret file DIR/none: no such file or directory"},
		{name: "directory", value: "file:" + dir, err: "secret file DIR is not a regular file"},
		{name: "keyring without one", value: "keyring:work", err: "keyring:work cannot be read: there is no keyring here; use env:NAME or file:PATH"},
		{name: "keyring", value: "keyring:work", keyring: fakeKeyring{"work": "v\n"}, want: "v"},
		{name: "keyring without the entry", value: "keyring:none", keyring: fakeKeyring{}, err: "keyring:none cannot be read: no such entry"},
		{name: "another word before a colon", value: "sk:live:1", want: "sk:live:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, "[providers.openai]\napi_key = '"+tt.value+"'\n", "SET=v")
			o.Keyring = tt.keyring
			c, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Providers["openai"].APIKey.Reveal()
			text := ""
			if err != nil {
				text = strings.ReplaceAll(err.Error(), dir, "DIR")
			}
			if got != tt.want || text != tt.err {
				t.Errorf("got %q, %q, want %q, %q", got, text, tt.want, tt.err)
			}
		})
	}
}

// TestSecret_FileIsReadEachTime says that a rotated key needs no restart.
func TestSecret_FileIsReadEachTime(t *testing.T) {
	o := options(t, "[providers.openai]\napi_key = \"file:key\"\n")
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(c.ConfigDir, "key")
	for _, want := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Providers["openai"].APIKey.Reveal(); got != want || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestSecret_Equal(t *testing.T) {
	a, b := NewSecret("x"), NewSecret("x")
	if !a.Equal(b) || a.Equal(NewSecret("y")) || a.Equal(Secret{}) || !(Secret{}).Equal(NewSecret("")) {
		t.Error("Equal compares something else than the value")
	}
}

// fakeKeyring is a keyring in memory.
type fakeKeyring map[string]string

func (k fakeKeyring) Get(name string) (string, error) {
	if v, ok := k[name]; ok {
		return v, nil
	}
	return "", noEntry{}
}

func (k fakeKeyring) Set(name, value string) error { k[name] = value; return nil }

func (k fakeKeyring) Delete(name string) error {
	if _, ok := k[name]; !ok {
		return noEntry{}
	}
	delete(k, name)
	return nil
}

type noEntry struct{}

func (noEntry) Error() string        { return "no such entry" }
func (noEntry) Is(target error) bool { return target == fs.ErrNotExist }
