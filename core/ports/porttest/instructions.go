package porttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// InstructionsFixture is an Instructions over empty directories that the
// suite can fill. All paths are absolute and canonical.
type InstructionsFixture struct {
	Instructions ports.Instructions
	// Session has a working directory, at least one additional one and a
	// workspace. Agent has the same workspace and two directories of skills.
	Session domain.Session
	Agent   domain.Agent
	Outside string // exists, below none of them

	Write func(path, text string) // makes directories as needed
	Mkdir func(path string)
	Link  func(path, target string) // nil where there are no links

	MaxFile int // bytes of one file that are told at most
	MaxAll  int // bytes of Text that are told at most, all together
}

// InstructionsHarness makes fixtures.
type InstructionsHarness struct {
	Open func(TB) InstructionsFixture
}

// Instructions is the conformance suite of ports.Instructions.
func Instructions(t TB, h InstructionsHarness) {
	t.Helper()
	runChecks(t, h, instructionsChecks())
}

func instructionsChecks() []check[InstructionsHarness] {
	return []check[InstructionsHarness]{
		{"instructions-none", "a session without any works and is told nothing", instructionsNone},
		{"instructions-text", "what the project and the persona say is told as it is written, with where it stands", instructionsText},
		{"instructions-order", "the agent's own come first, then those of each root, then the skills by name", instructionsOrder},
		{"instructions-alone", "another agent's file counts only where the project has none for all agents", instructionsAlone},
		{"instructions-skill", "of a skill the name, the use and the place are told, the rest is read on demand", instructionsSkill},
		{"instructions-skill-bare", "a skill that does not describe itself is found all the same", instructionsSkillBare},
		{"instructions-link", "a link out of the directory tells the model nothing of what it leads to", instructionsLink},
		{"instructions-special", "what is no regular file holds nobody up", instructionsSpecial},
		{"instructions-long", "one long file does not fill the model's window, and the model knows that more follows", instructionsLong},
		{"instructions-many", "many files do not fill it either", instructionsMany},
		{"instructions-visible", "the model reads nothing that a person could not see", instructionsVisible},
		{"instructions-fresh", "what was saved a moment ago is what is told", instructionsFresh},
		{"instructions-cancelled", "a session that ends is not held up", instructionsCancelled},
		{"instructions-together", "many sessions may ask at once", instructionsTogether},
		{"instructions-copy", "changing what was returned changes nothing", instructionsCopy},
	}
}

func (f InstructionsFixture) read(t TB) []domain.Instruction {
	return f.Instructions.Read(t.Context(), f.Session, f.Agent)
}

// skillText is a skill's file.
func skillText(name, use, body string) string {
	return "---\nname: " + name + "\ndescription: " + use + "\n---\n\n" + body + "\n"
}

// paths are the places of instructions, in order.
func paths(list []domain.Instruction) []string {
	var out []string
	for _, i := range list {
		out = append(out, i.Path)
	}
	return out
}

func instructionsNone(t TB, h InstructionsHarness) {
	f := h.Open(t)
	if got := f.read(t); len(got) != 0 {
		t.Errorf("told are %+v", got)
	}
	gone := f.Session
	gone.Cwd, gone.Additional, gone.Workspace = f.Outside+"/none", nil, ""
	if got := f.Instructions.Read(t.Context(), gone, domain.Agent{Skills: []string{f.Outside + "/none"}}); len(got) != 0 {
		t.Errorf("directories that are not there say %+v", got)
	}
}

