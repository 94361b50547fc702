package porttest

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// shelf is Instructions over a map of files. A text that begins with "->" is a
// link, one that is "/" a directory.
type shelf struct {
	mu    sync.Mutex
	files map[string]string
	fault string
	reads int
	kept  []domain.Instruction
	stuck bool          // it met something it cannot read
	end   chan struct{} // closed with the case
}

const shelfFile, shelfAll = 400, 1600

func (s *shelf) Read(ctx context.Context, session domain.Session, a domain.Agent) []domain.Instruction {
	if ctx.Err() != nil && s.fault == "deaf" {
		<-s.end
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.kept != nil && (s.fault == "stale" || s.fault == "shared") {
		return s.kept
	}
	out := s.all(session, a)
	if s.stuck {
		return nil
	}
	if s.fault == "busy" && s.reads > 3 {
		return nil
	}
	if s.fault == "placeholder" && len(out) == 0 {
		out = append(out, domain.Instruction{Kind: domain.InstructionProject, Path: "/none", Text: "none"})
	}
	s.kept = out
	return out
}

func (s *shelf) all(session domain.Session, a domain.Agent) []domain.Instruction {
	var out []domain.Instruction
	add := func(kind domain.InstructionKind, name string) bool {
		text, ok := s.text(name)
		if !ok {
			return false
		}
		out = append(out, s.told(domain.Instruction{Kind: kind, Path: name}, text))
		return true
	}
	for _, n := range []string{"IDENTITY.md", "SOUL.md"} {
		add(domain.InstructionPersona, path.Join(session.Workspace, n))
	}
	for _, r := range session.Roots() {
		if !add(domain.InstructionProject, r+"/AGENTS.md") || s.fault == "both" {
			add(domain.InstructionProject, r+"/CLAUDE.md")
		}
	}
	var skills []domain.Instruction
	for _, dir := range a.Skills {
		for _, name := range slices.Sorted(maps.Keys(s.files)) {
			if path.Base(name) == "SKILL.md" && path.Dir(path.Dir(name)) == dir {
				if text, ok := s.text(name); ok {
					skills = append(skills, s.skill(name, text)...)
				}
			}
		}
	}
	if s.fault != "by place" {
		slices.SortFunc(skills, func(a, b domain.Instruction) int { return cmp.Compare(a.Name, b.Name) })
	}
	return s.bounded(append(out, skills...))
}

func (s *shelf) text(name string) (string, bool) {
	text, ok := s.files[name]
	if to, link := strings.CutPrefix(text, "->"); link {
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(name), to)
		}
		if path.Dir(to) != path.Dir(name)+"/docs" && s.fault != "follows" {
			return "", false
		}
		text, ok = s.files[to]
	}
	if text == "/" {
		s.stuck = s.stuck || s.fault == "special"
		return "", false
	}
	return text, ok
}

func (s *shelf) told(i domain.Instruction, text string) domain.Instruction {
	text = strings.TrimPrefix(text, "\ufeff")
	if len(text) > shelfFile && s.fault != "endless" {
		n := shelfFile
		for !utf8.RuneStart(text[n]) {
			n--
		}
		text, i.Cut = text[:n], true
	}
	if i.Text = text; s.fault != "hidden" {
		i.Text = domain.Visible(text)
	}
	if s.fault == "trims" {
		i.Text = strings.ReplaceAll(i.Text, "\n", " ")
	}
	return i
}

func (s *shelf) skill(name, text string) []domain.Instruction {
	i := domain.Instruction{Kind: domain.InstructionSkill, Path: name, Name: path.Base(path.Dir(name)), Text: "read it"}
	head, _, closed := strings.Cut(text, "\n---\n")
	if !closed && s.fault == "strict" {
		return nil
	}
	if closed {
		for line := range strings.Lines(head) {
			if v, ok := strings.CutPrefix(line, "name: "); ok {
				i.Name = domain.Visible(strings.TrimSpace(v))
			}
			if v, ok := strings.CutPrefix(line, "description: "); ok {
				i = s.told(i, v)
			}
		}
	}
	if s.fault == "whole" {
		i.Text = text
	}
	return []domain.Instruction{i}
}

func (s *shelf) bounded(list []domain.Instruction) []domain.Instruction {
	total := 0
	for n, i := range list {
		if total += len(i.Text) + len(i.Name); total > shelfAll && s.fault != "everything" {
			return list[:n]
		}
	}
	if s.fault == "shared" {
		return list
	}
	return slices.Clone(list)
}

func TestInstructionsMutants(t *testing.T) {
	with := func(fault string) InstructionsHarness {
		return InstructionsHarness{Open: func(tb TB) InstructionsFixture {
			s := &shelf{files: map[string]string{}, fault: fault, end: make(chan struct{})}
			tb.Cleanup(func() { close(s.end) })
			put := func(name, text string) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.files[name] = text
			}
			return InstructionsFixture{
				Instructions: s, Outside: "/out", MaxFile: shelfFile, MaxAll: shelfAll,
				Session: domain.Session{ID: "s", Cwd: "/p", Additional: []string{"/q"}, Workspace: "/w"},
				Agent:   domain.Agent{Workspace: "/w", Skills: []string{"/k1", "/k2"}},
				Write:   put,
				Mkdir:   func(name string) { put(name, "/") },
				Link:    func(name, target string) { put(name, "->"+target) },
			}
		}}
	}
	faults := map[string]string{
		"instructions-none": "placeholder", "instructions-text": "trims", "instructions-order": "by place",
		"instructions-alone": "both", "instructions-skill": "whole", "instructions-skill-bare": "strict",
		"instructions-link": "follows", "instructions-special": "special", "instructions-long": "endless",
		"instructions-many": "everything", "instructions-visible": "hidden", "instructions-fresh": "stale",
		"instructions-cancelled": "deaf", "instructions-together": "busy", "instructions-copy": "shared",
	}
	for _, c := range instructionsChecks() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				demand(t, c.name, faults, func(fault string) []string {
					return Record(t, func(tb TB) { runChecks(tb, with(fault), []check[InstructionsHarness]{c}) })
				}, "")
			})
		})
	}
	for _, fault := range faults {
		t.Errorf("the fault %q belongs to no case", fault)
	}
}
