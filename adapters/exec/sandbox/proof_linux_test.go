package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// TestProof: what was proven counts for the next process, and only as long as
// nothing it depends on changed.
func TestProof(t *testing.T) {
	state := t.TempDir()
	cfg := Config{Mode: Namespaces, State: state, Home: t.TempDir()}
	if p := New(cfg).Posture(t.Context()); !p.Confined() {
		t.Skipf("namespaces do not work here: %s", p.Reason)
	}
	file := filepath.Join(state, "posture.json")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v: the proof is not kept for its owner alone", info, err)
	}
	recalled := func(cfg Config) bool {
		s := New(cfg)
		s.lookAround()
		_, ok := s.recall(s.dependsOn())
		return ok
	}
	if !recalled(cfg) {
		t.Error("the next process would try again")
	}
	// It is really used: a posture nobody could prove here comes back.
	s := New(cfg)
	s.lookAround()
	s.keep(proof{For: s.dependsOn(), Posture: domain.Posture{Word: domain.PosturePartial, Backend: Namespaces, Lacks: []string{"told"}}, Backend: byNamespaces})
	if p := New(cfg).Posture(t.Context()); len(p.Lacks) != 1 || p.Lacks[0] != "told" {
		t.Errorf("the posture is %+v, not the kept one", p)
	}
	for name, change := range map[string]func(*Config){
		"mode":      func(c *Config) { c.Mode = Auto },
		"hidden":    func(c *Config) { c.Hidden = []string{"/root"} },
		"protected": func(c *Config) { c.Protected = []string{".x"} },
		"home":      func(c *Config) { c.Home = "/" },
		"path":      func(c *Config) { c.Path = "/opt/bin" },
		"helper":    func(c *Config) { c.Helper = []string{"/bin/true"} },
		"state":     func(c *Config) { c.State = t.TempDir() },
		"no state":  func(c *Config) { c.State = "" },
	} {
		changed := cfg
		change(&changed)
		if recalled(changed) {
			t.Errorf("%s: the proof of another configuration counts", name)
		}
	}
	for name, content := range map[string]string{"nothing": "", "no JSON": "{", "another's": `{"For":"x","Posture":{"Word":"strong"},"Backend":"namespaces"}`} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if recalled(cfg) {
			t.Errorf("%s counts as a proof", name)
		}
	}
	if p := New(cfg).Posture(t.Context()); !p.Confined() || !recalled(cfg) {
		t.Errorf("%+v: after a broken proof it was not tried again", p)
	}
	New(cfg).Doubt()
	if recalled(cfg) {
		t.Error("a doubted proof counts")
	}
}

// What does not confine is tried again by the next process: it may be mended
// meanwhile. A try that was cut short is no answer at all.
func TestProof_OnlyWhatConfines(t *testing.T) {
	state := t.TempDir()
	s := New(Config{Mode: Namespaces, State: state})
	s.breaks.namespaces = true
	if p := s.Posture(t.Context()); p.Word != domain.PostureNone {
		t.Fatalf("%+v", p)
	}
	next := New(Config{Mode: Namespaces, State: state})
	next.breaks.namespaces = true
	if p, known := next.Known(); !known || p.Word != domain.PostureNone || p.Reason == "" {
		t.Errorf("known to the next process is %+v (%t), not that nothing works", p, known)
	}
	file := filepath.Join(state, "posture.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	told := bytes.Replace(raw, []byte(`"Reason":"`), []byte(`"Reason":"told before: `), 1)
	if err := os.WriteFile(file, told, 0o600); err != nil {
		t.Fatal(err)
	}
	if p := next.Posture(t.Context()); strings.HasPrefix(p.Reason, "told before") {
		t.Errorf("%+v: the next process did not try again", p)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	s = New(Config{Mode: Namespaces})
	if p := s.Posture(gone); p.Word != domain.PostureNone || p.Reason == "" {
		t.Errorf("a try that was cut short says %+v", p)
	}
	if p := s.Posture(t.Context()); !p.Confined() {
		if q := New(Config{Mode: Namespaces}).Posture(t.Context()); q.Confined() {
			t.Errorf("after a try that was cut short it says %+v, a new one %+v", p, q)
		}
	}
}