func instructionsText(t TB, h InstructionsHarness) {
	f := h.Open(t)
	f.Write(f.Session.Cwd+"/AGENTS.md", "# Project\n\nUse täbs.\n")
	f.Write(f.Session.Workspace+"/SOUL.md", "Be kind.")
	want := []domain.Instruction{
		{Kind: domain.InstructionPersona, Path: f.Session.Workspace + "/SOUL.md", Text: "Be kind."},
		{Kind: domain.InstructionProject, Path: f.Session.Cwd + "/AGENTS.md", Text: "# Project\n\nUse täbs."},
	}
	got := f.read(t)
	if len(got) != len(want) {
		t.Fatalf("told are %+v", got)
	}
	for i := range got {
		if got[i].Text = strings.TrimSpace(got[i].Text); got[i] != want[i] {
			t.Errorf("told is %+v, want %+v", got[i], want[i])
		}
	}
}

func instructionsOrder(t TB, h InstructionsHarness) {
	f := h.Open(t)
	a, b := f.Agent.Skills[0], f.Agent.Skills[1]
	f.Write(b+"/one/SKILL.md", skillText("alpha", "first", "x"))
	f.Write(a+"/two/SKILL.md", skillText("mid", "second", "x"))
	f.Write(b+"/three/SKILL.md", skillText("zeta", "third", "x"))
	want := []string{f.Session.Workspace + "/IDENTITY.md", f.Session.Workspace + "/SOUL.md"}
	for _, root := range f.Session.Roots() {
		want = append(want, root+"/AGENTS.md")
	}
	for i := len(want) - 1; i >= 0; i-- {
		f.Write(want[i], "x")
	}
	want = append(want, b+"/one/SKILL.md", a+"/two/SKILL.md", b+"/three/SKILL.md")
	if got := paths(f.read(t)); !slices.Equal(got, want) {
		t.Errorf("the order is\n%q, want\n%q", got, want)
	}
}

func instructionsAlone(t TB, h InstructionsHarness) {
	f := h.Open(t)
	both, alone := f.Session.Cwd, f.Session.Additional[0]
	f.Write(both+"/AGENTS.md", "for all")
	f.Write(both+"/CLAUDE.md", "for one")
	f.Write(alone+"/CLAUDE.md", "for one")
	if got, want := paths(f.read(t)), []string{both + "/AGENTS.md", alone + "/CLAUDE.md"}; !slices.Equal(got, want) {
		t.Errorf("told are %q, want %q", got, want)
	}
}

func instructionsSkill(t TB, h InstructionsHarness) {
	f := h.Open(t)
	path := f.Agent.Skills[0] + "/deploy-it/SKILL.md"
	f.Write(path, skillText("deploy", "Use it to put a release out.", "SECRET STEPS"))
	got := f.read(t)
	if len(got) != 1 {
		t.Fatalf("told are %+v", got)
	}
	i := got[0]
	if i.Kind != domain.InstructionSkill || i.Path != path || i.Name != "deploy" {
		t.Errorf("the skill is %+v", i)
	}
	if !strings.Contains(i.Text, "Use it to put a release out.") || strings.Contains(i.Text, "SECRET") {
		t.Errorf("of the skill is told: %s", i.Text)
	}
}

func instructionsSkillBare(t TB, h InstructionsHarness) {
	f := h.Open(t)
	dir := f.Agent.Skills[0]
	f.Write(dir+"/bare/SKILL.md", "Do this, then that.\n")
	f.Write(dir+"/open/SKILL.md", "---\nname: never closed\n")
	f.Write(dir+"/no-skill/README.md", "x")
	f.Write(dir+"/README.md", "x")
	got := f.read(t)
	if want := []string{dir + "/bare/SKILL.md", dir + "/open/SKILL.md"}; !slices.Equal(paths(got), want) {
		t.Fatalf("told are %q, want %q", paths(got), want)
	}
	for n, want := range []string{"bare", "open"} {
		if got[n].Name != want || strings.TrimSpace(got[n].Text) == "" {
			t.Errorf("it is told as %+v, want the name %s and a word about it", got[n], want)
		}
	}
}

