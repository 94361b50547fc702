package fs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// state describes everything below a directory, but not what is in those to
// be left out.
func state(t testing.TB, base string, out ...string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(base, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(out, p) {
			return filepath.SkipDir
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %d %d", p, fi.Mode(), fi.Size(), fi.ModTime().UnixNano())
		if fi.Mode().IsRegular() {
			raw, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", stampOf(raw))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTools(t *testing.T) {
	cases := map[string]struct {
		args  string
		wrong map[string]string
		stuck string // arguments of a call that waits for the client
	}{
		"read_file": {
			args:  `{"path":"a.txt"}`,
			stuck: `{"path":"a.txt"}`,
			wrong: map[string]string{
				"no path": `{}`, "path is a number": `{"path":1}`, "offset 0": `{"path":"a.txt","offset":0}`,
				"offset is a fraction": `{"path":"a.txt","offset":1.5}`, "limit is a word": `{"path":"a.txt","limit":"many"}`,
				"a directory": `{"path":"src"}`, "missing": `{"path":"none"}`, "offset twice": `{"path":"a.txt","offset":1,"line":2}`,
				"more after the object": `{"path":"a.txt"}{}`,
			},
		},
		"write_file": {
			args: `{"path":"new/b.txt","content":"B\n"}`,
			wrong: map[string]string{
				"no content": `{"path":"b.txt"}`, "a directory": `{"path":"src","content":""}`, "a NUL": `{"path":"b.txt","content":"\u0000"}`,
				"below a file": `{"path":"a.txt/b","content":""}`, "ends as a directory": `{"path":"b/","content":""}`,
			},
		},
		"edit_file": {
			args: `{"path":"a.txt","edits":[{"old_text":"A","new_text":"B"}]}`,
			wrong: map[string]string{
				"no edits": `{"path":"a.txt"}`, "empty edits": `{"path":"a.txt","edits":[]}`, "no old text": `{"path":"a.txt","edits":[{"new_text":"B"}]}`,
				"empty old text": `{"path":"a.txt","edits":[{"old_text":"","new_text":"B"}]}`, "not there": `{"path":"a.txt","edits":[{"old_text":"X","new_text":"B"}]}`,
				"nothing changes": `{"path":"a.txt","edits":[{"old_text":"A","new_text":"A"}]}`, "missing": `{"path":"none","edits":[{"old_text":"A","new_text":"B"}]}`,
				"unknown in an edit": `{"path":"a.txt","edits":[{"old_text":"A","new_text":"B","count":2}]}`,
				"both forms":         `{"path":"a.txt","edits":[{"old_text":"A","new_text":"B"}],"old_text":"A","new_text":"B"}`,
			},
		},
		"move_file": {
			args: `{"source":"a.txt","destination":"new/b.txt"}`,
			wrong: map[string]string{
				"no destination": `{"source":"a.txt"}`, "missing": `{"source":"none","destination":"b"}`, "onto itself": `{"source":"a.txt","destination":"./a.txt"}`,
				"into itself": `{"source":"src","destination":"src/b/src"}`, "onto a directory": `{"source":"a.txt","destination":"src","overwrite":true}`,
				"onto a file": `{"source":"a.txt","destination":"src/main.go"}`, "overwrite is a word": `{"source":"a.txt","destination":"b","overwrite":"yes"}`,
				"a directory onto a file": `{"source":"src","destination":"a.txt","overwrite":true}`, "below a file": `{"source":"src","destination":"a.txt/b"}`,
			},
		},
		"delete_file": {
			args: `{"path":"src","recursive":true}`,
			wrong: map[string]string{
				"no path": `{}`, "missing": `{"path":"none"}`, "not empty": `{"path":"src"}`, "a file as a directory": `{"path":"a.txt/"}`,
			},
		},
		"glob": {
			args: `{"pattern":"**/*.go","path":"."}`,
			wrong: map[string]string{
				"no pattern": `{"path":"src"}`, "empty pattern": `{"pattern":""}`, "a file": `{"pattern":"*","path":"a.txt"}`, "missing": `{"pattern":"*","path":"none"}`,
				"not closed": `{"pattern":"[a"}`, "climbs": `{"pattern":"*/../x"}`, "limit 0": `{"pattern":"*","limit":0}`, "empty path": `{"pattern":"*","path":""}`,
				"too many braces": `{"pattern":"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"}`,
			},
		},
		"search": {
			args:  `{"pattern":"M","path":"src"}`,
			stuck: `{"pattern":"A","path":"a.txt"}`,
			wrong: map[string]string{
				"no pattern": `{"path":"src"}`, "empty pattern": `{"pattern":""}`, "missing": `{"pattern":"A","path":"none/none"}`, "not closed": `{"pattern":"(a"}`,
				"look-ahead": `{"pattern":"a(?=b)"}`, "reference": `{"pattern":"(a)\\1"}`, "bomb": `{"pattern":"(a{1000}){1000}"}`, "bad glob": `{"pattern":"a","glob":"[a"}`,
				"bad output": `{"pattern":"a","output":"lines"}`, "context is a word": `{"pattern":"a","context":"few"}`,
			},
		},
		"deliver_file": {
			args: `{"path":"a.txt","title":"Letter"}`,
			wrong: map[string]string{
				"no path": `{}`, "missing": `{"path":"none"}`, "a directory": `{"path":"src"}`, "no MIME type": `{"path":"a.txt","mimeType":"text"}`,
				"a MIME type of two lines": `{"path":"a.txt","mimeType":"text/plain\nx"}`, "title is a number": `{"path":"a.txt","title":1}`,
			},
		},
		"list_directory": {
			args:  `{"path":"src"}`,
			wrong: map[string]string{"a file": `{"path":"a.txt"}`, "missing": `{"path":"none"}`, "empty": `{"path":""}`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			porttest.Tool(porttest.T(t), porttest.ToolHarness{Open: func(tb porttest.TB) porttest.ToolFixture {
				r := newRig(t)
				started := make(chan struct{})
				if c.stuck != "" {
					r.client = &stuckClient{started: started, editorClient: newEditor()}
				}
				own := ""
				if name == "deliver_file" { // a copy there is the session's own, and no effect
					own = r.at("ws/uploads")
					r.must(os.Mkdir(own, 0o700))
				}
				r.open()
				f := porttest.ToolFixture{
					Tool: r.tools[name], Wrong: c.wrong, State: func() string { return state(t, r.base, own) },
					Call: domain.ToolCall{Session: r.session.ID, Turn: "t", ID: "c", Name: name, Args: []byte(c.args)},
				}
				if c.stuck != "" {
					f.Started = started
					stuck := f.Call
					stuck.Args = []byte(c.stuck)
					stuck.ID = "stuck"
					f.Stuck = &stuck
					if tb.Name() != t.Name()+"/tool-run-stuck" {
						r.client.(*stuckClient).info = domain.ClientInfo{}
					}
				}
				return f
			}})
		})
	}
}

// stuckClient never answers a read.
type stuckClient struct {
	*editorClient
	started chan struct{}
}

func (s *stuckClient) Files() (ports.Files, bool) { return s, true }

func (s *stuckClient) ReadText(ctx context.Context, _ domain.SessionID, _ string) (string, error) {
	close(s.started)
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func TestSchemas(t *testing.T) {
	r := newRig(t).open()
	good := map[string]string{
		"read_file":      `{"path":"a","offset":3,"limit":4}`,
		"write_file":     `{"path":"a","content":""}`,
		"edit_file":      `{"path":"a","edits":[{"old_text":"a","new_text":"b","replace_all":true}]}`,
		"list_directory": `{}`,
		"deliver_file":   `{"path":"a","mimeType":"text/plain","title":"t"}`,
		"glob":           `{"pattern":"**/*.go","path":"src","hidden":true,"ignored":true,"limit":5}`,
		"search":         `{"pattern":"a","path":"src","glob":"*.go","case_insensitive":true,"literal":true,"multiline":true,"context":0,"output":"files","limit":3,"hidden":true,"ignored":true}`,
		"move_file":      `{"source":"a","destination":"b","overwrite":true}`,
		"delete_file":    `{"path":"a","recursive":true}`,
	}
	if len(r.tools) != len(good) {
		t.Errorf("%d tools", len(r.tools))
	}
	for name, tool := range r.tools {
		compiler := jsonschema.NewCompiler()
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tool.Spec().Schema)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := compiler.AddResource("mem:tool", doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		schema, err := compiler.Compile("mem:tool")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for args, valid := range map[string]bool{good[name]: true, `{"path":1}`: false, `{"paths":"a"}`: false} {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(args))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); (err == nil) != valid {
				t.Errorf("%s: %s: %v", name, args, err)
			}
		}
	}
}

func TestRootsSuite(t *testing.T) {
	porttest.Roots(porttest.T(t), porttest.RootsHarness{Open: func(porttest.TB) porttest.RootsFixture {
		r := newRig(t)
		fx := porttest.RootsFixture{
			Roots: NewRoots(New(r.conf)), Base: r.base, DataDir: r.conf.DataDir, ConfigDir: r.conf.ConfigDir,
			ProcessDir: r.conf.ProcessDir, Forbidden: r.at("ws/private"),
			Agent: domain.Agent{Alias: "default", Workspace: r.at("data/agents/default/workspace")},
			Mkdir: func(p string) {
				if err := os.MkdirAll(p, 0o755); err != nil {
					t.Fatal(err)
				}
			},
			Rmdir: func(p string) {
				if err := os.RemoveAll(p); err != nil {
					t.Fatal(err)
				}
			},
			WriteFile: func(p string) {
				if err := os.WriteFile(p, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			},
			Exists: func(p string) bool {
				_, err := os.Lstat(p)
				return err == nil
			},
		}
		if runtime.GOOS != "windows" {
			fx.Link = func(p, to string) {
				if err := os.Symlink(to, p); err != nil {
					t.Fatal(err)
				}
			}
		}
		return fx
	}})
}

func TestBlobsSuite(t *testing.T) {
	for _, opened := range []bool{false, true} {
		t.Run(fmt.Sprintf("session open %t", opened), func(t *testing.T) {
			porttest.Blobs(porttest.T(t), porttest.BlobsHarness{Open: func(porttest.TB) porttest.BlobsFixture {
				r := newRig(t)
				r.disk = New(r.conf)
				if opened {
					r.open()
				}
				return porttest.BlobsFixture{
					Blobs: NewBlobs(r.disk), Session: r.session, Limit: domain.DefaultPromptBlobs,
					Files: func() map[string][]byte {
						files := map[string][]byte{}
						for _, p := range tree(t, r.base) {
							if raw, err := os.ReadFile(r.at(p)); err == nil {
								files[r.at(p)] = raw
							}
						}
						return files
					},
					Damage: func(p string) {
						if err := os.WriteFile(p, []byte("damaged"), 0o600); err != nil {
							t.Fatal(err)
						}
					},
				}
			}})
		})
	}
}

// TestEditorFake proves the client that the tests of the overlay use.
func TestEditorFake(t *testing.T) {
	porttest.Files(porttest.T(t), porttest.FilesHarness{Open: func(porttest.TB) porttest.FilesFixture {
		e := newEditor()
		return porttest.FilesFixture{
			Files: e, Session: "s1", Path: func(name string) string { return "/p/" + name },
			Put: func(path, text string) { e.buffers[path] = text },
			Got: func(path string) (string, bool) {
				text, ok := e.buffers[path]
				return text, ok
			},
			Refuse: func() {
				e.onWrite = func(string) error { return domain.Errorf(domain.Unavailable, "the client says no") }
			},
			Hang: func() { e.hang = true },
		}
	}})
}
