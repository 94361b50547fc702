package fs

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

const (
	maxSkills      = 200 // of one kind that are told
	maxSkillDirs   = 2000
	maxSkillName   = 64       // bytes
	maxSkillUse    = 1 << 10  // bytes of one description
	maxSkillsBytes = 32 << 10 // of all descriptions of one kind
	skillFile      = "SKILL.md"
	skillEntry     = 8 << 10 // bytes of a file in which its description must end
)

// projectSkills returns where a project may bring skills of its own.
func projectSkills() string { return filepath.Join(".berth", "skills") }

// skill is one directory with a SKILL.md.
type skill struct{ name, use, path string }

// skillList is skills that were found, each name once.
type skillList struct {
	list  []skill
	taken []string // names that are given
	notes []domain.Instruction
}

// find adds the skills below a directory of a space's root. Its text is told
// of none: name, use and place are enough to know when to read it.
func (l *skillList) find(r *reader, sp *space, dir string) {
	base := sp.roots[0].path
	names, why := skillDirs(r, sp, dir)
	if why != "" {
		l.notes = append(l.notes, domain.Instruction{Path: filepath.Join(base, dir), Name: filepath.Base(filepath.Join(base, dir)), Text: "(These skills cannot be read: " + why + ".)"})
	}
	for _, n := range names {
		if r.ctx.Err() != nil {
			return
		}
		rel := filepath.Join(dir, n, skillFile)
		text, _, why := r.read(sp, rel)
		if text == "" || why != "" {
			continue
		}
		s := describe(clip(text, skillEntry))
		s.path = filepath.Join(base, rel)
		if s.name == "" {
			s.name = oneLine(n, maxSkillName)
		}
		if s.use == "" {
			s.use = "(It does not say what it is for; read it to find out.)"
		}
		if slices.Contains(l.taken, s.name) {
			continue
		}
		l.taken = append(l.taken, s.name)
		l.list = append(l.list, s)
	}
}

// skillDirs lists the directories below sub that may be skills, sorted. why
// says in words that there is something that cannot be read.
func skillDirs(r *reader, sp *space, sub string) (names []string, why string) {
	var d *dir
	t, err := sp.retry(r.ctx, sub, func() (*target, error) {
		t, err := sp.walk("." + string(os.PathSeparator) + sub)
		if err == nil && !t.blocked() && t.ban == "" && t.found {
			d, err = openListed(sp, t)
		}
		return t, err
	})
	if err != nil {
		return nil, ""
	}
	defer t.close()
	if d == nil {
		if t.ban != "" {
			why = domain.Visible(t.refusal())
		}
		return nil, why
	}
	defer func() { _ = d.close() }()
	f, err := d.readable()
	if err != nil {
		return nil, domain.Visible(reason(err))
	}
	defer func() { _ = f.Close() }()
	entries, _ := f.ReadDir(maxSkillDirs)
	for _, e := range entries {
		// A name that would not fit into one line could be read as more.
		if e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") || printable(e.Name()) != e.Name() {
			continue
		}
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, ""
}

// tell adds the skills by name, as many as there is room for. Those of a
// project are told as its words.
func (l *skillList) tell(r *reader, kind domain.InstructionKind) {
	slices.SortStableFunc(l.list, func(a, b skill) int { return cmp.Compare(a.name, b.name) })
	room, n := maxSkillsBytes, 0
	for _, s := range l.list {
		if room -= len(s.name) + len(s.use); room < 0 || n == maxSkills {
			break
		}
		n++
		i := domain.Instruction{Kind: kind, Path: s.path, Name: s.name, Text: s.use}
		if kind == domain.InstructionProject {
			i.Text = "A skill, " + s.name + ": " + s.use + " Read the file when it fits the task."
		}
		r.tell(i)
	}
	if n < len(l.list) {
		dir := filepath.Dir(filepath.Dir(l.list[n].path))
		r.tell(domain.Instruction{Kind: kind, Path: dir, Name: "more", Text: plural(len(l.list)-n, "more skill") + "; list_directory shows them."})
	}
	for _, note := range l.notes {
		note.Kind = kind
		r.tell(note)
	}
}

// describe reads the front matter of a skill's file: name and description
// between two lines of three hyphens. They may be quoted, or go on in indented
// lines.
func describe(text string) skill {
	body, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return skill{}
	}
	head, _, closed := strings.Cut(body, "\n---")
	if !closed {
		return skill{}
	}
	fields := map[string]string{}
	key := ""
	for _, line := range strings.Split(head, "\n") {
		name, value, isField := strings.Cut(line, ":")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			fields[key] += " " + strings.TrimSpace(line)
		case isField:
			key = strings.TrimSpace(name)
			fields[key] = strings.TrimSpace(value)
		default:
			key = ""
		}
	}
	return skill{name: oneLine(scalar(fields["name"]), maxSkillName), use: oneLine(scalar(fields["description"]), maxSkillUse)}
}

// scalar takes what YAML puts around a text off it.
func scalar(value string) string {
	value = strings.TrimSpace(value)
	for _, block := range []string{">-", ">+", ">", "|-", "|+", "|"} {
		if rest, ok := strings.CutPrefix(value, block); ok && (rest == "" || rest[0] == ' ') {
			return rest
		}
	}
	if n := len(value); n > 1 && value[0] == value[n-1] {
		switch value[0] {
		case '"':
			return strings.NewReplacer(`\"`, `"`, `\n`, " ", `\\`, `\`).Replace(value[1 : n-1])
		case '\'':
			return strings.ReplaceAll(value[1:n-1], "''", "'")
		}
	}
	return value
}
