package openclaw

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// The bounds of a search for places in a tool's arguments.
const (
	mostPlaces = 20
	mostNodes  = 200
	mostDepth  = 4
	mostPath   = 4096
)

// pathWords end the names of arguments that are paths.
const pathWords = " path paths file files filepath filename source target destination src dst dest cwd dir directory workdir "

// locationsOf are the files that a call's arguments name. A path that is
// relative to base becomes absolute; without a base it is left out, since the
// protocol knows absolute ones alone.
func locationsOf(args fields, base string) []domain.Location {
	w := &walk{base: base, nodes: mostNodes}
	w.object(args, mostDepth)
	return w.found
}

type walk struct {
	base  string
	nodes int
	found []domain.Location
}

func (w *walk) object(f fields, depth int) {
	line := 0
	for _, n := range []string{"line", "lineNumber", "startLine", "start_line", "offset"} {
		if v := f.number(n); v > 0 && line == 0 {
			line = int(min(v, 1<<30))
		}
	}
	for _, name := range sortedNames(f) {
		if w.nodes--; w.nodes < 0 || depth == 0 {
			return
		}
		value := f[name]
		words := wordsOf(name)
		isPath := len(words) > 0 && strings.Contains(pathWords, " "+words[len(words)-1]+" ")
		switch value[0] {
		case '"':
			if isPath && name != "cwd" && name != "workdir" {
				w.add(text(value), line)
			}
		case '[':
			for e := range jsonrpc.Elements(value) {
				if s := text(e); s != "" && isPath {
					w.add(s, 0)
				} else if len(e) > 0 && e[0] == '{' {
					w.object(fieldsOf(e), depth-1)
				}
			}
		case '{':
			w.object(fieldsOf(value), depth-1)
		}
	}
}

func (w *walk) add(p string, line int) {
	if rest, ok := strings.CutPrefix(p, "file://"); ok {
		if u, err := url.PathUnescape(rest); err == nil {
			p = u
		}
	}
	if p == "" || len(p) > mostPath || strings.ContainsAny(p, "\n\r\x00") || strings.Contains(p, "://") {
		return
	}
	if !isAbsolute(p) {
		if w.base == "" || strings.HasPrefix(p, "~") || !strings.HasPrefix(w.base, "/") {
			return
		}
		p = path.Join(w.base, p)
	}
	for i, l := range w.found {
		if l.Path == p {
			w.found[i].Line = max(l.Line, line)
			return
		}
	}
	if len(w.found) < mostPlaces {
		w.found = append(w.found, domain.Location{Path: p, Line: line})
	}
}

// sortedNames are the names of an object's members in a lasting order.
func sortedNames(f fields) []string {
	names := make([]string, 0, len(f))
	for n, v := range f {
		if len(v) > 0 {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}
