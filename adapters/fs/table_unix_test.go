//go:build unix

package fs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

var wholeTable = flag.Bool("whole-table", false, "try every generated path also where each is written to")

func everyTenth(paths []string) []string {
	var some []string
	for i := 0; i < len(paths); i += 10 {
		some = append(some, paths[i])
	}
	return some
}

// The factors of the generated paths: what may stand for a directory above,
// what may separate names, and what a way out would lead to.
func pathDots() []string {
	return []string{"..", ".", "...", ".. ", " ..", "..\x00", "%2e%2e", "\uFF0E\uFF0E", "\u2025", "..;", ".\u200D."}
}

func pathSeparators() []string {
	return []string{"/", "//", "\\", "%2f", "\u2215", "/\\", "/./", "\uFF0F"}
}

func pathTargets() []string {
	return []string{
		"out/secret.txt", "ws-evil/secret.txt", "out", "a.txt", "ws/a.txt", "ws/src", "ws/private/p.txt", "data/sessions/acp-sessions.db",
		"home/.ssh/id_rsa", "ws/new/file.txt", "out/new.txt",
	}
}

// generatedPaths are all ways to write a way up, relative, absolute, from below
// and from home.
func generatedPaths(base string) []string {
	var all []string
	for _, dot := range pathDots() {
		for _, sep := range pathSeparators() {
			for _, to := range pathTargets() {
				to = strings.ReplaceAll(to, "/", sep)
				all = append(all,
					dot+sep+to,
					base+sep+"ws"+sep+dot+sep+to,
					"src"+sep+dot+sep+dot+sep+to,
					"~"+sep+dot+sep+to,
					base+"/ws/src/"+dot+sep+dot+"/"+to,
				)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// meant is where a path leads in a tree without links, by the plain rules of
// the system: "/" separates, "." and ".." are what they are, and nothing else
// is. ok is false for what is no path.
func (r *rig) meant(path string) (string, bool) {
	switch {
	case path == "", strings.Contains(path, "\x00"), !utf8.ValidString(path):
		return "", false
	case path == "~" || strings.HasPrefix(path, "~/"):
		path = r.at("home") + path[1:]
	case path[0] == '~':
		return "", false
	case path[0] != '/':
		path = r.at("ws") + "/" + path
	}
	return filepath.Clean(path), true
}

// within reports whether the rules let a file tool use a clean path at all.
func (r *rig) within(path string) bool {
	for _, root := range []string{r.at("ws"), r.at("agent")} {
		if _, in := below(root, path); in {
			_, forbidden := below(r.at("ws/private"), path)
			return !forbidden
		}
	}
	return false
}

// operations are the file operations that take a path; each returns its
// verdict and all it tells.
func pathOperations() map[string]func(r *rig, path string) (verdict, told string) {
	call := func(tool string, pairs ...any) func(*rig, string) (string, string) {
		return func(r *rig, path string) (string, string) {
			args := make([]any, len(pairs))
			for i, p := range pairs {
				if args[i] = p; p == "PATH" {
					args[i] = path
				}
			}
			a := r.call(tool, args...)
			for _, c := range a.result.Content {
				a.text += fmt.Sprint(c)
			}
			return a.verdict, a.text + a.plan.Title + fmt.Sprint(a.plan.Content)
		}
	}
	return map[string]func(*rig, string) (string, string){
		"read":             call("read_file", "path", "PATH"),
		"list":             call("list_directory", "path", "PATH"),
		"write":            call("write_file", "path", "PATH", "content", "W"),
		"edit":             call("edit_file", "path", "PATH", "old_text", "A", "new_text", "B"),
		"move from":        call("move_file", "source", "PATH", "destination", "moved/here"),
		"move to":          call("move_file", "source", "spare", "destination", "PATH", "overwrite", true),
		"delete":           call("delete_file", "path", "PATH"),
		"delete recursive": call("delete_file", "path", "PATH", "recursive", true),
		"deliver":          call("deliver_file", "path", "PATH"),
		"glob":             call("glob", "pattern", "*", "path", "PATH"),
		"search":           call("search", "pattern", ".", "path", "PATH"),
		"judge": func(r *rig, path string) (string, string) {
			return map[domain.Where]string{
				domain.WhereInside: "allow", domain.WhereOutside: "deny", domain.WhereForbidden: "deny",
			}[r.disk.Judge(context.Background(), r.session, "", path).Where], ""
		},
	}
}

// TestPathTable guards G4: every operation over every way to write a path. A
// path that leads out or to what is forbidden is never allowed, tells nothing
// and changes nothing; one that stays inside is never taken for one that does
// not.
func TestPathTable(t *testing.T) {
	total := 0
	for name, op := range pathOperations() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.policy.AutoApprove = append(r.policy.AutoApprove, domain.ToolRule{Tool: "deliver_file"})
			r.open()
			paths := generatedPaths(r.base)
			if slow := name == "write" || name == "move to"; slow && !*wholeTable { // each waits for the disk
				paths = everyTenth(paths)
			}
			total += len(paths)
			mend := func() {
				for file, text := range map[string]string{"ws/a.txt": "A", "ws/spare": "S", "ws/src/main.go": "M"} {
					if raw, err := os.ReadFile(r.at(file)); err != nil || string(raw) != text {
						r.must(os.RemoveAll(r.at(file)))
						r.write(file, text)
					}
				}
				r.must(os.RemoveAll(r.at("ws/moved")))
			}
			mend()
			outside := r.beyond()
			for _, path := range paths {
				clean, ok := r.meant(path)
				verdict, told := op(r, path)
				inside := ok && r.within(clean)
				if !inside && verdict == "allow" {
					t.Errorf("%q, which means %q: allowed", path, clean)
				}
				if inside && name == "read" && clean == r.at("ws/a.txt") && !strings.HasSuffix(path, "/") && verdict != "allow" {
					t.Errorf("%q, which means %q: %s (%s)", path, clean, verdict, told)
				}
				if strings.Contains(told, "SECRET") || strings.Contains(told, "EVIL") {
					t.Errorf("%q: told %q", path, told)
				}
				if verdict == "allow" {
					mend()
				}
			}
			if now := r.beyond(); now != outside {
				t.Errorf("changed beyond the roots:\n%s\n%s", outside, now)
			}
		})
	}
	t.Logf("%d calls", total)
}

// beyond describes everything that no operation may change.
func (r *rig) beyond() string {
	var b strings.Builder
	for _, dir := range []string{"out", "ws-evil", "home", "data", "conf", "ws/private"} {
		b.WriteString(state(r.t, r.at(dir)))
	}
	names := slices.DeleteFunc(r.names("."), func(n string) bool { return n == "ws" || n == "agent" })
	return b.String() + strings.Join(names, " ") + r.read("a.txt")
}
