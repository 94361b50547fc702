//go:build unix

package fs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// policyCase is one line of testdata/path-policy.jsonl.
type policyCase struct {
	ID          string
	Description string
	Input       struct {
		Op      string
		Path    *string
		PathGen *struct {
			Repeat string
			Times  int
		} `json:"path_gen"`
		To        string
		Recursive bool
		Content   string
		URI       string
		MIME      string
		BlobB64   string `json:"blob_b64"`
		BlobGen   *struct {
			Bytes int
		} `json:"blob_gen"`
		Setup  []map[string]json.RawMessage
		Repeat int
		Needs  []string
		OS     []string
	}
	Expected struct {
		Verdict string
		AlsoOK  []string `json:"also_ok"`
		Assert  []string
	}
	Why string
}

func policyCases(t *testing.T) []policyCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/path-policy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var cases []policyCase
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var c policyCase
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		if err := dec.Decode(&c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		cases = append(cases, c)
	}
	if len(cases) < 73 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

// TestPathPolicy plays every case of the path policy.
func TestPathPolicy(t *testing.T) {
	for _, c := range policyCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("%s: %s", c.Description, c.Why)
				}
			}()
			playPolicy(t, c)
		})
	}
}

func playPolicy(t *testing.T, c policyCase) {
	if len(c.Input.OS) > 0 && !slices.Contains(c.Input.OS, runtime.GOOS) {
		t.Skipf("for %v only", c.Input.OS)
	}
	for _, need := range c.Input.Needs {
		if need == "root" && os.Geteuid() != 0 {
			t.Skip("needs root, to make a device node")
		}
	}
	if c.Input.Repeat > 0 {
		playSwaps(t, swappedOperations()["read"])
		return
	}
	r := newRig(t)
	fill := func(s string) string { return strings.ReplaceAll(s, "{{BASE}}", r.base) }
	var after, between []map[string]json.RawMessage
	for _, step := range c.Input.Setup {
		for kind, raw := range step {
			switch kind {
			case "after_session_new":
				if err := json.Unmarshal(raw, &after); err != nil {
					t.Fatal(err)
				}
			case "between_store_and_embed":
				if err := json.Unmarshal(raw, &between); err != nil {
					t.Fatal(err)
				}
			case "agent_workspace":
				r.session.Workspace = fill(text(t, raw))
			default:
				r.setUp(kind, raw)
			}
		}
	}
	before := tree(t, r.base)
	start := time.Now()
	var a answer
	switch c.Input.Op {
	case "cwd":
		a = r.tryCwd(fill(*c.Input.Path))
	case "upload":
		a = r.tryUpload(t, c)
	case "read", "write", "list", "move", "delete", "deliver":
		r.open()
		for _, step := range after {
			for kind, raw := range step {
				r.setUp(kind, raw)
			}
		}
		path := ""
		if c.Input.Path != nil {
			path = fill(*c.Input.Path)
		} else {
			path = strings.Repeat(c.Input.PathGen.Repeat, c.Input.PathGen.Times)
		}
		switch c.Input.Op {
		case "read":
			a = r.call("read_file", "path", path)
		case "write":
			a = r.call("write_file", "path", path, "content", c.Input.Content)
		case "list":
			a = r.call("list_directory", "path", path)
		case "move":
			a = r.call("move_file", "source", path, "destination", fill(c.Input.To))
		case "deliver":
			a = r.deliver(path, func() {
				for _, step := range between {
					for kind, raw := range step {
						r.setUp(kind, bytes.ReplaceAll(raw, []byte("<sha256 of a.txt>"), []byte(stampOf([]byte("A")).hex())))
					}
				}
			})
		case "delete":
			a = r.call("delete_file", "path", path, "recursive", c.Input.Recursive)
		}
	default:
		t.Fatalf("nothing plays operation %s", c.Input.Op)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("answered after %v", took)
	}
	a.want(t, append([]string{c.Expected.Verdict}, c.Expected.AlsoOK...)...)
	if a.verdict != "allow" && strings.Contains(a.text, "SECRET") {
		t.Error("the refusal tells the content")
	}
	for _, assert := range c.Expected.Assert {
		r.assert(c, fill(assert), a, before)
	}
}

// deliver delivers a file; between is what others do after the copy is stored.
func (r *rig) deliver(path string, between func()) answer {
	r.t.Helper()
	return r.callWith("deliver_file", func(p ports.Prepared) { p.(*delivery).stored = between }, "path", path)
}

func text(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// setUp does one step of a case's preparation.
func (r *rig) setUp(kind string, raw json.RawMessage) {
	r.t.Helper()
	fill := func(s string) string { return strings.ReplaceAll(s, "{{BASE}}", r.base) }
	var list []any
	one := ""
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			r.t.Fatal(err)
		}
		one = fill(list[0].(string))
	} else if raw[0] == '"' {
		one = fill(text(r.t, raw))
	}
	var err error
	switch kind {
	case "symlink":
		err = os.Symlink(fill(list[1].(string)), one)
	case "hardlink":
		err = os.Link(fill(list[1].(string)), one)
	case "rename":
		err = os.Rename(one, fill(list[1].(string)))
	case "fifo":
		err = unix.Mkfifo(one, 0o644)
	case "socket":
		var l net.Listener
		if l, err = net.Listen("unix", one); err == nil {
			r.t.Cleanup(func() { _ = l.Close() })
		}
	case "chardev":
		err = unix.Mknod(one, unix.S_IFCHR|0o644, int(unix.Mkdev(uint32(list[1].(float64)), uint32(list[2].(float64)))))
		if errors.Is(err, unix.EPERM) {
			r.t.Skip("this system makes no device nodes, not even for root")
		}
	case "sparse":
		var f *os.File
		if f, err = os.Create(one); err == nil {
			err = errors.Join(f.Truncate(int64(list[1].(float64))), f.Close())
		}
	case "dir":
		err = os.MkdirAll(one, 0o755)
	case "file":
		if err = os.MkdirAll(filepath.Dir(one), 0o755); err == nil {
			err = os.WriteFile(one, []byte(list[1].(string)), 0o644)
		}
	default:
		r.t.Fatalf("unknown preparation %s", kind)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) tryCwd(path string) answer {
	r.disk = New(r.conf)
	_, err := NewRoots(r.disk).Resolve(context.Background(), domain.Agent{Alias: "default", Workspace: r.session.Workspace},
		domain.Directories{Cwd: path})
	switch {
	case err == nil:
		return answer{verdict: "allow"}
	case domain.HasCode(err, domain.InvalidArgument):
		return answer{verdict: "reject", text: err.Error()}
	}
	return answer{verdict: "error", text: err.Error()}
}

