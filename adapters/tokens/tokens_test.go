package tokens_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/tokens"
	"github.com/berth-dev/berth/core/domain"
)

func open(t *testing.T) *tokens.File {
	t.Helper()
	return tokens.OpenFile(filepath.Join(t.TempDir(), "data", "tokens.json"), time.Now)
}

func create(t *testing.T, f *tokens.File, token tokens.Token) string {
	t.Helper()
	secret, err := f.Create(token)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestNew: a token is long, unlike any other, and fits where tokens go.
func TestNew(t *testing.T) {
	seen, form := map[string]bool{}, regexp.MustCompile(`^berth_[A-Za-z0-9_-]{43}$`)
	for range 1000 {
		token := tokens.New()
		if !form.MatchString(token) || seen[token] || tokens.Weak(token) != "" {
			t.Fatalf("%q, weak: %q", token, tokens.Weak(token))
		}
		seen[token] = true
	}
}

func TestWeak(t *testing.T) {
	for token, want := range map[string]string{
		"":                                    "is empty",
		"undefined":                           "placeholder",
		"NULL":                                "placeholder",
		"changeme":                            "placeholder",
		"hunter2":                             "shorter than 32",
		strings.Repeat("a", 64):               "easy to guess",
		strings.Repeat("ab", 32):              "easy to guess",
		"0123456789abcdef 0123456789abcdef":   "blank",
		"0123456789abcdef0123456789abcdef\n":  "blank",
		"0123456789äbcdef0123456789abcdef":    "no header",
		"0123456789abcdef0123456789abcdef":    "",
		"a-chosen-token-that-is-long-enough!": "",
	} {
		if got := tokens.Weak(token); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", token, got, want)
		}
	}
}

