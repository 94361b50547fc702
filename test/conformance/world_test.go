package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// world is the directories of one run. They may outlive a scene, so that
// another one finds what it left.
type world struct{ work, data, config string }

func newWorld(t *testing.T) world {
	t.Helper()
	// The name the directory is canonical under, so that scripts can compare
	// paths.
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{work: filepath.Join(base, "work"), data: filepath.Join(base, "data"), config: filepath.Join(base, "config")}
	for _, dir := range []string{w.work, w.config} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// expand replaces $WORK, $DATA and $CONFIG.
func (w world) expand(text string) string {
	return strings.NewReplacer("$WORK", w.work, "$DATA", w.data, "$CONFIG", w.config).Replace(text)
}

// configure writes the model's script and the settings: those given, with the
// scripted provider and, unless agents are set, one agent on it.
func (w world) configure(t *testing.T, model, config string) {
	t.Helper()
	script := filepath.Join(w.config, "model.script")
	write(t, script, model)
	config = w.expand(config) + fmt.Sprintf("\n[providers.script]\ntype = \"scripted\"\nscript = %q\n", script)
	if !strings.Contains(config, "[agents.") {
		config += "[agents.default]\nmodel = \"script/test\"\n"
	}
	write(t, filepath.Join(w.config, "config.toml"), config)
}

// fill writes files of the session's directory.
func (w world) fill(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		write(t, filepath.Join(w.work, filepath.FromSlash(name)), text)
	}
}

// check compares the session's directory with what it should hold; "(absent)"
// is a file that should not exist.
func (w world) check(t *testing.T, want map[string]string) {
	t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(w.work, filepath.FromSlash(name)))
		switch {
		case strings.TrimSpace(text) == "(absent)":
			if err == nil {
				t.Errorf("%s exists and holds %q; it should not exist", name, got)
			}
		case err != nil:
			t.Error(err)
		case string(got) != text:
			t.Errorf("%s holds %q, want %q", name, got, text)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
