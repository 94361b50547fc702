package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// provider looks one up that must be there.
func (c *Config) provider(t *testing.T, name string) Provider {
	t.Helper()
	p, ok := c.LookupProvider(name)
	if !ok {
		t.Fatalf("there is no provider %q", name)
	}
	return p
}

func TestCredentials_WhoGetsAKey(t *testing.T) {
	const doc = `
[providers.claude]
type = "anthropic"
[providers.openai]
base_url = "https://proxy.example/v1"
[providers.local]
type = "openai-compatible"
base_url = "http://Box:8000/v1"
[providers.spelled]
type = "gemini"
api_key = "of the setting"
`
	for _, tt := range []struct {
		name, file, provider, want string
		env                        []string
	}{
		{"of its name", "[anthropic]\nserver=\"https://api.anthropic.com\"\napi_key=\"k1\"", "anthropic", "k1", nil},
		{"of its type", "[anthropic]\nserver=\"https://api.anthropic.com\"\napi_key=\"k1\"", "claude", "k1", nil},
		{"its name before its type", "[anthropic]\nserver=\"https://api.anthropic.com\"\napi_key=\"k1\"\n[claude]\nserver=\"https://api.anthropic.com\"\napi_key=\"k2\"", "claude", "k2", nil},
		{"the variable comes first", "[gemini]\nserver=\"https://generativelanguage.googleapis.com\"\napi_key=\"k1\"", "gemini", "v", []string{"GEMINI_API_KEY=v"}},
		{"the setting comes first", "[spelled]\nserver=\"https://generativelanguage.googleapis.com\"\napi_key=\"k1\"", "spelled", "of the setting", nil},
		{"not for another address", "[openai]\nserver=\"https://api.openai.com\"\napi_key=\"k1\"", "openai", "", nil},
		{"of an address of its own", "[local]\nserver=\"http://box:8000\"\napi_key=\"k1\"", "local", "k1", nil},
		{"not for another port", "[local]\nserver=\"http://box:8001\"\napi_key=\"k1\"", "local", "", nil},
		{"not without encryption", "[anthropic]\nserver=\"http://api.anthropic.com\"\napi_key=\"k1\"", "anthropic", "", nil},
		{"none without an address", "[offline]\nserver=\"\"\napi_key=\"k1\"", "offline", "", nil},
		{"no file", "", "anthropic", "", nil},
		{"in the keyring", "[anthropic]\nserver=\"https://api.anthropic.com\"\napi_key=\"keyring:a\"", "anthropic", "k9", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, doc, tt.env...)
			o.Keyring = fakeKeyring{"a": "k9"}
			c, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			if tt.file != "" {
				store(t, c, tt.file, 0o600)
			}
			if got, err := c.provider(t, tt.provider).Key(); got != tt.want || err != nil {
				t.Errorf("Key() = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// store writes the file of stored keys.
func store(t *testing.T, c *Config, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Credentials().Path(), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.Credentials().Path(), mode); err != nil {
		t.Fatal(err)
	}
}

func TestCredentials_PutAndRemove(t *testing.T) {
	for _, tt := range []struct {
		name    string
		keyring Keyring
		file    bool
		source  string
	}{
		{"without a keyring", nil, false, KeyInFile},
		{"in the keyring", fakeKeyring{}, false, KeyInKeyring},
		{"in the file by choice", fakeKeyring{}, true, KeyInFile},
		{"a keyring that refuses", brokenKeyring{}, false, KeyInFile},
		{"a keyring that forgets", &forgetfulKeyring{}, false, KeyInFile},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, "")
			o.Keyring = tt.keyring
			running, err := Load(o) // has looked before anything is stored
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := running.AgentModel("default"); ok {
				t.Error("there is a model without a key")
			}
			other, _ := Load(o)
			where, err := other.Credentials().Put(other.provider(t, "openai"), "sk-1", tt.file)
			if err != nil || where == "" {
				t.Fatalf("Put: %q, %v", where, err)
			}
			if _, err := other.Credentials().Put(other.provider(t, "gemini"), "g-1", true); err != nil {
				t.Fatal(err)
			}
			p := running.provider(t, "openai")
			if key, err := p.Key(); key != "sk-1" || err != nil || p.KeySource() != tt.source {
				t.Errorf("Key() = %q, %v from %q, want it from %q", key, err, p.KeySource(), tt.source)
			}
			if ref, ok := running.AgentModel("default"); !ok || ref.Provider != "openai" {
				t.Errorf("AgentModel = %v, %v", ref, ok)
			}
			if values := running.SecretValues(); !slices.Contains(values, "sk-1") {
				t.Error("the key that was handed out is not among the secrets")
			}
			private(t, other.Credentials().Path())
			data, _ := os.ReadFile(other.Credentials().Path())
			if (tt.source == KeyInKeyring) == strings.Contains(string(data), "sk-1") {
				t.Errorf("the file is\n%s", data)
			}
			for _, want := range []bool{true, false} {
				if got, err := other.Credentials().Remove(p); got != want || err != nil {
					t.Errorf("Remove = %v, %v, want %v", got, err, want)
				}
			}
			if k, ok := tt.keyring.(fakeKeyring); ok && len(k) > 0 {
				t.Errorf("the keyring still has %v", k)
			}
			if key, err := p.Key(); key != "" || err != nil {
				t.Errorf("Key() = %q, %v after Remove", key, err)
			}
			if _, err := other.Credentials().Remove(other.provider(t, "gemini")); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(other.Credentials().Path()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the empty file is still there: %v", err)
			}
		})
	}
}

