//go:build unix

package exec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// text is what a client shows.
func text(t testing.TB, content []domain.CallContent) string {
	t.Helper()
	if len(content) != 1 {
		t.Fatalf("%d blocks", len(content))
	}
	return content[0].(domain.ContentBlock).Block.(domain.Text).Text
}

func TestLongOutput(t *testing.T) {
	for name, c := range map[string]struct {
		line      string
		bytes     int64
		truncated bool
		contains  []string
		file      []string // the file holds these
	}{
		"fits":             {"seq 1000", 3893, false, []string{"\n1\n2\n", "\n999\n1000\n"}, nil},
		"20,000 lines":     {"seq 20000", 108894, true, []string{"[exit code 0", "\n1\n2\n", "\n19999\n20000\n", "all of the output is in ", "108894 bytes"}, []string{"1\n2\n", "\n10000\n", "\n20000\n"}},
		"one huge line":    {"head -c 3000000 /dev/zero | tr '\\0' x", 3000000, true, []string{"xxxx", "3000000 bytes"}, []string{"xxxx"}},
		"of letters":       {"yes 漢 | tr -d '\\n' | head -c 3000000", 3000000, true, []string{"漢漢"}, []string{"漢漢"}},
		"garbage":          {"head -c 1000000 /dev/urandom", 1000000, true, []string{"were no text"}, []string{"\uFFFD"}},
		"zeros":            {"head -c 5000000 /dev/zero; echo end", 5000004, false, []string{"end\n", "5000000 bytes of it were no text"}, nil},
		"fails at the end": {"seq 100000; echo boom >&2; exit 4", 588900, true, []string{"[exit code 4", "boom\n"}, []string{"\nboom\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).open()
			res := r.shell(c.line)
			f := r.raw(res)
			if f.Bytes != c.bytes || f.Truncated != c.truncated || (f.File != "") != c.truncated {
				t.Errorf("raw output %s", res.RawOutput)
			}
			if len(res.Text) > defaultText+2048 || !utf8.ValidString(res.Text) {
				t.Errorf("%d bytes, valid %t", len(res.Text), utf8.ValidString(res.Text))
			}
			if shown := text(t, res.Content); len(shown) > maxShown+4096 || !utf8.ValidString(shown) {
				t.Errorf("the client gets %d bytes", len(shown))
			}
			for _, s := range c.contains {
				if !strings.Contains(res.Text, s) {
					t.Errorf("%q is not in %q ... %q", s, cutAt(res.Text, 200), lastBytes(res.Text, 400))
				}
			}
			if f.File == "" {
				if got := files(t, r); len(got) != 0 {
					t.Errorf("files without need: %q", got)
				}
				return
			}
			info, err := os.Stat(f.File)
			if err != nil || info.Mode() != 0o600 || !within(f.File, filepath.Join(r.session.Workspace, "outputs", "s1")) {
				t.Fatalf("file %s: %v %v", f.File, info, err)
			}
			raw, err := os.ReadFile(f.File)
			if err != nil || !utf8.Valid(raw) {
				t.Fatalf("the file cannot be read as text: %v", err)
			}
			for _, s := range c.file {
				if !strings.Contains(string(raw), s) {
					t.Errorf("%q is not in the file", s)
				}
			}
			if c.bytes == 108894 && len(raw) != 108894 {
				t.Errorf("the file has %d bytes", len(raw))
			}
		})
	}
}

