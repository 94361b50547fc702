package fs

import (
	"fmt"
	iofs "io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// cancelling is a visitor that cancels after so many names.
type cancelling struct {
	left   int64
	cancel func()
}

func (v *cancelling) keep(string, iofs.FileMode) bool { return true }
func (v *cancelling) enter(string) bool               { return true }
func (v *cancelling) take(any) bool                   { return false }

func (v *cancelling) visit(_ *sweeper, _ *dir, run []leaf) any {
	for range run {
		if atomic.AddInt64(&v.left, -1) < 0 {
			v.cancel()
		}
	}
	return nil
}

// openFiles is how many descriptors this process has, where that can be told.
func openFiles(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// ordering is a visitor that notes the order of what it takes.
type ordering struct {
	cancelling
	taken []string
	most  int
}

func (v *ordering) visit(_ *sweeper, _ *dir, run []leaf) any {
	var list []string
	for _, l := range run {
		list = append(list, l.path)
	}
	return list
}

func (v *ordering) take(result any) bool {
	v.taken = append(v.taken, result.([]string)...)
	return v.most > 0 && len(v.taken) >= v.most
}

// byNames compares paths name by name.
func byNames(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) }

// TestSweep_Order: results come in the order of the paths, and a visitor that
// has enough gets exactly the first ones.
func TestSweep_Order(t *testing.T) {
	r := newRig(t)
	for i := range 900 {
		r.write(fmt.Sprintf("ws/t/d%d/e-%d/f%d", i%11, i%5, i), "")
		if i%3 == 0 {
			r.write(fmt.Sprintf("ws/t/d%d/e-%d.x", i%11, i), "")
		}
	}
	r.open()
	var all []string
	for _, p := range tree(t, r.at("ws/t")) {
		if p != "." {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, byNames)
	for _, most := range []int{0, 1, 100, 700} {
		g, err := r.set.(*workspace).lookUp(t.Context(), "glob", "t", false)
		if err != nil {
			t.Fatal(err)
		}
		v := &ordering{most: most}
		if _, err := g.sweep(t.Context(), options{}, v); err != nil {
			t.Fatal(err)
		}
		if len(v.taken) < most || !slices.Equal(v.taken, all[:len(v.taken)]) || most == 0 && len(v.taken) != len(all) {
			t.Errorf("most %d: %d taken, or in another order", most, len(v.taken))
		}
		_ = g.Close()
	}
}

func TestGlob(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names and links of Unix")
	}
	r := searchRig(t)
	r.symlink("ws/link", "src")
	r.symlink("ws/leak", r.at("out"))
	r.write("ws/odd\nname.odd", "")
	r.open()
	cases := map[string]struct {
		args []any
		want string
	}{
		"one directory":     {[]any{"pattern", "src/*.go"}, "[1 file matches *.go in src]\nsrc/main.go\n"},
		"any depth":         {[]any{"pattern", "**/*.go"}, "[3 files match **/*.go in the working directory]\nsrc/main.go\nsrc/sub/other.go\nsrc-x/late.go\n"},
		"from a path":       {[]any{"pattern", "**/*.go", "path", "src"}, "[2 files match **/*.go in src]\nsrc/main.go\nsrc/sub/other.go\n"},
		"joined":            {[]any{"pattern", "sub/*", "path", "src/"}, "[1 file matches * in src/sub]\nsrc/sub/other.go\n"},
		"absolute":          {[]any{"pattern", r.at("ws/src") + "/**/o*"}, "[1 file matches **/o* in src]\nsrc/sub/other.go\n"},
		"another root":      {[]any{"pattern", r.at("agent") + "/*.md"}, "[1 file matches *.md in " + r.at("agent") + "]\n" + r.at("agent/notes.md") + "\n"},
		"braces":            {[]any{"pattern", "{src,doc}/**/{main,crlf}.{go,txt}"}, "[2 files match {src,doc}/**/{main,crlf}.{go,txt} in the working directory]\ndoc/crlf.txt\nsrc/main.go\n"},
		"a plain name":      {[]any{"pattern", "src/main.go"}, "[1 file matches main.go in src]\nsrc/main.go\n"},
		"links":             {[]any{"pattern", "l*"}, "[2 files match l* in the working directory]\nleak -> " + r.at("out") + "\nlink -> src\n"},
		"through a link":    {[]any{"pattern", "link/*.go"}, "[1 file matches *.go in src]\nsrc/main.go\n"},
		"odd name":          {[]any{"pattern", "*.odd"}, "[1 file matches *.odd in the working directory]\n\"odd\\nname.odd\"\n"},
		"directories":       {[]any{"pattern", "**/s*/"}, "[3 directories match **/s*/ in the working directory]\nsrc/\nsrc/sub/\nsrc-x/\n"},
		"limit":             {[]any{"pattern", "doc/*", "limit", 2}, "[5 files match * in doc; the first 2 are shown]\ndoc/bom.txt\ndoc/crlf.txt\n"},
		"hidden":            {[]any{"pattern", "**/h.txt", "hidden", true}, "[1 file matches **/h.txt in the working directory]\n.hidden/h.txt\n"},
		"hidden by name":    {[]any{"pattern", "**/.gitignore"}, "[1 file matches **/.gitignore in the working directory]\n.gitignore\n"},
		"ignored":           {[]any{"pattern", "**/i.txt", "ignored", true}, "[1 file matches **/i.txt in the working directory]\nignored/i.txt\n"},
		"hidden, unasked":   {[]any{"pattern", "**/h.txt"}, "[no file matches **/h.txt in the working directory; 2 hidden names and 2 ignored ones were left out; set hidden or ignored to true to include them]"},
		"only directories":  {[]any{"pattern", "src"}, "[no file matches src in the working directory; directories do: end the pattern with / to see them; "},
		"only further down": {[]any{"pattern", "*.go"}, "[no file matches *.go in the working directory; **/*.go looks in the directories below too; "},
		"a set":             {[]any{"pattern", "doc/[a-c]*.tx?"}, "[2 files match [a-c]*.tx? in doc]\ndoc/bom.txt\ndoc/crlf.txt\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := r.call("glob", c.args...).want(t, "allow")
			if !strings.HasPrefix(a.text, c.want) && a.text != c.want {
				t.Errorf("got\n%s\nwant\n%s", a.text, c.want)
			}
		})
	}
	for pattern, part := range map[string]string{
		"[a": "not a valid pattern", "*/../x": "cannot climb", "": "**/* means every file", "a\x00": "NUL", ".": "names nothing",
		strings.Repeat("{a,b}", 20): "stand for more than 256 patterns", strings.Repeat("a", 5000): "at most 4096",
	} {
		r.call("glob", "pattern", pattern).want(t, "error").holds(t, part)
	}
	r.call("glob", "pattern", "../*").want(t, "deny").holds(t, "outside")
	r.call("glob", "pattern", "leak/*").want(t, "deny").holds(t, "outside")
	r.call("glob", "pattern", "/etc/*").want(t, "deny")
	r.call("glob", "pattern", "~root/*").want(t, "deny")
	r.call("glob", "pattern", "none/*").want(t, "not_found")
}

