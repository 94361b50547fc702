package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a call showed of files reaches the client whole, and again when the
// session is loaded by another process; it is a word once the file is gone or
// another. Deleting the session removes the copy that a delivery made.
func TestShownFilesAreShownAgain(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte{0, 1, 0xFF, '\n'}, 1<<20)
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:]) + ".pdf"
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x05\x00\x00\x00\x03\x08\x02\x00\x00\x00"
	w := newWorld(t)
	w.fill(t, map[string]string{"report.bin": string(data), "shot.png": png})
	w.configure(t, `call deliver_file {"path":"report.bin","mimeType":"application/pdf","title":"The report"}
call read_file {"path":"shot.png"}
--- next
expect "attachment://deliver/`+name+`"
expect "5x3 PNG"
text "ok"
`, "")
	file := `{"type":"resource","resource":{"uri":"attachment://deliver/` + name + `","mimeType":"application/pdf","blob":"` + base64.StdEncoding.EncodeToString(data) + `"}}`
	picture := `{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString([]byte(png)) + `"}`
	says := func(o *outcome, want map[string]int) {
		t.Helper()
		var all strings.Builder
		for _, u := range o.updates("tool_call_update") {
			all.Write(u)
		}
		for part, n := range want {
			if got := strings.Count(all.String(), part); got != n {
				t.Errorf("%.100s stands %d times in the updates, want %d", part, got, n)
			}
		}
	}
	o := scene{script: session + turn}.playIn(t, w)
	says(o, map[string]int{file: 1, picture: 1, `"title":"The report","status":"completed"`: 1, `"status":"failed"`: 0})

	vars := map[string]string{"SID": o.vars["sid"].(string)}
	load := hello + `loose
> session/load {"sessionId":"$SID","cwd":"$WORK","mcpServers":[]}
< {}
ambient
`
	says(scene{vars: vars, script: load}.playIn(t, w), map[string]int{file: 1, picture: 1, `"title":"The report","status":"completed"`: 1})

	copied := filepath.Join(w.work, "uploads", name)
	if err := os.Rename(copied, copied+".aside"); err != nil {
		t.Fatal(err)
	}
	w.fill(t, map[string]string{"shot.png": png + "x"})
	says(scene{vars: vars, script: load}.playIn(t, w), map[string]int{
		file: 0, picture: 0, "[The report was shown here; it is gone.]": 1, "[shot.png was shown here; it has another content by now.]": 1,
	})
	if err := os.Rename(copied+".aside", copied); err != nil {
		t.Fatal(err)
	}
	scene{vars: vars, script: hello + `> session/delete {"sessionId":"$SID"}
< {}
`}.playIn(t, w)
	if _, err := os.Stat(copied); err == nil {
		t.Error("the copy outlives its session")
	}
	w.check(t, map[string]string{"report.bin": string(data), "shot.png": png + "x"})
}