// files lists what is below the workspace.
func files(t testing.TB, r *rig) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(r.session.Workspace, func(p string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			list = append(list, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestOutputBytes(t *testing.T) {
	for name, c := range map[string]struct {
		limit int64
		ask   any
		most  int
		least int
	}{
		"the default":             {0, nil, 64 << 10, 60 << 10},
		"a smaller limit":         {4 << 10, nil, 4 << 10, 3 << 10},
		"more is asked for":       {0, 500_000, 500_000, 400_000},
		"more than may be":        {0, 1 << 30, 1 << 20, 900 << 10},
		"less is asked for":       {0, 2000, 2000, 1200},
		"less than makes sense":   {0, 1, 1024, 500},
		"more than a small limit": {4 << 10, 1 << 20, 4 << 10, 3 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.profile.Limits.OutputBytes = c.limit
			a := args{"command": "seq 500000"}
			if c.ask != nil {
				a["max_output_bytes"] = c.ask
			}
			res := r.open().run("shell", a)
			if n := len(res.Text); n > c.most+600 || n < c.least {
				t.Errorf("%d bytes", n)
			}
			if n := len(text(t, res.Content)); n > maxShown+4096 {
				t.Errorf("%d bytes for the client", n)
			}
		})
	}
}

// TestGigabyte: a command that writes without measure costs little memory.
func TestGigabyte(t *testing.T) {
	if testing.Short() {
		t.Skip("writes gigabytes")
	}
	for name, line := range map[string]string{
		"zeros":        `head -c 1G /dev/zero`,
		"lines":        `yes | head -c 1G`,
		"errors":       `yes | head -c 1G >&2`,
		"one line":     `head -c 1G /dev/zero | tr '\0' x`,
		"both streams": `for i in $(seq 64); do head -c 8M /dev/zero | tr '\0' x; head -c 8M /dev/zero | tr '\0' y >&2; done`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.open()
			runtime.GC()
			before := resident(t)
			var most atomic.Int64
			stop := make(chan struct{})
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				for {
					select {
					case <-stop:
						return
					case <-time.After(10 * time.Millisecond):
						most.Store(max(most.Load(), resident(t)))
					}
				}
			}()
			begin := time.Now()
			res := r.shell(line)
			took := time.Since(begin)
			close(stop)
			<-watched
			if f := r.raw(res); f.Bytes != 1<<30 || res.Failed {
				t.Errorf("%s %s", statusOf(res), res.RawOutput)
			}
			grown := (most.Load() - before) >> 20
			t.Logf("%.1f s, %d MiB more resident memory", took.Seconds(), grown)
			if grown >= 16 && !raceEnabled {
				t.Errorf("%d MiB", grown)
			}
			size := int64(0)
			for _, f := range files(t, r) {
				info, err := os.Stat(f)
				if err != nil {
					t.Fatal(err)
				}
				size += info.Size()
			}
			if size > maxFile {
				t.Errorf("%d bytes in files", size)
			}
		})
	}
}

// resident is the memory of this process that is in use, in bytes.
func resident(t testing.TB) int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0 // no such figure here
	}
	var size, rss int64
	if _, err := fmt.Sscan(string(raw), &size, &rss); err != nil {
		t.Error(err)
	}
	return rss * int64(os.Getpagesize())
}

// TestOutputFiles: nothing a command puts in the way of its output leads
// anywhere else.
func TestOutputFiles(t *testing.T) {
	long := "seq 20000"
	for name, c := range map[string]struct {
		before string
		file   bool
	}{
		"a link for the directory": {"ln -s ../out ../agent/outputs", false},
		"a link for the session":   {"mkdir ../agent/outputs; ln -s ../../out ../agent/outputs/s1", false},
		"a file for the directory": {"echo >../agent/outputs", false},
		"a link inside":            {"mkdir -p ../agent/else; ln -s else ../agent/outputs", true},
		"no workspace":             {"rm -r ../agent", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).open()
			if res := r.shell(c.before); res.Failed {
				t.Fatal(res.Text)
			}
			res := r.shell(long)
			f := r.raw(res)
			if res.Failed || !f.Truncated || (f.File != "") != c.file || !strings.Contains(res.Text, "\n20000\n") {
				t.Errorf("%s %s", statusOf(res), res.RawOutput)
			}
			if !c.file && !strings.Contains(res.Text, "it was not kept") {
				t.Errorf("nothing says that it was not kept: %q", lastBytes(res.Text, 300))
			}
			if list, err := os.ReadDir(r.at("out")); err != nil || len(list) != 0 {
				t.Errorf("outside: %v %v", list, err)
			}
		})
	}
}

