package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestDeliver(t *testing.T) {
	shot := string(pictures(t)["image/png"])
	for name, c := range map[string]struct {
		file, content, mime, title string
		wantMIME, wantExt          string
		wantTitle                  string
	}{
		"a text":                   {"report.txt", "R", "", "", "text/plain", ".txt", "report.txt"},
		"with a title":             {"report.txt", "R", "", " Quarterly\nreport ", "text/plain", ".txt", "Quarterly report"},
		"with a type":              {"x.bin", "a\x00", "application/pdf", "", "application/pdf", ".pdf", "x.bin"},
		"a type with parameters":   {"x", "a", "text/plain; charset=utf-8", "", "text/plain; charset=utf-8", ".txt", "x"},
		"a type nobody knows":      {"x.sh", "a", "application/x-sh", "", "application/x-sh", ".bin", "x.sh"},
		"a picture by its content": {"x.txt", shot, "", "", "image/png", ".png", "x.txt"},
		"binary":                   {"x.dat", "a\x00", "", "", "application/octet-stream", ".bin", "x.dat"},
		"an archive":               {"x.tgz", "\x1f\x8b\x00", "", "", "application/gzip", ".gz", "x.tgz"},
		"Markdown":                 {"x.md", "# T", "", "", "text/markdown", ".md", "x.md"},
		"PDF":                      {"x", "%PDF-1.7\x00", "", "", "application/pdf", ".pdf", "x"},
		"nothing in it":            {"x", "", "", "", "text/plain", ".txt", "x"},
		"a title of controls":      {"x.txt", "a", "", "\x00\u202e\n", "text/plain", ".txt", "x.txt"},
		"a title without an end":   {"x.txt", "a", "", strings.Repeat("é", 500), "text/plain", ".txt", strings.Repeat("é", 100) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write("ws/sub/"+c.file, c.content)
			r.open()
			a := r.call("deliver_file", "path", "sub/"+c.file, "mimeType", c.mime, "title", c.title).want(t, "allow")
			sum := stampOf([]byte(c.content)).hex()
			var told struct {
				Delivered                            bool
				URI, Path, Filename, Title, MIMEType string
				Bytes                                int
			}
			if err := json.Unmarshal([]byte(a.text), &told); err != nil {
				t.Fatalf("%s: %v", a.text, err)
			}
			uri := "attachment://deliver/" + sum + c.wantExt
			if !told.Delivered || told.URI != uri || told.Path != r.at("ws/sub/"+c.file) || told.Filename != c.file || told.Title != c.wantTitle ||
				told.MIMEType != c.wantMIME || told.Bytes != len(c.content) {
				t.Errorf("told %+v", told)
			}
			if string(a.result.RawOutput) != a.text || len(a.text) > 2000 {
				t.Errorf("output %s", a.result.RawOutput)
			}
			copied := "ws/uploads/" + sum + c.wantExt
			f, ok := a.result.Content[1].(domain.FileContent)
			want := domain.FileContent{
				File:  domain.Attachment{Path: r.at(copied), SHA256: sum, MIME: c.wantMIME, Name: c.file, URI: uri, Size: int64(len(c.content))},
				Title: c.wantTitle, Delivered: true,
			}
			if !ok || string(f.Data) != c.content || f.Data == nil {
				t.Fatalf("content %+v", a.result.Content)
			}
			f.Data = nil
			if f.File != want.File || f.Title != want.Title || f.Delivered != want.Delivered {
				t.Errorf("shown %+v, want %+v", f, want)
			}
			if r.read(copied) != c.content || r.read("ws/sub/"+c.file) != c.content {
				t.Error("the copy or the file is not what it was")
			}
			if fi, err := os.Stat(r.at(copied)); err != nil || fi.Mode().Perm()&0o077 != 0 {
				t.Errorf("the copy: %v, %v", fi.Mode(), err)
			}
			blobs := NewBlobs(r.disk)
			again, err := blobs.Read(context.Background(), r.session, f.File)
			if err != nil || string(again) != c.content {
				t.Errorf("again: %q, %v", again, err)
			}
			if err := blobs.Remove(context.Background(), r.session, []domain.Attachment{f.File}); err != nil {
				t.Error(err)
			}
			r.absent(copied)
			if _, err := blobs.Read(context.Background(), r.session, f.File); !domain.HasCode(err, domain.NotFound) {
				t.Errorf("a copy that is gone: %v", err)
			}
		})
	}
}

