package fs

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names and links of Unix")
	}
	r := newRig(t)
	r.write("ws/.hidden", "h")
	r.write("ws/B.txt", strings.Repeat("b", 1536))
	r.write("ws/odd\nname", "")
	r.symlink("ws/link", "src")
	r.symlink("ws/leak", r.at("out"))
	r.symlink("ws/dangling", "nowhere")
	r.open()
	a := r.call("list_directory", "path", ".").want(t, "allow")
	want := strings.Join([]string{
		"[.: 9 entries]",
		"private/  (forbidden)",
		"src/",
		".hidden  1 byte",
		"B.txt  1.5 KiB",
		"a.txt  1 byte",
		"dangling -> nowhere",
		"leak -> " + r.at("out"),
		"link -> src",
		`"odd\nname"  0 bytes`,
	}, "\n") + "\n"
	if a.text != want {
		t.Errorf("got\n%s\nwant\n%s", a.text, want)
	}
	if a.plan.Title != "List ." || a.plan.Locations[0].Path != r.at("ws") {
		t.Errorf("plan %+v", a.plan)
	}
	if b := r.call("list_directory"); b.text != a.text {
		t.Errorf("without a path: %s", b.text)
	}
	r.call("list_directory", "path", "link").want(t, "allow").holds(t, "[src: 1 entry]", "main.go  1 byte") // by its canonical name
	r.call("list_directory", "path", "a.txt").want(t, "error").holds(t, "a.txt is a regular file, not a directory")
	r.call("list_directory", "path", "sr").want(t, "not_found")
	if err := os.Mkdir(r.at("ws/empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.call("list_directory", "path", "empty/").want(t, "allow").holds(t, "[empty is empty]")
}

func TestListIsBounded(t *testing.T) {
	r := newRig(t).open()
	for i := range maxShown + 5 {
		r.write(fmt.Sprintf("ws/many/%05d", i), "")
	}
	a := r.call("list_directory", "path", "many").want(t, "allow").holds(t, "[many: 1005 entries, the first 1000 are shown]\n00000  0 bytes\n", "\n00999  0 bytes\n")
	if strings.Contains(a.text, "01000") {
		t.Error("more is shown")
	}
	if string(a.result.RawOutput) != `{"entries":1005,"complete":false}` {
		t.Errorf("raw output %s", a.result.RawOutput)
	}
}

// TestListHoldsWhatItPrepared: the directory that was looked up is the one
// that is listed.
func TestListHoldsWhatItPrepared(t *testing.T) {
	r := newRig(t).open()
	p, err := r.prepare("list_directory", args("path", "src"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.at("ws/src"), r.at("ws/was")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.at("out"), r.at("ws/src")); err != nil {
		t.Fatal(err)
	}
	if res, err := p.Run(t.Context(), nil); err != nil || !strings.Contains(res.Text, "main.go") {
		t.Errorf("%+v, %v", res, err)
	}
}