// TestOutputFileEndsWithALetter: where a file is full, it is full before a letter
// that does not fit.
func TestOutputFileEndsWithALetter(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	o := &outputFile{f: f, size: maxFile - 2}
	o.write([]byte("aé"))
	o.write([]byte("b"))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(f.Name()); err != nil || string(got) != "a" || o.why == "" {
		t.Errorf("kept: %q, %q (%v)", got, o.why, err)
	}
}

func TestOutputsGo(t *testing.T) {
	r := newRig(t)
	old := r.at("agent/outputs/older")
	for _, dir := range []string{old, r.at("agent/outputs/newer"), r.at("agent/outputs/not a session")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-8 * 24 * time.Hour)
	for _, dir := range []string{old, r.at("agent/outputs/not a session")} {
		if err := os.Chtimes(dir, past, past); err != nil {
			t.Fatal(err)
		}
	}
	r.open()
	file := r.raw(r.shell("seq 20000")).File
	if err := r.set.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file went with the toolset, and the session may be opened again: %v", err)
	}
	if err := NewSource(r.conf).Forget(r.session); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(r.at("agent/outputs"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, ","); got != "newer,not a session" {
		t.Errorf("left: %s", got)
	}
}

func TestLive(t *testing.T) {
	r := newRig(t).open()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.write("ws/go.sh", "echo first\nread x < go1\necho second\nread x < go2\nprintf unfinished\nread x <go3\nexit 5\n")
	if res := r.shell("mkfifo go1 go2 go3"); res.Failed {
		t.Fatal(res.Text)
	}
	open := func(name string) {
		f, err := os.OpenFile(r.at("ws/"+name), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("x\n")
			_ = f.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	var seen []string
	res := r.runCtx(ctx, "shell", args{"command": "sh go.sh"}, func(p domain.ToolProgress) {
		shown := strings.Trim(text(t, p.Content), "`\n")
		if len(seen) > 0 && seen[len(seen)-1] == shown {
			return
		}
		seen = append(seen, shown)
		// Each piece must be seen while the command waits for the next go.
		switch shown {
		case "first":
			open("go1")
		case "first\nsecond":
			open("go2")
		case "first\nsecond\nunfinished":
			open("go3")
		}
	})
	if len(seen) != 3 || *r.raw(res).ExitCode != 5 || out(res) != "first\nsecond\nunfinished" {
		t.Errorf("seen %q, then %q", seen, res.Text)
	}
}

func TestLiveIsBounded(t *testing.T) {
	r := newRig(t).open()
	reports, most := 0, 0
	begin := time.Now()
	res := r.runCtx(context.Background(), "shell", args{"command": "seq 3000000"}, func(p domain.ToolProgress) {
		reports++
		most = max(most, len(text(t, p.Content)))
	})
	if res.Failed || most > maxLive+16 || reports < 1 || reports > int(time.Since(begin)/liveEvery)+2 {
		t.Errorf("%d reports of up to %d bytes in %v", reports, most, time.Since(begin))
	}
}

// TestSlowClient: a client that takes no report holds up neither the time
// limit nor the end.
func TestSlowClient(t *testing.T) {
	r := newRig(t).open()
	ctx, cancel := context.WithCancelCause(context.Background())
	tok := token()
	p := r.prepare("shell", args{"command": "echo x; sleep " + tok, "timeout_secs": 1})
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := p.Run(ctx, func(domain.ToolProgress) { <-ctx.Done() })
		if err != nil || !res.Failed {
			t.Errorf("%+v %v", res, err)
		}
	}()
	r.eventually("it runs", func() bool { return len(alive(t, tok)) > 0 })
	r.eventually("it ends at its time limit", func() bool { return len(alive(t, tok)) == 0 })
	cancel(domain.CancelledByClient)
	<-done
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