func TestDeliver_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		path, verdict, holds string
	}{
		"outside":              {"../out/secret.txt", "deny", "outside"},
		"by a link":            {"leak", "deny", "outside"},
		"forbidden":            {"private/p.txt", "deny", "forbidden"},
		"our own data":         {"BASE/data/sessions/acp-sessions.db", "deny", "forbidden"},
		"a hard link to a key": {"hard", "deny", "forbidden"},
		"missing":              {"a.tx", "not_found", "a.txt"},
		"too large":            {"big", "deny", "10.0 MiB can be delivered"},
		"a directory":          {"src", "error", "directory"},
	} {
		for _, level := range []domain.Level{domain.LevelSupervised, domain.LevelFull} {
			r := newRig(t)
			r.symlink("ws/leak", r.at("out/secret.txt"))
			r.write("ws/big", "")
			r.must(os.Truncate(r.at("ws/big"), maxDelivered+1))
			r.must(os.Link(r.at("home/.ssh/id_rsa"), r.at("ws/hard")))
			r.pol.Level, r.policy.Level = level, level
			r.open()
			a := r.call("deliver_file", "path", strings.ReplaceAll(c.path, "BASE", r.base)).want(t, c.verdict).holds(t, c.holds)
			if strings.Contains(a.text, "SECRET") || len(a.result.Content) > 0 {
				t.Errorf("%s: %+v", name, a)
			}
			r.absent("ws/uploads")
		}
	}
}

// TestDeliver_Swapped guards T77: whatever changes on the way, the client gets
// what was looked at, or nothing.
func TestDeliver_Swapped(t *testing.T) {
	sum := stampOf([]byte("A")).hex()
	for name, c := range map[string]struct {
		before func(r *rig) // between Prepare and Run
		stored func(r *rig) // between the copy and its being read again
		whole  bool         // delivered all the same, unchanged
	}{
		"the file is written to":   {before: func(r *rig) { r.write("ws/a.txt", "B") }},
		"the file grows":           {before: func(r *rig) { r.write("ws/a.txt", "AA") }},
		"the file becomes another": {before: func(r *rig) { r.must(os.Rename(r.at("out/secret.txt"), r.at("ws/a.txt"))) }, whole: true},
		"the file becomes a link":  {before: func(r *rig) { r.must(os.Remove(r.at("ws/a.txt"))); r.symlink("ws/a.txt", "../out/secret.txt") }, whole: true},
		"uploads becomes a link":   {before: func(r *rig) { r.symlink("ws/uploads", "../out") }},
		"the copy is written to":   {stored: func(r *rig) { r.write("ws/uploads/"+sum+".txt", "CHANGED") }},
		"the copy is gone":         {stored: func(r *rig) { r.must(os.Remove(r.at("ws/uploads/" + sum + ".txt"))) }},
		"the copy becomes a link": {stored: func(r *rig) {
			r.must(os.Remove(r.at("ws/uploads/" + sum + ".txt")))
			r.symlink("ws/uploads/"+sum+".txt", r.at("out/secret.txt"))
		}},
		"a forged copy is there already": {before: func(r *rig) { r.write("ws/uploads/"+sum+".txt", "FORGED") }, whole: true},
		"a right copy is there already":  {before: func(r *rig) { r.write("ws/uploads/"+sum+".txt", "A") }, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).open()
			p, err := r.prepare("deliver_file", args("path", "a.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if c.before != nil {
				c.before(r)
			}
			if c.stored != nil {
				p.(*delivery).stored = func() { c.stored(r) }
			}
			res, err := p.Run(context.Background(), nil)
			if err != nil || res.Failed == c.whole {
				t.Fatalf("%+v, %v", res, err)
			}
			if !c.whole {
				if len(res.Content) > 0 || strings.Contains(res.Text, deliveryURI) {
					t.Errorf("%+v", res)
				}
				return
			}
			if f := res.Content[1].(domain.FileContent); !bytes.Equal(f.Data, []byte("A")) || r.read("ws/uploads/"+sum+".txt") != "A" {
				t.Errorf("delivered %q", f.Data)
			}
		})
	}
}

// TestDeliver_Secrets guards T78: files of keys are asked about.
func TestDeliver_Secrets(t *testing.T) {
	for path, secret := range map[string]bool{
		".env": true, ".env.local": true, ".ENV": true, "prod.env": true, ".env.example": false, "id_rsa": true, "id_ed25519.pub": false, "server.pem": true,
		"tls.KEY": true, "credentials": true, "credentials.json": true, "Credentials.toml": true, "credentials.go": false, ".netrc": true, ".npmrc": true,
		"secrets/a.txt": true, "x/.aws/config": true, ".git-credentials": true, "token.txt": true, "tokenizer.txt": false, "terraform.tfstate": true,
		"report.pdf": false, "keys.md": false, "service-account-prod.json": true, "vault.kdbx": true, "passwords.csv": true, "a.txt": false,
	} {
		r := newRig(t)
		r.write("ws/"+path, "x")
		r.symlink("ws/link.txt", path)
		r.open()
		want := "allow"
		if secret {
			want = "ask"
		}
		for _, name := range []string{path, "link.txt"} {
			a := r.call("deliver_file", "path", name)
			if a.verdict != want || secret != (a.plan.Access.Reason != "") || len(domain.Decide(r.policy, nil, a.plan.Access).Always) > 0 {
				t.Errorf("%s (%s): %s, %+v", path, name, a.verdict, a.plan.Access)
			}
			if secret {
				r.absent("ws/uploads")
			}
		}
		r.call("read_file", "path", path).want(t, "allow")
	}
}
