package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/acpclient"
)

// signedIn opens a session. An agent that asks to be signed in to gets that,
// once, by a way that the person chooses.
func (r *client) signedIn(ctx context.Context, methods []acpclient.AuthMethod, open func() error) error {
	err := open()
	if !acpclient.AuthRequired(err) {
		return err
	}
	id, why := r.way(methods, err)
	if why != nil {
		return why
	}
	if err := r.proc.Authenticate(ctx, id); err != nil {
		return fmt.Errorf("sign in by %s: %w", id, err)
	}
	return open()
}

// way chooses one of the ways to sign in: that of --auth, or the person's.
func (r *client) way(methods []acpclient.AuthMethod, asked error) (string, error) {
	own := slices.DeleteFunc(slices.Clone(methods), acpclient.AuthMethod.InTerminal)
	list := describe(methods)
	switch {
	case len(methods) == 0:
		return "", fmt.Errorf("%w\nThe agent offers no way to sign in", asked)
	case len(own) == 0:
		return "", fmt.Errorf("%w\nSign in outside of this client:\n%s", asked, list)
	case r.flags.auth != "":
		if !slices.ContainsFunc(own, func(m acpclient.AuthMethod) bool { return m.ID == r.flags.auth }) {
			return "", fmt.Errorf("%w\n--auth %s is none of the ways to sign in:\n%s", asked, r.flags.auth, list)
		}
		return r.flags.auth, nil
	case len(own) == 1 && dataOf(asked).Key != "": // it has said what to do, and its only way is to try again
		return "", asked
	case !r.tty:
		return "", fmt.Errorf("%w\nChoose a way to sign in with --auth ID:\n%s", asked, list)
	}
	fmt.Fprintf(r.errOut, "%v\nWays to sign in:\n%s\n", asked, list)
	for {
		fmt.Fprintf(r.errOut, "sign in by [%s]: ", own[0].ID)
		line, err := r.stdin.ReadString('\n')
		if err != nil {
			return "", errors.New("not signed in")
		}
		if line = strings.TrimSpace(line); line == "" {
			return own[0].ID, nil
		}
		if slices.ContainsFunc(own, func(m acpclient.AuthMethod) bool { return m.ID == line }) {
			return line, nil
		}
		fmt.Fprintln(r.errOut, "That is none of them.")
	}
}

// describe lists ways to sign in, one a line.
func describe(methods []acpclient.AuthMethod) string {
	lines := make([]string, len(methods))
	for i, m := range methods {
		lines[i] = "  " + m.ID
		for _, more := range []string{m.Name, m.Description} {
			if more != "" {
				lines[i] += " - " + more
			}
		}
		if m.InTerminal() {
			lines[i] += " (in a terminal, with the arguments: " + strings.Join(m.Args, " ") + ")"
		}
	}
	return strings.Join(lines, "\n")
}
