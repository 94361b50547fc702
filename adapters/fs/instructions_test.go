package fs

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func (r *rig) mkdir(name string) {
	r.t.Helper()
	if err := os.MkdirAll(r.at(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// notes are the instructions of the rig's session, with skills in home/skills.
func (r *rig) notes() []domain.Instruction {
	r.t.Helper()
	if r.disk == nil {
		r.disk = New(r.conf)
	}
	list := NewInstructions(r.disk).Read(r.t.Context(), r.session, domain.Agent{Workspace: r.session.Workspace, Skills: []string{"~/skills"}})
	if n := len(r.disk.handles); n != 0 {
		r.t.Errorf("%d directories stayed open", n)
	}
	return list
}

func TestInstructions(t *testing.T) {
	porttest.Instructions(porttest.T(t), porttest.InstructionsHarness{Open: func(tb porttest.TB) porttest.InstructionsFixture {
		r := newRig(t)
		for _, dir := range []string{"p", "q", "w", "k1", "k2", "outside"} {
			r.mkdir(dir)
		}
		f := porttest.InstructionsFixture{
			Instructions: NewInstructions(New(r.conf)),
			Session:      domain.Session{ID: "s", Cwd: r.at("p"), Additional: []string{r.at("q")}, Workspace: r.at("w")},
			Agent:        domain.Agent{Workspace: r.at("w"), Skills: []string{r.at("k1"), r.at("k2")}},
			Outside:      r.at("outside"), MaxFile: maxInstruction, MaxAll: maxInstructions,
			Write: func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					tb.Fatalf("%v", err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					tb.Fatalf("%v", err)
				}
			},
			Mkdir: func(path string) { r.mkdir(strings.TrimPrefix(path, r.base)) },
		}
		if runtime.GOOS != "windows" {
			f.Link = func(path, target string) {
				if err := os.Symlink(target, path); err != nil {
					tb.Fatalf("%v", err)
				}
			}
		}
		return f
	}})
}

// What cannot be read is said, so that nobody looks for it in vain.
func TestInstructions_WhatCannotBeReadIsSaid(t *testing.T) {
	cases := []struct {
		name string
		lay  func(*rig)
		path string
		want string
	}{
		{"a directory", func(r *rig) { r.mkdir("ws/AGENTS.md") }, "ws/AGENTS.md", "is a directory"},
		{"binary", func(r *rig) { r.write("ws/AGENTS.md", "a\x00b") }, "ws/AGENTS.md", "binary"},
		{"other encodings", func(r *rig) { r.write("ws/AGENTS.md", "\xff\xfea\x00") }, "ws/AGENTS.md", "UTF-16"},
		{"a link that leads out", func(r *rig) { r.symlink("ws/AGENTS.md", r.at("out/secret.txt")) }, "ws/AGENTS.md", "leads out"},
		{"a link to what is forbidden", func(r *rig) { r.symlink("ws/AGENTS.md", "private/p.txt") }, "ws/AGENTS.md", "forbidden"},
		{"forbidden skills", func(r *rig) {
			r.write("home/skills/a/SKILL.md", "x")
			r.pol.Forbidden = append(r.pol.Forbidden, "~/skills")
		}, "home/skills", "forbidden"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			c.lay(r)
			got := r.notes()
			if len(got) != 1 || got[0].Path != r.at(c.path) || !strings.Contains(got[0].Text, c.want) || strings.Contains(got[0].Text, "SECRET") {
				t.Errorf("told is %+v, want a word about %q", got, c.want)
			}
		})
	}
}

// A project's skills are words of the project; the operator's names win.
func TestInstructions_ProjectSkills(t *testing.T) {
	r := newRig(t)
	r.write("home/skills/lint/SKILL.md", "---\nname: lint\ndescription: The operator's.\n---\n")
	r.write("ws/.berth/skills/lint/SKILL.md", "---\nname: lint\ndescription: The project's.\n---\n")
	r.write("ws/.berth/skills/test/SKILL.md", "---\nname: test\ndescription: Runs the tests.\n---\nHIDDEN\n")
	r.write("ws/.berth/skills/bad\nname: evil/SKILL.md", "---\nname: evil\ndescription: x\n---\n")
	r.write("ws/.berth/skills/.dot/SKILL.md", "x")
	got := r.notes()
	want := []domain.Instruction{
		{Kind: domain.InstructionProject, Path: r.at("ws/.berth/skills/test/SKILL.md"), Name: "test", Text: "A skill, test: Runs the tests. Read the file when it fits the task."},
		{Kind: domain.InstructionSkill, Path: r.at("home/skills/lint/SKILL.md"), Name: "lint", Text: "The operator's."},
	}
	if !slices.Equal(got, want) {
		t.Errorf("told is\n%+v, want\n%+v", got, want)
	}
}

func TestInstructions_ManySkillsAreCounted(t *testing.T) {
	r := newRig(t)
	for n := range maxSkills + 5 {
		r.write("home/skills/s"+strings.Repeat("x", n%7)+string(rune('a'+n%26))+strings.Repeat("y", n/26)+"/SKILL.md", "---\ndescription: d\n---\n")
	}
	got := r.notes()
	last := got[len(got)-1]
	if len(got) != maxSkills+1 || last.Path != r.at("home/skills") || !strings.Contains(last.Text, "5 more skills") {
		t.Errorf("told are %d, the last %+v", len(got), last)
	}
}

// The text of a file that has been left alone is kept, and given up with the
// file.
func TestInstructions_Kept(t *testing.T) {
	r := newRig(t)
	r.write("ws/AGENTS.md", "one")
	in := NewInstructions(New(r.conf))
	told := func() string {
		list := in.Read(t.Context(), r.session, domain.Agent{})
		if len(list) != 1 {
			t.Fatalf("told is %+v", list)
		}
		return list[0].Text
	}
	if got := told(); got != "one" || len(in.kept) != 0 {
		t.Errorf("a fresh file is told as %q, kept %d", got, len(in.kept))
	}
	old := time.Now().Add(-time.Hour)
	i, err := statPath(r.at("ws/AGENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	in.kept[i.id] = keptText{info: i, text: "kept"}
	if got := told(); got != "kept" {
		t.Errorf("an unchanged file is told as %q", got)
	}
	if err := os.Chtimes(r.at("ws/AGENTS.md"), old, old); err != nil {
		t.Fatal(err)
	}
	if got := told(); got != "one" {
		t.Errorf("a file with other times is told as %q", got)
	}
}

func TestDescribe(t *testing.T) {
	cases := []struct{ name, text, wantName, wantUse string }{
		{"plain", "---\nname: a\ndescription: b c\n---\nbody", "a", "b c"},
		{"a colon inside", "---\nname: a\ndescription: use: always\n---\n", "a", "use: always"},
		{"quoted", "---\nname: \"a \\\"q\\\"\"\ndescription: 'it''s'\n---\n", `a "q"`, "it's"},
		{"folded", "---\ndescription: >-\n  first\n  second\nname: a\n---\n", "a", "first second"},
		{"kept lines", "---\ndescription: |\n  first\n\n  second\n---\n", "", "first second"},
		{"going on", "---\ndescription: first\n  second\n---\n", "", "first second"},
		{"comments, lists and other fields", "---\n# c\ntools:\n  - description: no\nname: a\n---\n", "a", ""},
		{"no front matter", "name: a\n", "", ""},
		{"not closed", "---\nname: a\n", "", ""},
		{"empty", "", "", ""},
		{"hidden text", "---\nname: a\u202Eb\n---\n", `a\u{202E}b`, ""},
		{"long", "---\nname: " + strings.Repeat("n", 100) + "\n---\n", strings.Repeat("n", 64) + "…", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(c.text); got.name != c.wantName || got.use != c.wantUse {
				t.Errorf("it is %q for %q, want %q for %q", got.name, got.use, c.wantName, c.wantUse)
			}
		})
	}
}