// private checks that only the owner can use a file and its directory.
func private(t *testing.T, path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %o", path, info.Mode(), err, want)
		}
	}
}

type brokenKeyring struct{}

func (brokenKeyring) Get(string) (string, error) { return "", errors.New("it is locked") }
func (brokenKeyring) Set(string, string) error   { return errors.New("it is locked") }
func (brokenKeyring) Delete(string) error        { return errors.New("it is locked") }

type forgetfulKeyring struct{ brokenKeyring }

func (forgetfulKeyring) Set(string, string) error { return nil }

// TestCredentials_KeyringMoves: a key that moves from the keyring to the file,
// or is replaced, leaves nothing behind.
func TestCredentials_KeyringMoves(t *testing.T) {
	o, ring := options(t, ""), fakeKeyring{}
	o.Keyring = ring
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	p := c.provider(t, "openai")
	for i, step := range []struct {
		key  string
		file bool
		kept int
	}{{"sk-1", false, 1}, {"sk-2", false, 1}, {"sk-3", true, 0}, {"sk-4", false, 1}} {
		if _, err := c.Credentials().Put(p, step.key, step.file); err != nil {
			t.Fatal(err)
		}
		if key, err := p.Key(); key != step.key || err != nil || len(ring) != step.kept {
			t.Errorf("step %d: Key() = %q, %v, keyring %v", i, key, err, ring)
		}
	}
}

