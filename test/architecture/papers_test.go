package architecture

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// papers returns the Markdown files a reader of the repository is sent to.
func (t *tree) papers() []string {
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "test/*/*.md"} {
		found, err := fs.Glob(t.fsys, pattern)
		if err == nil {
			names = append(names, found...)
		}
	}
	return names
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan     = regexp.MustCompile("`([^`\n]+)`")
	repoPath     = regexp.MustCompile(`^(\./)?((cmd|core|adapters|bootstrap|test|docs|\.ci)(/[\w.{},-]+)*/?|[A-Z]+\.md)(:\d+)?$`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	fence        = regexp.MustCompile("(?ms)^```.*?^```")
)

// checkLinks finds links and quoted paths of the papers that lead nowhere.
// Blocks of code are left alone: layouts and examples name what could be.
func checkLinks(t *tree) []violation {
	var bad []violation
	for _, name := range t.papers() {
		raw, err := fs.ReadFile(t.fsys, name)
		if err != nil {
			bad = append(bad, violation{name, err.Error()})
			continue
		}
		text := fence.ReplaceAllString(string(raw), "")
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if why := t.deadLink(name, m[1], string(raw)); why != "" {
				bad = append(bad, violation{name, why})
			}
		}
		for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
			if !repoPath.MatchString(m[1]) {
				continue
			}
			for _, p := range braces(strings.TrimPrefix(m[1], "./")) {
				if userFile(p) || placeholder(p) {
					continue
				}
				if !t.namedExists(p) {
					bad = append(bad, violation{name, fmt.Sprintf("names `%s`, and there is no %s", m[1], p)})
				}
			}
		}
	}
	return bad
}

// deadLink says why a Markdown link leads nowhere; "" when it does not or is
// outside the repository.
func (t *tree) deadLink(from, target, text string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, anchor, hasAnchor := strings.Cut(target, "#")
	if file != "" {
		full := path.Join(path.Dir(from), file)
		if !t.exists(full) {
			return "links to " + target + ", and there is no " + full
		}
		raw, err := fs.ReadFile(t.fsys, full)
		if err != nil {
			return "" // a directory has no headings
		}
		text = string(raw)
	}
	if hasAnchor && !hasHeading(text, anchor) {
		return "links to " + target + ", and no heading makes that anchor"
	}
	return ""
}

// hasHeading reports whether a heading of the text has the anchor that code
// hosts give it: lower case, punctuation dropped, spaces as hyphens.
func hasHeading(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(m[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		if b.String() == anchor {
			return true
		}
	}
	return false
}

// namedExists reports whether a quoted path exists. core/ports.Store means a
// thing of core/ports; a trailing :12 means a line.
func (t *tree) namedExists(p string) bool {
	p = strings.TrimSuffix(p, "/")
	if i := strings.LastIndexByte(p, ':'); i > 0 {
		p = p[:i]
	}
	if t.exists(p) {
		return true
	}
	dir, name, ok := strings.Cut(path.Base(p), ".")
	if !ok || name == "" || !unicode.IsUpper(rune(name[0])) {
		return false
	}
	return t.exists(path.Join(path.Dir(p), dir))
}

// userFile reports whether a name is of a file that users have in their own
// projects, which the papers speak about.
func userFile(name string) bool {
	switch name {
	case "AGENTS.md", "CLAUDE.md", "IDENTITY.md", "SOUL.md", "SKILL.md":
		return true
	}
	return false
}

// placeholder reports whether a path stands for many, as adapters/X does.
func placeholder(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return len(part) == 1 && unicode.IsUpper(rune(part[0]))
	})
}

// braces expands a{b,c}d into abd and acd.
func braces(s string) []string {
	head, rest, ok := strings.Cut(s, "{")
	if !ok {
		return []string{s}
	}
	inner, tail, ok := strings.Cut(rest, "}")
	if !ok {
		return []string{s}
	}
	var out []string
	for part := range strings.SplitSeq(inner, ",") {
		out = append(out, braces(head+part+tail)...)
	}
	return out
}
