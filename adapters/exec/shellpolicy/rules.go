package shellpolicy

import (
	"context"
	"fmt"

	"mvdan.cc/sh/v3/syntax"
)

// Words splits the words of a rule, such as git status, by the quoting rules
// of the shell. They must all be known text.
func Words(pattern string) ([]string, error) {
	if why := gate(pattern); why != "" {
		return nil, fmt.Errorf("%q: %s", cut(pattern, 80), why)
	}
	file, err := parse(context.Background(), pattern, Bash)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", cut(pattern, 80), err)
	}
	if len(file.Stmts) != 1 {
		return nil, fmt.Errorf("%q is not one simple command", pattern)
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, fmt.Errorf("%q is not one simple command", pattern)
	}
	w := newWalker(context.Background(), pattern, Env{}, nil)
	var list []string
	for _, d := range w.words(scope{dirs: here()}, call.Args) {
		if !d.plain() {
			return nil, fmt.Errorf("%s is not plain text; a rule covers whatever follows its words, so it needs no pattern", d.from)
		}
		list = append(list, d.text)
	}
	return list, nil
}
