package porttest

import (
	"errors"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// RootsFixture is a Roots over a tree, real or not, that the suite can shape.
// All paths are absolute; Base is a directory that exists, in canonical form.
type RootsFixture struct {
	Roots ports.Roots
	Base  string
	// Agent has a workspace below DataDir that does not exist yet.
	Agent              domain.Agent
	DataDir, ConfigDir string
	ProcessDir         string // exists; base of relative directories where they are taken
	Forbidden          string // exists and is forbidden to the agent
	Mkdir, Rmdir       func(path string)
	WriteFile          func(path string)
	Link               func(path, target string) // nil where there are no links
	Exists             func(path string) bool
}

// RootsHarness makes fixtures.
type RootsHarness struct {
	Open func(TB) RootsFixture
}

// Roots is the conformance suite of ports.Roots.
func Roots(t TB, h RootsHarness) {
	t.Helper()
	runChecks(t, h, rootsChecks())
}

func rootsChecks() []check[RootsHarness] {
	return []check[RootsHarness]{
		{"roots-plain", "the directory the client names is the one that is used", rootsPlain},
		{"roots-spelling", "a session is found again under every spelling of its directory", rootsSpelling},
		{"roots-link", "a root that is a link works, is compared by its target and shown as the client spelled it", rootsLink},
		{"roots-workspace", "the agent workspace exists from the first session on", rootsWorkspace},
		{"roots-placeholder", "a placeholder means the agent workspace, never the process directory", rootsPlaceholder},
		{"roots-lenient", "relative directories are taken from the process directory in a lenient dialect only", rootsLenient},
		{"roots-refused", "a directory that cannot be a root is an error that says why, never a fall-back", rootsRefused},
		{"roots-forbidden", "forbidden directories and our own cannot become roots", rootsForbidden},
		{"roots-additional", "extra roots are checked like the first one, and none is dropped silently", rootsAdditional},
		{"roots-only-directories", "everything else of the session is the caller's", rootsOnlyDirectories},
		{"roots-gone", "a session can be found by a directory that does not exist any more", rootsGone},
	}
}

func resolved(t TB, f RootsFixture, d domain.Directories) domain.Session {
	t.Helper()
	s, err := f.Roots.Resolve(t.Context(), f.Agent, d)
	if err != nil {
		t.Fatalf("Resolve(%+v): %v", d, err)
	}
	return s
}

// refusedRoot fails unless the directories are refused with a sentence that
// names the culprit.
func refusedRoot(t TB, f RootsFixture, what string, d domain.Directories, culprit string) {
	t.Helper()
	s, err := f.Roots.Resolve(t.Context(), f.Agent, d)
	var e *domain.Error
	switch {
	case err == nil:
		t.Errorf("%s: accepted as %s %v", what, s.Cwd, s.Additional)
	case !errors.As(err, &e) || e.Code != domain.InvalidArgument:
		t.Errorf("%s: %v is not coded InvalidArgument", what, err)
	case !strings.Contains(e.Msg, culprit):
		t.Errorf("%s: the message does not name %s: %s", what, culprit, e.Msg)
	}
}

func rootsPlain(t TB, h RootsHarness) {
	f := h.Open(t)
	dir := f.Base + "/project"
	f.Mkdir(dir)
	s := resolved(t, f, domain.Directories{Cwd: dir})
	if s.Cwd != dir || s.CwdGiven != dir || len(s.Additional) != 0 {
		t.Errorf("resolved to %q, given %q, additional %v", s.Cwd, s.CwdGiven, s.Additional)
	}
	odd := f.Base + "/wïth späce #%'\"-"
	f.Mkdir(odd)
	if s := resolved(t, f, domain.Directories{Cwd: odd}); s.Cwd != odd {
		t.Errorf("resolved to %q", s.Cwd)
	}
}

func rootsSpelling(t TB, h RootsHarness) {
	f := h.Open(t)
	dir := f.Base + "/Project"
	f.Mkdir(dir)
	f.Mkdir(dir + "/sub")
	for _, spelled := range []string{dir, dir + "/", dir + "/.", f.Base + "//Project", dir + "/sub/.."} {
		if s := resolved(t, f, domain.Directories{Cwd: spelled}); s.Cwd != dir {
			t.Errorf("%s resolved to %s", spelled, s.Cwd)
		}
		if c := f.Roots.Canonical(spelled); c != dir {
			t.Errorf("%s is %s in canonical form", spelled, c)
		}
	}
}

func rootsLink(t TB, h RootsHarness) {
	f := h.Open(t)
	if f.Link == nil {
		t.Skipf("no links here")
	}
	dir, link := f.Base+"/real", f.Base+"/link"
	f.Mkdir(dir)
	f.Mkdir(dir + "/sub")
	f.Link(link, dir)
	s := resolved(t, f, domain.Directories{Cwd: link + "/sub"})
	if s.Cwd != dir+"/sub" || s.CwdGiven != link+"/sub" {
		t.Errorf("resolved to %q, given %q", s.Cwd, s.CwdGiven)
	}
	if c := f.Roots.Canonical(link); c != dir {
		t.Errorf("the link is %q in canonical form", c)
	}
}

func rootsWorkspace(t TB, h RootsHarness) {
	f := h.Open(t)
	f.Mkdir(f.Base + "/p")
	s := resolved(t, f, domain.Directories{Cwd: f.Base + "/p"})
	if s.Workspace != f.Agent.Workspace || !f.Exists(s.Workspace) {
		t.Errorf("workspace %q", s.Workspace)
	}
	if again := resolved(t, f, domain.Directories{Cwd: f.Base + "/p"}); again.Workspace != s.Workspace {
		t.Errorf("the second time it is %q", again.Workspace)
	}
	if in := resolved(t, f, domain.Directories{Cwd: s.Workspace}); in.Cwd != s.Workspace {
		t.Errorf("the workspace as a working directory resolved to %q", in.Cwd)
	}
}

func rootsPlaceholder(t TB, h RootsHarness) {
	f := h.Open(t)
	for what, d := range map[string]domain.Directories{
		"a dot":                       {Cwd: "."},
		"a dot, lenient":              {Cwd: ".", Lenient: true},
		"omitted, lenient":            {Lenient: true},
		"the configuration directory": {Cwd: f.ConfigDir},
		"the same, spelled otherwise": {Cwd: f.ConfigDir + "/."},
	} {
		s := resolved(t, f, d)
		if s.Cwd != f.Agent.Workspace || s.CwdGiven != f.Agent.Workspace {
			t.Errorf("%s resolved to %q, given %q", what, s.Cwd, s.CwdGiven)
		}
	}
}

func rootsLenient(t TB, h RootsHarness) {
	f := h.Open(t)
	f.Mkdir(f.ProcessDir + "/sub")
	if s := resolved(t, f, domain.Directories{Cwd: "sub", Lenient: true}); s.Cwd != f.ProcessDir+"/sub" {
		t.Errorf("sub resolved to %q", s.Cwd)
	}
	refusedRoot(t, f, "relative", domain.Directories{Cwd: "sub"}, "sub")
	refusedRoot(t, f, "missing below the process directory", domain.Directories{Cwd: "none", Lenient: true}, "none")
}

func rootsRefused(t TB, h RootsHarness) {
	f := h.Open(t)
	f.WriteFile(f.Base + "/file")
	long := f.Base + strings.Repeat("/x", 5000)
	for what, cwd := range map[string]string{
		"omitted":            "",
		"dot slash":          "./",
		"parent":             "..",
		"home":               "~",
		"below home":         "~/x",
		"missing":            f.Base + "/none",
		"a file":             f.Base + "/file",
		"below a file":       f.Base + "/file/x",
		"the top":            "/",
		"the top, otherwise": "/..",
		"a NUL":              f.Base + "/a\x00b",
		"bad UTF-8":          f.Base + "/\xff",
		"too long":           long,
	} {
		culprit := ""
		if what == "missing" || what == "a file" {
			culprit = cwd
		}
		refusedRoot(t, f, what, domain.Directories{Cwd: cwd}, culprit)
	}
	if strings.HasPrefix(f.Base, "/") {
		for _, lenient := range []bool{false, true} {
			refusedRoot(t, f, "a drive letter", domain.Directories{Cwd: `C:\Users\me`, Lenient: lenient}, "C:")
			refusedRoot(t, f, "a drive letter", domain.Directories{Cwd: `c:/Users/me`, Lenient: lenient}, "c:")
		}
		if f.Exists(f.ProcessDir + `/C:\Users\me`) {
			t.Errorf("a directory was made of a drive-letter path")
		}
	}
}

func rootsForbidden(t TB, h RootsHarness) {
	f := h.Open(t)
	f.Mkdir(f.Forbidden + "/sub")
	f.Mkdir(f.DataDir + "/sub")
	f.Mkdir(f.DataDir + "/agents/other/workspace")
	f.Mkdir(f.ConfigDir + "/sub")
	for what, cwd := range map[string]string{
		"forbidden":               f.Forbidden,
		"below it":                f.Forbidden + "/sub",
		"the data directory":      f.DataDir,
		"below it, ours":          f.DataDir + "/sub",
		"another's workspace":     f.DataDir + "/agents/other/workspace",
		"below the configuration": f.ConfigDir + "/sub",
	} {
		refusedRoot(t, f, what, domain.Directories{Cwd: cwd}, cwd)
	}
	if f.Link != nil {
		f.Link(f.Base+"/alias", f.Forbidden)
		refusedRoot(t, f, "a link to it", domain.Directories{Cwd: f.Base + "/alias"}, "alias")
	}
}

func rootsAdditional(t TB, h RootsHarness) {
	f := h.Open(t)
	p, a, b := f.Base+"/p", f.Base+"/a", f.Base+"/b"
	for _, d := range []string{p, a, b} {
		f.Mkdir(d)
	}
	s := resolved(t, f, domain.Directories{Cwd: p, Additional: []string{b, a + "/."}})
	if !slices.Equal(s.Additional, []string{b, a}) {
		t.Errorf("additional %v", s.Additional)
	}
	for what, extra := range map[string]string{
		"relative": "a", "empty": "", "a dot": ".", "missing": f.Base + "/none", "the top": "/",
		"forbidden": f.Forbidden, "the data directory": f.DataDir, "the configuration directory": f.ConfigDir,
	} {
		refusedRoot(t, f, what, domain.Directories{Cwd: p, Additional: []string{a, extra}}, extra)
		refusedRoot(t, f, what+", lenient", domain.Directories{Cwd: p, Additional: []string{extra}, Lenient: true}, extra)
	}
}

func rootsOnlyDirectories(t TB, h RootsHarness) {
	f := h.Open(t)
	f.Mkdir(f.Base + "/p")
	s := resolved(t, f, domain.Directories{Cwd: f.Base + "/p"})
	if s.ID != "" || s.Key != "" || s.Agent != "" || s.Title != "" || !s.CreatedAt.IsZero() {
		t.Errorf("more than directories is set: %+v", s)
	}
}

func rootsGone(t TB, h RootsHarness) {
	f := h.Open(t)
	dir := f.Base + "/gone"
	f.Mkdir(dir)
	before := f.Roots.Canonical(dir)
	f.Rmdir(dir)
	for _, spelled := range []string{dir, dir + "/", f.Base + "//gone"} {
		if after := f.Roots.Canonical(spelled); after != before {
			t.Errorf("%s was %q and is %q now", spelled, before, after)
		}
	}
}