func instructionsLink(t TB, h InstructionsHarness) {
	f := h.Open(t)
	if f.Link == nil {
		t.Skipf("no links here")
	}
	f.Write(f.Outside+"/secret.txt", "SECRET")
	f.Write(f.Outside+"/skill/SKILL.md", skillText("SECRET", "SECRET", "SECRET"))
	f.Link(f.Session.Cwd+"/AGENTS.md", f.Outside+"/secret.txt")
	f.Link(f.Session.Workspace+"/SOUL.md", f.Outside+"/secret.txt")
	f.Link(f.Agent.Skills[0]+"/out", f.Outside+"/skill")
	f.Mkdir(f.Agent.Skills[0] + "/in")
	f.Link(f.Agent.Skills[0]+"/in/SKILL.md", f.Outside+"/skill/SKILL.md")
	for _, i := range f.read(t) {
		if strings.Contains(i.Text, "SECRET") || strings.Contains(i.Name, "SECRET") {
			t.Errorf("through a link is told: %+v", i)
		}
	}
	f.Write(f.Session.Additional[0]+"/docs/agents.md", "near")
	f.Link(f.Session.Additional[0]+"/AGENTS.md", "docs/agents.md")
	if got := f.read(t); !slices.ContainsFunc(got, func(i domain.Instruction) bool { return strings.TrimSpace(i.Text) == "near" }) {
		t.Errorf("a link that stays inside is not read: %+v", got)
	}
}

func instructionsSpecial(t TB, h InstructionsHarness) {
	f := h.Open(t)
	f.Mkdir(f.Session.Cwd + "/AGENTS.md")
	f.Mkdir(f.Session.Workspace + "/IDENTITY.md")
	f.Mkdir(f.Agent.Skills[0] + "/x/SKILL.md")
	f.Write(f.Session.Additional[0]+"/AGENTS.md", "read")
	got := f.read(t)
	if !slices.ContainsFunc(got, func(i domain.Instruction) bool { return strings.TrimSpace(i.Text) == "read" }) {
		t.Errorf("the rest is not told: %+v", got)
	}
}

func instructionsLong(t TB, h InstructionsHarness) {
	f := h.Open(t)
	f.Write(f.Session.Cwd+"/AGENTS.md", "begin "+strings.Repeat("日本", f.MaxFile/3)+" end")
	f.Write(f.Session.Additional[0]+"/AGENTS.md", strings.Repeat("a", f.MaxFile))
	got := f.read(t)
	if len(got) != 2 {
		t.Fatalf("told are %d instructions", len(got))
	}
	switch long := got[0]; {
	case !long.Cut:
		t.Errorf("it is not said to be cut")
	case len(long.Text) > f.MaxFile+200:
		t.Errorf("told are %d bytes of a file of which %d may be", len(long.Text), f.MaxFile)
	case !strings.HasPrefix(long.Text, "begin 日本") || strings.Contains(long.Text, " end"):
		t.Errorf("it is not the beginning")
	case !utf8.ValidString(long.Text) || strings.ContainsRune(long.Text, utf8.RuneError):
		t.Errorf("it is cut inside a character")
	}
	if full := got[1]; full.Cut || strings.Count(full.Text, "a") != f.MaxFile {
		t.Errorf("a file of exactly the limit is told with %d bytes, cut %v", len(full.Text), full.Cut)
	}
}

func instructionsMany(t TB, h InstructionsHarness) {
	f := h.Open(t)
	for _, root := range f.Session.Roots() {
		f.Write(root+"/AGENTS.md", strings.Repeat("long text ", f.MaxFile/10))
	}
	for n := range 300 {
		name := fmt.Sprintf("s%03d", n)
		f.Write(f.Agent.Skills[0]+"/"+name+"/SKILL.md", skillText(name, strings.Repeat("when it is needed ", 50), "x"))
	}
	total := 0
	got := f.read(t)
	for _, i := range got {
		total += len(i.Text) + len(i.Name)
		if i.Text == "" {
			t.Errorf("%s is told as nothing", i.Path)
		}
	}
	if total > f.MaxAll || len(got) < 3 {
		t.Errorf("told are %d instructions with %d bytes; %d are the most", len(got), total, f.MaxAll)
	}
}

