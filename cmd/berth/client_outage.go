package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
)

// outage is what the client tells of a gateway that is lost, and how to go on.
// Its methods may be called from several goroutines.
type outage struct {
	again []string // the command that connects to the same gateway

	mu      sync.Mutex
	session string
	lost    bool // there was an outage
	told    bool // how to go on
}

// opened says which session is open.
func (o *outage) opened(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.session = id
}

// command is how to go on with the session, once; "" when that was told, or
// there is none. Unless sure is set there must have been an outage.
func (o *outage) command(sure bool) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told || o.session == "" || len(o.again) == 0 || !sure && !o.lost {
		return ""
	}
	o.told = true
	words := make([]string, 0, len(o.again)+2)
	for _, w := range append(o.again[:len(o.again):len(o.again)], "--session", o.session) {
		words = append(words, shellWord(w))
	}
	return strings.Join(words, " ")
}

// tellOutage tells the person what the bridge says about the connection, at
// once. It reports whether the line was about that.
func (r *client) tellOutage(line string) bool {
	text, _ := strings.CutPrefix(line, "bridge: ")
	switch {
	case strings.HasPrefix(line, bootstrap.OutageLost), strings.HasPrefix(line, bootstrap.OutageBack):
		r.outage.mu.Lock()
		r.outage.lost = true
		r.outage.mu.Unlock()
	case strings.HasPrefix(line, bootstrap.OutageOver):
		if command := r.outage.command(true); command != "" {
			text += "; go on later with: " + command
		}
	default:
		return false
	}
	r.view.aside(r.errOut, text)
	return true
}

// aside writes a line of the client's own to another place, which may be the
// same screen.
func (v *view) aside(w io.Writer, s string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.screen {
		v.breakLine()
	}
	fmt.Fprintf(w, "· %s\n", plain(s))
}

// goOn explains why a prompt failed, and says how to go on with its session
// where the connection to the gateway may be why.
func (r *client) goOn(err error) error {
	explained := r.explain(err)
	sure := dataOf(err).Reason == "CONNECTION_LOST" || errors.Is(err, domain.Disconnected)
	if command := r.outage.command(sure); command != "" {
		return fmt.Errorf("%w; go on with: %s", explained, command)
	}
	return explained
}

// againArgs are the words of a command that connects to the same gateway.
func (f clientFlags) againArgs(c *common) []string {
	words := []string{"berth", "client", "--url", f.url}
	for _, flag := range [][2]string{
		{"--token-file", f.tokenFile}, {"--cwd", f.cwd}, {"--config-dir", c.configDir}, {"--data-dir", c.dataDir},
	} {
		if flag[1] != "" {
			words = append(words, flag[0], flag[1])
		}
	}
	return words
}

// shellWord is a word as it is typed in a shell.
func shellWord(s string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,\\~"
	switch {
	case s != "" && strings.Trim(s, safe) == "" && (runtime.GOOS == "windows" || !strings.ContainsAny(s, `\~`)):
		return s
	case runtime.GOOS == "windows":
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
