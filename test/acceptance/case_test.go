package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// scenario is one parsed case file.
type scenario struct {
	name   string
	file   string
	text   *txtar.Archive
	script *transcript.Script
	at     int // line of the file the script begins at

	modes  []string
	tokens []string // of clients of a daemon: name, and flags of berth token create
	model  string
	config string
	unset  []string // canary variables that the agent does not get
	warm   string   // command line to run before, outside of the agent: it fills the caches of tool chains
	files  map[string][]byte
	want   map[string][]byte
	log    []string
}

var allModes = [...]string{"inproc", "stdio", "daemon", "bridge"}

func parseScenario(file string) (*scenario, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &scenario{
		name: strings.TrimSuffix(filepath.Base(file), ".txtar"), file: file, text: txtar.Parse(data),
		modes: allModes[:], files: map[string][]byte{}, want: map[string][]byte{},
	}
	if len(strings.TrimSpace(string(s.text.Comment))) == 0 {
		return nil, fmt.Errorf("%s: a case begins with a comment that says what it proves", file)
	}
	for _, f := range s.text.Files {
		text := string(f.Data)
		switch {
		case f.Name == "modes":
			list, reason, _ := strings.Cut(text, "#")
			if strings.TrimSpace(reason) == "" {
				return nil, fmt.Errorf("%s: the modes want a reason behind a #", file)
			}
			s.modes = strings.Fields(list)
			for _, m := range s.modes {
				if !slices.Contains(allModes[:], m) {
					return nil, fmt.Errorf("%s: there is no mode %q", file, m)
				}
			}
		case f.Name == "tokens":
			s.tokens = strings.Split(strings.TrimSpace(text), "\n")
		case f.Name == "model":
			s.model = text
		case f.Name == "unset":
			s.unset = strings.Fields(text)
		case f.Name == "warm":
			s.warm = text
		case f.Name == "config":
			s.config = text
		case f.Name == "log":
			s.log = strings.Split(strings.TrimSpace(text), "\n")
		case f.Name == "script":
			s.at = 1 + strings.Count(string(data[:strings.Index(string(data), "-- script --\n")]), "\n") + 1
			if s.script, err = transcript.Parse(text); err != nil {
				return nil, fmt.Errorf("%s: script: %w", file, err)
			}
		case strings.HasPrefix(f.Name, "files/"):
			s.files[strings.TrimPrefix(f.Name, "files/")] = f.Data
		case strings.HasPrefix(f.Name, "want/"):
			s.want[strings.TrimPrefix(f.Name, "want/")] = f.Data
		default:
			return nil, fmt.Errorf("%s: there is no section %q", file, f.Name)
		}
	}
	if s.script == nil {
		return nil, fmt.Errorf("%s: no section \"script\"", file)
	}
	return s, nil
}

// world is the directories of one run.
type world struct{ work, data, config, home string }

// prepare makes the directories, the files and the configuration of a run.
func (s *scenario) prepare(t *testing.T) world {
	t.Helper()
	base := t.TempDir()
	// The name a temporary directory is canonical under, so that scripts can
	// compare paths.
	base, err := filepath.EvalSymlinks(base)
	if err != nil {
		t.Fatal(err)
	}
	w := world{work: filepath.Join(base, "work"), data: filepath.Join(base, "data"), config: filepath.Join(base, "config"), home: filepath.Join(base, "home")}
	for _, dir := range []string{w.work, w.config, w.home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range s.files {
		path := filepath.Join(w.work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.settleCanaries(); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(w.config, "model.script")
	if err := os.WriteFile(script, []byte(listening(w.fill(s.model))), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.config, "config.toml"), []byte(s.toml(script, w)), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// fill puts the directories into a text.
func (w world) fill(text string) string {
	return strings.NewReplacer("$WORK", w.work, "$DATA", w.data, "$CONFIG", w.config).Replace(text)
}

// toml is the configuration: the case's own, with the canaries, the scripted
// provider and, unless the case sets agents, one agent on it.
func (s *scenario) toml(script string, w world) string {
	config := w.fill(s.config)
	config += canaryTOML(w)
	config += fmt.Sprintf("\n[providers.script]\ntype = \"scripted\"\nscript = %q\n", script)
	if !strings.Contains(config, "[agents.") {
		config += "[agents.default]\nmodel = \"script/test\"\n"
	}
	return config
}

// checkFiles compares the session's directory with the want sections.
func (s *scenario) checkFiles(t *testing.T, w world) {
	t.Helper()
	for name, want := range s.want {
		got, err := os.ReadFile(filepath.Join(w.work, name))
		if string(want) == "(absent)\n" {
			if err == nil {
				t.Errorf("%s exists and holds %q; it should not exist", name, got)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		} else if string(got) != string(want) {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

// checkLog looks for the texts of the log section.
func (s *scenario) checkLog(t *testing.T, log string) {
	t.Helper()
	for _, want := range s.log {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not hold %q:\n%s", want, log)
		}
	}
}

// cuts reports whether the script cuts connections.
func (s *scenario) cuts() bool {
	return slices.ContainsFunc(s.script.Lines, func(l transcript.Line) bool { return l.Op == transcript.Drop || l.Op == transcript.Cut })
}
