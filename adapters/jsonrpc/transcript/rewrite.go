package transcript

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// rewrite changes a pattern so that got matches it, and keeps its form:
// members it does not name stay unnamed, variables and other special strings
// stay where got allows it.
func rewrite(pattern, got json.RawMessage) json.RawMessage {
	p, err := decode(pattern)
	if err != nil {
		return pattern
	}
	if got == nil {
		return nil // the message has no such part
	}
	g, err := decode(got)
	if err != nil {
		return pattern
	}
	return encode(rewriteValue(p, g))
}

func rewriteValue(pattern, got any) any {
	switch p := pattern.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return literal(got)
		}
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(p)) {
			item, present := g[name]
			switch {
			case present:
				out[name] = rewriteValue(p[name], item)
			case p[name] == "!":
				out[name] = "!"
			}
		}
		return out
	case []any:
		return rewriteList(p, got)
	case string:
		m := matcher{vars: vars{}, captured: vars{}}
		regex := strings.HasPrefix(p, "~") && m.text("", p, got, true) == ""
		if p == "*" || regex || variable.FindString(p) == p && p != "" && p != "$$" {
			return p
		}
	}
	return literal(got)
}

func rewriteList(pattern []any, got any) any {
	g, ok := got.([]any)
	if !ok {
		return literal(got)
	}
	n := len(g)
	open := len(pattern) > 0 && pattern[len(pattern)-1] == "..."
	if open {
		pattern = pattern[:len(pattern)-1]
		n = min(n, len(pattern))
	}
	out := []any{}
	for i, item := range g[:n] {
		if i < len(pattern) {
			out = append(out, rewriteValue(pattern[i], item))
		} else {
			out = append(out, literal(item))
		}
	}
	if open {
		out = append(out, "...")
	}
	return out
}

// literal turns a value into a pattern that means exactly it.
func literal(v any) any {
	switch x := v.(type) {
	case string:
		return literalText(x)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = literal(x[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for name := range x {
			out[name] = literal(x[name])
		}
		return out
	}
	return v
}

func literalText(s string) string {
	if s == "*" || s == "!" || s == "..." || strings.HasPrefix(s, "=") || strings.HasPrefix(s, "~") || variable.MatchString(s) {
		return "=" + s
	}
	return s
}