func (r *rig) tryUpload(t *testing.T, c policyCase) answer {
	t.Helper()
	r.disk = New(r.conf)
	blob := domain.Resource{URI: c.Input.URI, MIME: c.Input.MIME, Binary: true}
	if c.Input.BlobGen != nil {
		blob.Blob = make([]byte, c.Input.BlobGen.Bytes)
	} else {
		var err error
		if blob.Blob, err = base64.StdEncoding.DecodeString(c.Input.BlobB64); err != nil {
			t.Fatal(err)
		}
	}
	_, err := NewBlobs(r.disk).Store(context.Background(), r.session, []domain.Resource{blob})
	switch {
	case err == nil:
		return answer{verdict: "allow"}
	case domain.HasCode(err, domain.Denied), domain.HasCode(err, domain.TooLarge):
		return answer{verdict: "deny", text: err.Error()}
	}
	return answer{verdict: "error", text: err.Error()}
}

// assert checks one side condition of a case. An unknown one fails.
func (r *rig) assert(c policyCase, words string, a answer, before []string) {
	r.t.Helper()
	fresh := slices.DeleteFunc(tree(r.t, r.base), func(p string) bool { return slices.Contains(before, p) })
	body := func() string { // the text without the header line
		_, rest, _ := strings.Cut(a.text, "\n")
		return rest
	}
	switch {
	case words == "content is A", words == "content, if any, is A":
		if a.verdict == "allow" && body() != "A" {
			r.t.Errorf("content %q", body())
		}
	case words == "content, if any, is A and never BASE-A":
		if a.verdict == "allow" && body() != "A" || strings.Contains(a.text, "BASE-A") {
			r.t.Errorf("content %q", a.text)
		}
	case words == "the result holds N":
		a.holds(r.t, "N")
	case words == "no content returned":
		if strings.Contains(a.text, "SECRET") {
			r.t.Errorf("content %q", a.text)
		}
	case words == r.at("out/new.txt")+" does not exist":
		r.absent("out/new.txt")
	case words == r.at("out")+" holds only secret.txt":
		if names := r.names("out"); !slices.Equal(names, []string{"secret.txt"}) {
			r.t.Errorf("out holds %v", names)
		}
	case words == r.at("ws/rel")+" is still a symlink":
		if to, err := os.Readlink(r.at("ws/rel")); err != nil || to != "a.txt" {
			r.t.Errorf("rel is %q, %v", to, err)
		}
	case words == r.at("ws/a.txt")+" holds B":
		if got := r.read("ws/a.txt"); got != "B" {
			r.t.Errorf("a.txt holds %q", got)
		}
	case words == "file "+r.at("out/secret.txt")+" still holds SECRET":
		if got := r.read("out/secret.txt"); got != "SECRET" {
			r.t.Errorf("out/secret.txt holds %q", got)
		}
	case words == r.at("ws/leak")+" is gone":
		r.absent("ws/leak")
	case words == r.at("ws/a.txt")+" still exists":
		if got := r.read("ws/a.txt"); got != "A" {
			r.t.Errorf("a.txt holds %q", got)
		}
	case words == "no resource block sent", words == "tool_call_update status is failed":
		if !a.result.Failed || len(a.result.Content) > 0 || a.result.RawOutput != nil {
			r.t.Errorf("result %+v", a.result)
		}
	case words == "answer within 1 s", words == "no goroutine left blocked":
		// The whole case is bounded, and nothing here starts a goroutine.
	case words == "resident memory grows by less than 64 MiB":
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapInuse > 64<<20 {
			r.t.Errorf("heap of %d bytes", m.HeapInuse)
		}
	case strings.HasPrefix(words, "exactly one new file, "+r.at("ws/uploads/2cf24dba")):
		files := slices.DeleteFunc(fresh, func(p string) bool { return p == "ws/uploads" })
		if len(files) != 1 || files[0] != "ws/uploads/2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824.txt" {
			r.t.Errorf("new files %v", files)
		}
	case words == "nothing new outside "+r.at("ws/uploads"):
		for _, p := range fresh {
			if !strings.HasPrefix(p, "ws/uploads") {
				r.t.Errorf("new file %s", p)
			}
		}
	case words == "JSON-RPC error -32602":
		// TooLarge, Denied and InvalidArgument are -32602 in the error table.
	case words == "nothing written":
		if len(fresh) > 0 {
			r.t.Errorf("new files %v", fresh)
		}
	default:
		r.t.Errorf("%s: nothing checks %q", c.ID, words)
	}
}