func TestCredentials_Unusable(t *testing.T) {
	const good = "[anthropic]\nserver=\"https://api.anthropic.com\"\napi_key=\"canary\"\n"
	for _, tt := range []struct {
		name, text, want string
		mode             os.FileMode
	}{
		{"others may read it", good, "others can read or change it; run: chmod 600 ", 0o644},
		{"its group may read it", good, "others can read or change it; run: chmod 600 ", 0o640},
		{"others may write it", good, "others can read or change it; run: chmod 600 ", 0o602},
		{"no TOML", "[anthropic]\napi_key = canary\n", "line 2 is not TOML; mend it, or remove the file and log in again", 0o600},
		{"another form", good + "canary = \"x\"\n[x]\napi_key = 5\n", "the entry in line 5 is not of the form [provider] with server and api_key; mend it, or remove the file and log in again", 0o600},
		{"too long", strings.Repeat("# x\n", maxFile/4+1), "it is longer than 1 MiB", 0o600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && tt.mode != 0o600 {
				t.Skip("mode bits say nothing here")
			}
			o := options(t, "[providers.local]\ntype = \"openai-compatible\"\nbase_url = \"http://box/v1\"\n")
			c, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			store(t, c, tt.text, tt.mode)
			_, err = c.provider(t, "anthropic").Key()
			if !domain.HasCode(err, domain.AuthRequired) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("Key() = %v", err)
			}
			if key, err := c.provider(t, "local").Key(); key != "" || err != nil {
				t.Errorf("a provider that needs no key: %q, %v", key, err)
			}
			again, err := Load(o)
			if err != nil || !slices.ContainsFunc(again.Warnings, func(w string) bool { return strings.Contains(w, tt.want) }) {
				t.Errorf("loading says %q, %v", again.Warnings, err)
			}
			before, _ := os.ReadFile(c.Credentials().Path())
			if where, err := c.Credentials().Put(c.provider(t, "openai"), "sk-1", true); err == nil {
				t.Errorf("a key was put beside what cannot be read: %s", where)
			}
			if after, _ := os.ReadFile(c.Credentials().Path()); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestCredentials_PutRefuses(t *testing.T) {
	c := mustLoad(t, "")
	for name, key := range map[string]string{
		"nothing": "", "two lines": "sk-1\nsk-2", "a space": "sk 1", "letters of no key": "sk-ключ", "a reference": "keyring:x", "too long": strings.Repeat("k", maxKey+1),
	} {
		if _, err := c.Credentials().Put(c.provider(t, "openai"), key, true); err == nil || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Credentials().Put(c.provider(t, "offline"), "sk-1", true); err == nil {
		t.Error("the offline model takes a key")
	}
	if _, err := os.Stat(c.Credentials().Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	if _, err := (*Credentials)(nil).Put(Provider{}, "sk-1", false); err == nil {
		t.Error("nothing stored a key")
	}
}

// TestCredentials_NeverPrinted: a configuration that handed keys out does not
// print them.
func TestCredentials_NeverPrinted(t *testing.T) {
	o := options(t, "")
	o.Keyring = fakeKeyring{}
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"openai", "gemini"} {
		if _, err := c.Credentials().Put(c.provider(t, name), "canary1", i == 0); err != nil {
			t.Fatal(err)
		}
		if _, err := c.provider(t, name).Key(); err != nil {
			t.Fatal(err)
		}
	}
	c.ambient.stored.keyring = nil // the stand-in is a map, which is no secret's place
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{c, *c, c.Credentials(), *c.Credentials(), c.provider(t, "openai")} {
			if out := fmt.Sprintf(verb, v); strings.Contains(out, "canary") || strings.Contains(out, fmt.Sprintf("%x", "canary")) {
				t.Errorf("%s of a %T shows a key", verb, v)
			}
		}
	}
}

// TestLoad_AsksNoKeyring: loading, listing and collecting secrets touch no
// keyring: only a request does.
func TestLoad_AsksNoKeyring(t *testing.T) {
	o := options(t, "[providers.openai]\napi_key = \"keyring:work\"\n")
	ring := &countingKeyring{}
	o.Keyring = ring
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	store(t, c, "[gemini]\nserver=\"https://generativelanguage.googleapis.com\"\napi_key=\"keyring:g\"\n", 0o600)
	c, err = Load(o)
	if err != nil || len(c.Warnings) > 0 {
		t.Fatalf("%v, %q", err, c.Warnings)
	}
	c.SecretValues()
	c.AgentModel("default")
	c.provider(t, "gemini").KeySource()
	if ring.asked != 0 {
		t.Errorf("the keyring was asked %d times", ring.asked)
	}
	if _, err := c.provider(t, "gemini").Key(); err != nil || ring.asked != 1 {
		t.Errorf("%v, asked %d times", err, ring.asked)
	}
}

type countingKeyring struct {
	brokenKeyring
	asked int
}

func (k *countingKeyring) Get(string) (string, error) { k.asked++; return "v", nil }