func TestGlob_Plan(t *testing.T) {
	r := searchRig(t).open()
	a := r.call("glob", "pattern", "**/*.go").want(t, "allow")
	if a.plan.Title != "Find **/*.go in ." || a.plan.Kind != domain.KindSearch || a.plan.Access.Class != domain.AccessRead || a.plan.Locations[0].Path != r.at("ws") {
		t.Errorf("plan %+v", a.plan)
	}
	if len(a.result.Locations) != 3 || a.result.Locations[0].Path != r.at("ws/src/main.go") {
		t.Errorf("locations %+v", a.result.Locations)
	}
	if string(a.result.RawOutput) != `{"paths":3,"complete":true}` {
		t.Errorf("raw output %s", a.result.RawOutput)
	}
}

// TestGlob_Bombs guards T73: patterns made to take for ever do not.
func TestGlob_Bombs(t *testing.T) {
	r := newRig(t)
	deep := strings.Repeat("a/", 60)
	for i := range 50 {
		r.write("ws/"+deep+fmt.Sprintf("%s%d", strings.Repeat("a", 100), i), "")
	}
	r.open()
	for _, p := range []string{
		strings.Repeat("**/", 400) + "*x", strings.Repeat("**/a/", 200) + "*x", strings.Repeat("*a", 1000) + "x", "**/" + strings.Repeat("{a,aa}", 8) + "x",
	} {
		r.call("glob", "pattern", p).want(t, "allow").holds(t, "[no file matches")
	}
}

func TestExpandBraces(t *testing.T) {
	for pattern, want := range map[string]string{
		"a": "a", "{a,b}": "a b", "x{a,b}y{c,d}": "xayc xayd xbyc xbyd", "{a,b{c,d}}": "a bc bd", "{a}": "a", "{,a}b": "b ab", `\{a,b}`: `\{a,b}`, "[{]a,b}": "[{]a,b}", "{[,],b}": "[,] b",
	} {
		got, ok := expandBraces(pattern, 10)
		if !ok || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", pattern, got, want)
		}
	}
	if _, ok := expandBraces("{a,b,c}{a,b,c}{a,b,c}", 26); ok {
		t.Error("27 are within 26")
	}
}

// TestIgnore_Files: which ignore files count, and how far.
func TestIgnore_Files(t *testing.T) {
	r := newRig(t)
	for _, p := range []string{"a.log", "b.tmp", "c.x", "d.y", "sub/a.log", "sub/b.tmp", "sub/c.x", "sub/e.z", "repo/a.log", "repo/b.tmp", "repo/f.x", "repo/in/g.log", "repo/in/h.u"} {
		r.write("ws/t/"+p, "")
	}
	r.write("ws/.gitignore", "*.log\n*.x\n/t/d.y\n")
	r.write("ws/.ignore", "*.tmp\n")
	r.write("ws/t/sub/.ignore", "!c.x\n!b.tmp\n")
	r.write("ws/t/sub/.gitignore", "e.z\n!a.log\n")
	r.write("ws/t/repo/.git/info/exclude", "*.u\n")
	r.open()
	const want = "sub/a.log sub/b.tmp sub/c.x repo/a.log repo/f.x repo/in/g.log"
	for _, path := range []string{".", "t"} {
		a := r.call("glob", "pattern", "**/?.*", "path", path).want(t, "allow")
		var got []string
		for _, l := range strings.Split(strings.TrimSpace(a.text), "\n")[1:] {
			if p, ok := strings.CutPrefix(l, "t/"); ok {
				got = append(got, p)
			}
		}
		wanted := strings.Fields(want)
		slices.SortFunc(wanted, byNames)
		if !slices.Equal(got, wanted) {
			t.Errorf("in %s: %q\nwant %q", path, got, wanted)
		}
	}
	r.write("ws/t/.ignore", "c.x\n"+strings.Repeat("# filling\n", maxIgnoreBytes/10+1))
	r.call("glob", "pattern", "*.none", "path", "t").want(t, "allow").holds(t, "[not looked at: t/.ignore (ignore file too large to be honoured)]")
}
