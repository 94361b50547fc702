package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// Origin says where a value comes from.
type Origin struct {
	Layer Layer
	Name  string       // of the environment variable or flag
	File  string       // of the configuration file
	At    tomltree.Pos // in that file
}

// Layer is a source of values. A later one beats an earlier one.
type Layer int

// The layers.
const (
	FromDefault Layer = iota
	FromFile
	FromEnv
	FromFlag
)

// String returns "default", "file", "env" or "flag".
func (l Layer) String() string { return [...]string{"default", "file", "env", "flag"}[l] }

// String returns "default", "/path/config.toml:3:1", "$BERTH_ACP__DIALECT" or
// "--dialect".
func (o Origin) String() string {
	switch o.Layer {
	case FromFile:
		if o.At == (tomltree.Pos{}) {
			return o.File
		}
		return fmt.Sprintf("%s:%d:%d", o.File, o.At.Line, o.At.Col)
	case FromEnv:
		return "$" + o.Name
	case FromFlag:
		return o.Name
	}
	return "default"
}

// Problem is one thing that stops the start.
type Problem struct {
	Origin  Origin
	Key     string // dotted path of the setting; "" when it is none
	Message string // what is wrong, what is allowed, what was probably meant
}

// String returns one line: place, key, message.
func (p Problem) String() string {
	s := p.Message
	if p.Key != "" {
		s = p.Key + ": " + s
	}
	switch p.Origin.Layer {
	case FromFile:
		return p.Origin.String() + ": " + s
	case FromEnv:
		return "environment variable " + p.Origin.Name + ": " + s
	case FromFlag:
		return "flag " + p.Origin.Name + ": " + s
	}
	return s
}

// Error is why a configuration was refused: every problem that was found.
type Error struct{ Problems []Problem }

// Error returns the problem on one line, or a heading and one line for each.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems in the configuration:", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		b.WriteString(p.String())
	}
	return b.String()
}

// sentence joins the parts of a message. A part that asks a question is
// already closed.
func sentence(parts ...string) string {
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == 0:
		case strings.HasSuffix(parts[i-1], "?"):
			b.WriteByte(' ')
		default:
			b.WriteString("; ")
		}
		b.WriteString(p)
	}
	return b.String()
}

// report collects problems.
type report struct {
	problems []Problem
	bad      map[string]bool // keys whose value was refused
}

// add reports a value that is refused by itself.
func (r *report) add(o Origin, key, format string, args ...any) {
	if r.bad == nil {
		r.bad = map[string]bool{}
	}
	r.bad[key] = true
	r.also(o, key, format, args...)
}

// also reports a value that is refused because of others.
func (r *report) also(o Origin, key, format string, args ...any) {
	r.problems = append(r.problems, Problem{Origin: o, Key: key, Message: fmt.Sprintf(format, args...)})
}

// err returns the problems in reading order: file, environment, flags.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Origin.Layer, b.Origin.Layer),
			cmp.Compare(a.Origin.At.Line, b.Origin.At.Line),
			cmp.Compare(a.Origin.At.Col, b.Origin.At.Col),
			cmp.Compare(a.Origin.Name, b.Origin.Name),
		)
	})
	return &Error{Problems: r.problems}
}

// nearest returns the candidate most like word, or "" when none is close
// enough to be what was meant. Of equals the first wins.
func nearest(word string, candidates []string) string {
	best, bestDist := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b. Words too long to be key names are not
// compared.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 1 << 20
	}
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
