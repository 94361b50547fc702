package acceptance

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// form is one way a canary can be written.
type form struct {
	canary string // its name
	how    string
	text   []byte
}

// keyLen is how many bytes of a form tell whether it may stand somewhere.
const keyLen = 8

// finder finds the forms of canaries in bytes: as they are, in other letters,
// backwards, in hexadecimal, in base64 and per cent; and the halves of each, so
// that one that is cut into two anywhere is found by its longer part.
type finder struct {
	first [1 << 16]bool // by the first two bytes of a form
	forms map[[keyLen]byte][]form
}

// birds is the finder of all canaries of the acceptance tests.
var birds = sync.OnceValue(func() *finder { return newFinder(allCanaries()) })

func newFinder(list []canary) *finder {
	f := &finder{forms: map[[keyLen]byte][]form{}}
	for _, c := range list {
		f.add(c.name, "as it is", c.core)
		f.add(c.name, "in capitals", strings.ToUpper(c.core))
		f.add(c.name, "in small letters", strings.ToLower(c.core))
		f.add(c.name, "backwards", reversed(c.core))
		f.add(c.name, "in hexadecimal", hex.EncodeToString([]byte(c.core)))
		f.add(c.name, "in hexadecimal", strings.ToUpper(hex.EncodeToString([]byte(c.core))))
		for _, text := range base64Forms(c.core) {
			f.add(c.name, "in base64", text)
			f.add(c.name, "in base64", strings.NewReplacer("+", "-", "/", "_").Replace(text))
		}
		for _, digits := range []string{"%%%02x", "%%%02X"} {
			var b strings.Builder
			for i := range len(c.core) {
				fmt.Fprintf(&b, digits, c.core[i])
			}
			f.add(c.name, "per cent", b.String())
		}
	}
	return f
}

// add adds a form and its halves.
func (f *finder) add(name, how, text string) {
	for _, p := range []struct{ how, text string }{{how, text}, {how + ", first half", text[:len(text)/2]}, {how + ", second half", text[len(text)/2:]}} {
		key := [keyLen]byte([]byte(p.text))
		f.first[uint16(key[0])<<8|uint16(key[1])] = true
		f.forms[key] = append(f.forms[key], form{name, p.how, []byte(p.text)})
	}
}

// find says which canaries stand in data, and how.
func (f *finder) find(data []byte) []string {
	var found []string
	for i := 0; i+keyLen <= len(data); i++ {
		if !f.first[uint16(data[i])<<8|uint16(data[i+1])] {
			continue
		}
		for _, form := range f.forms[[keyLen]byte(data[i:])] {
			if bytes.HasPrefix(data[i:], form.text) {
				found = append(found, form.canary+" "+form.how)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// leaks looks for the canaries in all that one run lets out.
type leaks struct {
	mu    sync.Mutex
	said  map[string][]byte // by client, the texts that it was sent, joined
	found []string
}

func newLeaks() *leaks { return &leaks{said: map[string][]byte{}} }

// look notes the canaries that stand in data.
func (l *leaks) look(where string, data []byte) {
	for _, what := range birds().find(data) {
		l.found = append(l.found, where+" holds the canary "+what)
	}
}

// frame looks at what a client is sent.
func (l *leaks) frame(f transcript.Frame) {
	if f.Dir == transcript.ToAgent {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(fmt.Sprintf("a frame (%.120s…)", f.Data), f.Data)
	var v any
	if json.Unmarshal(f.Data, &v) == nil {
		l.said[f.Client] = append(l.said[f.Client], texts(v)...)
	}
}

// texts joins the texts of a message.
func texts(v any) []byte {
	var all []byte
	switch v := v.(type) {
	case map[string]any:
		if s, ok := v["text"].(string); ok {
			all = append(all, s...)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, texts(v[key])...)
		}
	case []any:
		for _, e := range v {
			all = append(all, texts(e)...)
		}
	}
	return all
}

// squeezed leaves the blanks out of a text: what is written with one letter a
// line stands there in one piece.
func squeezed(data []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '\r' || r == '\t' {
			return -1
		}
		return r
	}, data)
}

// finish looks at the log and at every file of the run that the operator did
// not put a canary into, and returns what was found.
func (l *leaks) finish(w world, log string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for client, said := range l.said {
		l.look(fmt.Sprintf("what client %q was told in all", client), said)
		l.look(fmt.Sprintf("what client %q was told in all, without blanks,", client), squeezed(said))
	}
	l.look("the log", []byte(log))
	l.look("the log without blanks", squeezed([]byte(log)))
	own := []string{filepath.Join(w.config, "config.toml"), filepath.Join(w.config, settingCanaries().file.name), filepath.Join(w.config, "model.script"), filepath.Join(w.data, "credentials.toml")}
	for _, c := range homeCanaries() {
		own = append(own, filepath.Join(w.home, filepath.FromSlash(c.name)))
	}
	for _, dir := range []string{w.work, w.data, w.config, w.home} {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // what is not there holds nothing
			}
			l.look("the name of "+path, []byte(filepath.Base(path)))
			if !e.Type().IsRegular() || slices.Contains(own, path) {
				return nil
			}
			if data, err := os.ReadFile(path); err == nil {
				l.look("the file "+path, data)
			}
			return nil
		})
	}
	slices.Sort(l.found)
	return slices.Compact(l.found)
}

// checkLeaks reports every canary that got out of a run.
func checkLeaks(t *testing.T, l *leaks, w world, log string) {
	t.Helper()
	for _, found := range l.finish(w, log) {
		t.Errorf("a secret got out: %s", found)
	}
}

// setCanaries puts the canaries of the environment into that of this process,
// and with it of every process that tests start.
func setCanaries() error {
	for _, c := range envCanaries() {
		if runtime.GOOS == "windows" && c.name == "SSH_AUTH_SOCK" {
			continue
		}
		if err := os.Setenv(c.name, c.value); err != nil {
			return err
		}
	}
	return nil
}

// isCanary reports whether a variable is one of the canaries.
func isCanary(name string) bool {
	return slices.ContainsFunc(envCanaries(), func(c canary) bool { return c.name == name })
}
