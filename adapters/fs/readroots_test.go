package fs

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// Skills are read like the session's own files and changed by no tool, at no
// level; those that lie in a root are the root's.
func TestReadRoots(t *testing.T) {
	for _, level := range []domain.Level{domain.LevelSupervised, domain.LevelFull} {
		t.Run(string(level), func(t *testing.T) {
			r := newRig(t)
			r.write("home/skills/a/SKILL.md", "steps")
			r.write("agent/skills/b/SKILL.md", "own steps")
			r.pol.Level, r.policy.Level = level, level
			r.pol.ReadRoots = []string{"~/skills", r.at("agent/skills"), r.at("none")}
			r.open()
			cases := []struct {
				name, tool, args string
				want             domain.Verdict
			}{
				{"read", "read_file", `{"path":"` + r.at("home/skills/a/SKILL.md") + `"}`, domain.Allow},
				{"list", "list_directory", `{"path":"` + r.at("home/skills") + `"}`, domain.Allow},
				{"edit", "edit_file", `{"path":"` + r.at("home/skills/a/SKILL.md") + `","edits":[{"old_text":"steps","new_text":"x"}]}`, domain.Refuse},
				{"create", "write_file", `{"path":"` + r.at("home/skills/new.md") + `","content":"x"}`, domain.Refuse},
				{"edit in the workspace", "write_file", `{"path":"` + r.at("agent/skills/b/SKILL.md") + `","content":"x"}`, domain.Allow},
			}
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					p, err := r.tools[c.tool].Prepare(t.Context(), domain.ToolCall{Session: "s1", Name: c.tool, Args: []byte(c.args)})
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = p.Close() }()
					if got := domain.Decide(r.policy, nil, p.Plan().Access); got.Verdict != c.want {
						t.Errorf("decided %+v, want %v", got, c.want)
					}
				})
			}
			if roots := r.disk.WritableRoots(r.session); slices.Contains(roots, r.at("home/skills")) {
				t.Errorf("commands may write in %v", roots)
			}
			place := r.disk.Judge(t.Context(), r.session, "", r.at("home/skills/a/SKILL.md"))
			if place.Where != domain.WhereInside || !place.Protected {
				t.Errorf("a command that names it finds %+v", place)
			}
		})
	}
}

// What is forbidden stays so, whoever configured it for reading.
func TestReadRoots_Forbidden(t *testing.T) {
	r := newRig(t)
	r.pol.ReadRoots = []string{r.at("conf")}
	r.open()
	p, err := r.tools["read_file"].Prepare(t.Context(), domain.ToolCall{Session: "s1", Name: "read_file", Args: []byte(`{"path":"` + r.at("conf/config.toml") + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if why := p.Plan().Access.Forbidden; !strings.Contains(why, "forbidden") {
		t.Errorf("access is refused for %q", why)
	}
}