// TestFile: what was made is listed and found, and the file holds no token.
func TestFile(t *testing.T) {
	f := open(t)
	want := tokens.Token{
		Name: "ci", Agents: []string{"reviewer"}, Level: domain.LevelReadOnly, Roots: []string{"/srv"}, Observe: true, MCPCommands: true,
	}
	secret := create(t, f, want)
	other := create(t, f, tokens.Token{Name: "laptop"})
	list, err := f.List()
	if err != nil || len(list) != 2 || list[1].Name != "laptop" {
		t.Fatalf("List: %+v, %v", list, err)
	}
	want.Hash, want.Created = tokens.Hash(secret), list[0].Created
	if diff := cmp.Diff(want, list[0]); diff != "" || want.Created.IsZero() {
		t.Errorf("-want +got\n%s", diff)
	}
	data, err := os.ReadFile(f.Path())
	if err != nil || strings.Contains(string(data), secret) || strings.Contains(string(data), other) {
		t.Errorf("the file is %s, %v", data, err)
	}
	if info, err := os.Stat(f.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode: %v, %v", info.Mode(), err)
	}
	if err := f.Revoke("ci"); err != nil {
		t.Error(err)
	}
	if err := f.Revoke("ci"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second time: %v", err)
	}
	if list, err := f.List(); err != nil || len(list) != 1 {
		t.Errorf("List: %+v, %v", list, err)
	}
	entries, err := filepath.Glob(filepath.Join(filepath.Dir(f.Path()), ".*"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestFile_Refuses(t *testing.T) {
	f := open(t)
	create(t, f, tokens.Token{Name: "taken"})
	for name, want := range map[string]string{
		"taken": "already", "": "not a name", "a b": "not a name", "../x": "not a name", "-x": "not a name", strings.Repeat("x", 64): "not a name", "ü": "not a name",
	} {
		if _, err := f.Create(tokens.Token{Name: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// TestFile_Together: several processes may make tokens at the same time.
func TestFile_Together(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := tokens.OpenFile(path, time.Now).Create(tokens.Token{Name: fmt.Sprintf("t%d", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := tokens.OpenFile(path, time.Now).List(); err != nil || len(list) != 20 {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

func TestFile_Damaged(t *testing.T) {
	for name, tt := range map[string]struct{ data, want string }{
		"no JSON":        {"tokens", "is damaged"},
		"cut":            {`{"version":1,"tokens":[{"name":"x"`, "is damaged"},
		"no hash":        {`{"version":1,"tokens":[{"name":"x"}]}`, "no right name and sha256"},
		"a short hash":   {`{"version":1,"tokens":[{"name":"x","sha256":"00"}]}`, "no right name and sha256"},
		"no name":        {`{"version":1,"tokens":[{"sha256":"` + strings.Repeat("00", 32) + `"}]}`, "no right name and sha256"},
		"a newer form":   {`{"version":2,"tokens":[]}`, "another version"},
		"far too long":   {strings.Repeat(" ", 5<<20), "longer than"},
		"an empty array": {`[]`, "is damaged"},
		"a limit that nobody knows": {
			`{"version":1,"tokens":[{"name":"x","sha256":"` + strings.Repeat("00", 32) + `","root":["/srv"]}]}`, `unknown field "root"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := tokens.OpenFile(filepath.Join(t.TempDir(), "tokens.json"), time.Now)
			if err := os.WriteFile(f.Path(), []byte(tt.data), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := f.List(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("List: %v, want %q", err, tt.want)
			}
			if _, err := f.Create(tokens.Token{Name: "y"}); err == nil {
				t.Error("a token was made")
			}
			if data, _ := os.ReadFile(f.Path()); string(data) != tt.data {
				t.Error("the file was changed")
			}
			if _, err := tokens.NewSet(f); err == nil {
				t.Error("a gateway would start")
			}
		})
	}
}

// TestFile_LimitedToNothing: a token that may use no agent and no directory is
// not one that may use all, also after another one was made.
func TestFile_LimitedToNothing(t *testing.T) {
	f := open(t)
	create(t, f, tokens.Token{Name: "nothing", Agents: []string{}, Roots: []string{}})
	create(t, f, tokens.Token{Name: "all"})
	list, err := f.List()
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if list[0].Agents == nil || list[0].Roots == nil || list[1].Agents != nil || list[1].Roots != nil {
		t.Errorf("they are %+v", list)
	}
}

// TestSet: what counts follows the file.
func TestSet(t *testing.T) {
	f := open(t)
	extra := tokens.Token{Name: "bridge", Hash: tokens.Hash("bridge-token"), Local: true}
	s, err := tokens.NewSet(f, extra)
	if err != nil {
		t.Fatal(err)
	}
	check := func(token string, local bool, want string) {
		t.Helper()
		if got, ok := s.Lookup(token, local); got.Name != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", token, got.Name, ok, want)
		}
	}
	refresh := func(want bool) {
		t.Helper()
		if changed, err := s.Refresh(); changed != want || err != nil {
			t.Errorf("Refresh: %v, %v; want %v", changed, err, want)
		}
	}
	check("", true, "")
	check("bridge-token", true, "bridge")
	check("bridge-token", false, "")
	secret := create(t, f, tokens.Token{Name: "laptop"})
	check(secret, true, "")
	refresh(true)
	refresh(false)
	check(secret, false, "laptop")
	check(secret[:len(secret)-1], true, "")
	check(secret+"x", true, "")
	check(strings.ToUpper(secret), true, "")
	held, _ := s.Lookup(secret, true)
	if !s.Holds(held) {
		t.Error("the token does not count")
	}

	// Another one of the same name is another one.
	if err := f.Revoke("laptop"); err != nil {
		t.Fatal(err)
	}
	again := create(t, f, tokens.Token{Name: "laptop"})
	refresh(true)
	check(secret, true, "")
	check(again, true, "laptop")
	if s.Holds(held) {
		t.Error("the token that was replaced counts")
	}

	// A file that cannot be read changes nothing; one that is gone holds nothing.
	whole, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path(), whole[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := s.Refresh(); changed || err == nil {
		t.Errorf("Refresh of a damaged file: %v, %v", changed, err)
	}
	check(again, true, "laptop")
	if err := os.Remove(f.Path()); err != nil {
		t.Fatal(err)
	}
	refresh(true)
	check(again, true, "")
	check("bridge-token", true, "bridge")
}

// TestSet_LastUsed: it is known to the hour, outlives the gateway, and is
// forgotten with the token.
func TestSet_LastUsed(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 59, 30, 0, time.UTC)
	f := tokens.OpenFile(filepath.Join(t.TempDir(), "tokens.json"), func() time.Time { return now })
	used, idle := create(t, f, tokens.Token{Name: "used"}), create(t, f, tokens.Token{Name: "idle"})
	_ = idle
	s, err := tokens.NewSet(f)
	if err != nil {
		t.Fatal(err)
	}
	last := func() map[string]string {
		list, err := f.List()
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]string{}
		for _, t := range list {
			m[t.Name] = t.LastUsed.Format(time.TimeOnly)
		}
		return m
	}
	s.Lookup(used, true)
	s.Lookup("wrong", true)
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"used": "10:00:00", "idle": "00:00:00"}, last()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	path := strings.TrimSuffix(f.Path(), ".json") + "-used.json"
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.Lookup(used, true)
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was written twice within the hour: %v", err)
	}
	now = now.Add(time.Hour)
	s.Lookup(used, true)
	if err := errors.Join(s.Save(), f.Revoke("idle")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"used": "11:00:00"}, last()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	data, err := os.ReadFile(path)
	var inside map[string]time.Time
	if err != nil || json.Unmarshal(data, &inside) != nil || len(inside) != 1 || strings.Contains(string(data), used) {
		t.Errorf("the file is %s, %v", data, err)
	}
}
