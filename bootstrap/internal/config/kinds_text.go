package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
	"github.com/berth-dev/berth/core/domain"
)

// texts is any text.
type texts struct{ allowEmpty bool }

func (k texts) parse(n *tomltree.Node, _ place) (any, error) {
	switch {
	case n.Kind != tomltree.String:
		return nil, wrongKind(n)
	case n.Text == "" && !k.allowEmpty:
		return nil, errors.New("is empty")
	case strings.ContainsRune(n.Text, 0):
		return nil, errors.New("holds a NUL character")
	}
	return n.Text, nil
}

func (texts) allowed() string        { return "text in quotes" }
func (texts) schema() map[string]any { return map[string]any{"type": "string"} }

// names is the name of an agent, provider, profile or server.
type names struct{}

func (names) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	if !validName(n.Text) {
		return nil, fmt.Errorf("%s is not a name", quote(n.Text))
	}
	return n.Text, nil
}

func (names) allowed() string        { return nameRule }
func (names) schema() map[string]any { return nameSchema() }

func nameSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[a-z](_?[a-z0-9])*_?$", "maxLength": 63}
}

// models is a reference "provider/model".
type models struct{}

func (models) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	ref, err := domain.ParseModelRef(n.Text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s names no provider", quote(n.Text))
	case !validName(ref.Provider):
		return nil, fmt.Errorf("%s is not the name of a provider", quote(ref.Provider))
	case strings.IndexFunc(ref.Model, unicode.IsControl) >= 0:
		return nil, errors.New("holds a control character")
	}
	return ref, nil
}

func (models) allowed() string { return "\"<provider>/<model>\"" }
func (models) schema() map[string]any {
	return map[string]any{"type": "string", "pattern": "^[a-z][a-z0-9_]*/.+$"}
}

// paths is a path of a file or directory. It becomes absolute: "~/" is the
// home directory, and relative paths are relative to the configuration
// directory, or to the working directory when a variable or flag gives them.
// A negatable one may begin with "!".
type paths struct{ negatable bool }

func (k paths) parse(n *tomltree.Node, p place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	text, not := n.Text, ""
	if rest, ok := strings.CutPrefix(text, "!"); ok && k.negatable {
		text, not = rest, "!"
	}
	abs, err := absolute(text, p)
	if err != nil {
		return nil, err
	}
	return not + abs, nil
}

// absolute resolves a path as a person writes it.
func absolute(text string, p place) (string, error) {
	switch {
	case text == "":
		return "", errors.New("is empty")
	case strings.ContainsRune(text, 0):
		return "", errors.New("holds a NUL character")
	case text == "~" || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, `~\`) && filepath.Separator == '\\':
		if p.home == "" {
			return "", fmt.Errorf("%s needs a home directory, and there is none; set HOME", quote(text))
		}
		return filepath.Join(p.home, text[1:]), nil
	case strings.HasPrefix(text, "~"):
		return "", fmt.Errorf("%s names the home directory of another user", quote(text))
	case filepath.IsAbs(text):
		return filepath.Clean(text), nil
	case p.dir == "":
		return "", fmt.Errorf("%s is relative, and there is no directory it could be relative to", quote(text))
	}
	return filepath.Join(p.dir, text), nil
}

func (k paths) allowed() string {
	if k.negatable {
		return "a path, absolute or beginning with ~/, with ! before it to take a built-in one away"
	}
	return "a path, absolute, beginning with ~/, or relative to the configuration directory"
}
func (k paths) schema() map[string]any { return map[string]any{"type": "string", "minLength": 1} }

// variables is the name of an environment variable; a "*" may end it.
type variables struct{}

func (variables) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	if name := strings.TrimSuffix(n.Text, "*"); !isVariable(name) {
		return nil, fmt.Errorf("%s is not the name of a variable", quote(n.Text))
	}
	return n.Text, nil
}

func isVariable(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_')
	}) < 0
}

func (variables) allowed() string { return "the name of an environment variable, such as PATH or LC_*" }
func (variables) schema() map[string]any {
	return map[string]any{"type": "string", "pattern": `^[A-Za-z_][A-Za-z0-9_]*\*?$`}
}

// rules is a permission rule: a tool name or pattern, or a table with
// examples.
type rules struct{}

func (k rules) parse(n *tomltree.Node, _ place) (any, error) {
	switch n.Kind {
	case tomltree.String:
		return Rule{Rule: n.Text}, checkRule(n.Text)
	case tomltree.Table:
		return k.table(n)
	}
	return nil, wrongKind(n)
}

func (k rules) table(n *tomltree.Node) (any, error) {
	var r Rule
	for _, c := range n.Items {
		switch c.Key {
		case "rule":
			if c.Kind != tomltree.String {
				return nil, fmt.Errorf("has a rule that %w", wrongKind(c))
			}
			r.Rule = c.Text
		case "match", "not_match":
			v, err := lists{texts{}}.parse(c, place{})
			if err != nil {
				return nil, fmt.Errorf("has a %s that %w", c.Key, err)
			}
			for _, s := range v.([]any) {
				if c.Key == "match" {
					r.Match = append(r.Match, s.(string))
				} else {
					r.NotMatch = append(r.NotMatch, s.(string))
				}
			}
		default:
			return nil, fmt.Errorf("has an unknown key %s", quote(c.Key))
		}
	}
	return r, checkRule(r.Rule)
}

// checkRule checks the outer form, tool or tool(pattern). What a pattern
// means is the business of the tool's policy.
func checkRule(s string) error {
	tool, pattern, has := strings.Cut(s, "(")
	if tool == "" || strings.IndexFunc(tool, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == ')' }) >= 0 {
		return fmt.Errorf("%s names no tool", quote(s))
	}
	if has && (!strings.HasSuffix(pattern, ")") || pattern == ")") {
		return fmt.Errorf("%s has no pattern between ( and )", quote(s))
	}
	return nil
}

func (rules) allowed() string {
	return "a tool name, a rule such as \"shell(git status)\", or {rule = \"…\", match = [\"…\"], not_match = [\"…\"]}"
}

func (rules) schema() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	examples := map[string]any{"type": "array", "items": text}
	return map[string]any{"anyOf": []any{text, map[string]any{
		"type": "object", "required": []string{"rule"}, "additionalProperties": false,
		"properties": map[string]any{"rule": text, "match": examples, "not_match": examples},
	}}}
}