func instructionsVisible(t TB, h InstructionsHarness) {
	f := h.Open(t)
	nasty := "say \u202Eolleh\u200B \U000E0068\U000E0069 \x1b[2J bad\xff byte"
	f.Write(f.Session.Cwd+"/AGENTS.md", "\ufeff"+nasty)
	f.Write(f.Session.Workspace+"/IDENTITY.md", nasty)
	f.Write(f.Agent.Skills[0]+"/a/SKILL.md", skillText("a\u202Eb", nasty, "x"))
	got := f.read(t)
	if len(got) != 3 {
		t.Errorf("told are %+v", got)
	}
	for _, i := range got {
		if domain.Visible(i.Text) != i.Text || domain.Visible(i.Name) != i.Name || strings.ContainsAny(i.Name, "\n\t") {
			t.Errorf("hidden text is told: %q %q", i.Name, i.Text)
		}
		if !strings.Contains(i.Text, "olleh") {
			t.Errorf("what can be seen is lost: %q", i.Text)
		}
		if i.Kind == domain.InstructionProject && !strings.HasPrefix(i.Text, "say ") {
			t.Errorf("a byte-order mark is told: %q", i.Text)
		}
	}
}

func instructionsFresh(t TB, h InstructionsHarness) {
	f := h.Open(t)
	path := f.Session.Cwd + "/AGENTS.md"
	for _, text := range []string{"one", "two", "three", "seven"} { // of the same length, too
		f.Write(path, text)
		for range 2 {
			if got := f.read(t); len(got) != 1 || strings.TrimSpace(got[0].Text) != text {
				t.Errorf("after %q was written, told is %+v", text, got)
			}
		}
	}
	other := f.Session
	other.Cwd, other.Additional = f.Session.Additional[0], nil
	if got := f.Instructions.Read(t.Context(), other, f.Agent); len(got) != 0 {
		t.Errorf("another session is told %+v", got)
	}
}

func instructionsCancelled(t TB, h InstructionsHarness) {
	f := h.Open(t)
	f.Write(f.Session.Cwd+"/AGENTS.md", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	go func() { // joined by done, or left behind by an adapter that fails here
		defer close(done)
		f.Instructions.Read(ctx, f.Session, f.Agent)
	}()
	select {
	case <-done:
	case <-time.After(hangLimit):
		t.Errorf("still reading %v after the context ended", hangLimit)
		return
	}
	if got := f.read(t); len(got) != 1 || strings.TrimSpace(got[0].Text) != "x" {
		t.Errorf("after a caller that went away is told %+v", got)
	}
}

func instructionsTogether(t TB, h InstructionsHarness) {
	f := h.Open(t)
	f.Write(f.Session.Cwd+"/AGENTS.md", "x")
	f.Write(f.Agent.Skills[0]+"/a/SKILL.md", skillText("a", "when", "x"))
	want := fmt.Sprintf("%+v", f.read(t))
	var group sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		group.Go(func() {
			for range 20 {
				if got[i] = fmt.Sprintf("%+v", f.read(t)); got[i] != want {
					return
				}
			}
		})
	}
	group.Wait()
	for i := range got {
		if got[i] != want {
			t.Errorf("caller %d is told %s, want %s", i, got[i], want)
		}
	}
}

func instructionsCopy(t TB, h InstructionsHarness) {
	f := h.Open(t)
	f.Write(f.Session.Cwd+"/AGENTS.md", "x")
	f.Write(f.Agent.Skills[0]+"/a/SKILL.md", skillText("a", "when", "x"))
	first := f.read(t)
	want := fmt.Sprintf("%+v", first)
	for i := range first {
		first[i] = domain.Instruction{Text: "changed"}
	}
	if got := fmt.Sprintf("%+v", f.read(t)); got != want {
		t.Errorf("told is %s, want %s", got, want)
	}
}
