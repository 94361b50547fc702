package porttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// BlobsFixture is a Blobs and a session whose working directory, real or not,
// is fresh.
type BlobsFixture struct {
	Blobs   ports.Blobs
	Session domain.Session
	// Limit bounds the blobs of one prompt together; at most 64 MiB.
	Limit int64
	// Files returns every file below the working directory and outside it that
	// Store could reach, by absolute path.
	Files func() map[string][]byte
	// Damage changes the content of a stored file, as somebody else would.
	Damage func(path string)
}

// BlobsHarness makes fixtures.
type BlobsHarness struct {
	Open func(TB) BlobsFixture
}

// Blobs is the conformance suite of ports.Blobs.
func Blobs(t TB, h BlobsHarness) {
	t.Helper()
	runChecks(t, h, blobsChecks())
}

func blobsChecks() []check[BlobsHarness] {
	return []check[BlobsHarness]{
		{"blobs-store", "an attachment is found where the answer says, byte for byte", blobsStore},
		{"blobs-order", "each blob of a prompt is answered in its place", blobsOrder},
		{"blobs-name", "a client never chooses where a file goes or what it is called", blobsName},
		{"blobs-again", "the same content twice is one file", blobsAgain},
		{"blobs-forged", "a file that only has the right name is not trusted", blobsForged},
		{"blobs-too-large", "a prompt that is too large is refused before the first write", blobsTooLarge},
		{"blobs-limit", "a blob of exactly the limit is taken", blobsLimit},
		{"blobs-none", "no blobs is no operation", blobsNone},
		{"blobs-cancelled", "nothing new begins after a cancel", blobsCancelled},
		{"blobs-read", "what a client was shown can be shown again, byte for byte", blobsRead},
		{"blobs-read-changed", "a client is never shown another content than the first time", blobsReadChanged},
		{"blobs-read-gone", "a file that is gone is said to be gone", blobsReadGone},
		{"blobs-remove", "a deleted session leaves nothing of its own, and nothing else goes", blobsRemove},
		{"blobs-remove-foreign", "only what was stored is ever removed", blobsRemoveForeign},
	}
}

func blob(text, mime, uri string) domain.Resource {
	return domain.Resource{URI: uri, MIME: mime, Blob: []byte(text), Binary: true}
}

func stored(t TB, f BlobsFixture, blobs ...domain.Resource) []domain.Attachment {
	t.Helper()
	list, err := f.Blobs.Store(t.Context(), f.Session, blobs)
	if err != nil {
		t.Fatalf("Store: %v", err)
	}
	if len(list) != len(blobs) {
		t.Fatalf("Store of %d blobs gave %d attachments", len(blobs), len(list))
	}
	return list
}

func uploadsOf(f BlobsFixture) string {
	return strings.TrimRight(f.Session.Cwd, `/\`) + f.Session.Cwd[:1] + "uploads" + f.Session.Cwd[:1]
}

// storedRight fails unless the attachment is the blob's.
func storedRight(t TB, f BlobsFixture, a domain.Attachment, r domain.Resource) {
	t.Helper()
	sum := sha256.Sum256(r.Blob)
	want := hex.EncodeToString(sum[:])
	name, below := strings.CutPrefix(a.Path, uploadsOf(f))
	stem, _, _ := strings.Cut(name, ".")
	if !below || stem != want || strings.ContainsAny(name, `/\`) {
		t.Errorf("path %s is not <cwd>/uploads/<sha256>.<ext>", a.Path)
	}
	if a.SHA256 != want || a.Size != int64(len(r.Blob)) || a.MIME != r.MIME || a.URI != r.URI || a.Name == "" {
		t.Errorf("attachment %+v of %s %s", a, r.URI, r.MIME)
	}
	if got, ok := f.Files()[a.Path]; !ok || !bytes.Equal(got, r.Blob) {
		t.Errorf("%s holds %.40q, %t", a.Path, got, ok)
	}
}

func blobsStore(t TB, h BlobsHarness) {
	f := h.Open(t)
	for _, r := range []domain.Resource{
		blob("hello", "text/plain", "file:///x/notes.txt"),
		blob("", "text/plain", ""),
		blob("\x89PNG\r\n\x00\xff", "image/png", ""),
		blob("%PDF", "application/pdf", "zed:///agent/doc.pdf?x=1#y"),
		blob("?", "", ""),
	} {
		storedRight(t, f, stored(t, f, r)[0], r)
	}
}

func blobsOrder(t TB, h BlobsHarness) {
	f := h.Open(t)
	var blobs []domain.Resource
	for i := range 9 {
		blobs = append(blobs, blob(fmt.Sprint(8-i%5), "image/png", fmt.Sprintf("mem:%d", i)))
	}
	for i, a := range stored(t, f, blobs...) {
		storedRight(t, f, a, blobs[i])
	}
}

func blobsName(t TB, h BlobsHarness) {
	f := h.Open(t)
	before := f.Files()
	for _, r := range []domain.Resource{
		blob("1", "text/plain", "file:///../../etc/cron.d/evil"),
		blob("2", "../../x", "file:///x/../../../y"),
		blob("3", "application/x-sh", "file:///run.sh"),
		blob("4", "text/x-\x00/..", "file:///a%2f..%2f..%2fb"),
		blob("5", "image/png/../../z", `file:///C:\windows\x.exe`),
	} {
		a := stored(t, f, r)[0]
		storedRight(t, f, a, r)
		for _, program := range []string{".sh", ".exe", ".bat", ".cmd", ".desktop"} {
			if strings.HasSuffix(a.Path, program) {
				t.Errorf("%s can be started", a.Path)
			}
		}
		if strings.ContainsAny(a.Name, "/\\\x00\n") {
			t.Errorf("display name %q", a.Name)
		}
	}
	for path := range f.Files() {
		if _, had := before[path]; !had && !strings.HasPrefix(path, uploadsOf(f)) {
			t.Errorf("%s was written", path)
		}
	}
}

func blobsAgain(t TB, h BlobsHarness) {
	f := h.Open(t)
	r := blob("same", "image/png", "")
	first := stored(t, f, r, r)
	if first[0].Path != first[1].Path {
		t.Errorf("stored as %s and %s", first[0].Path, first[1].Path)
	}
	count := len(f.Files())
	if second := stored(t, f, r); second[0].Path != first[0].Path || len(f.Files()) != count {
		t.Errorf("stored again as %s; %d files, then %d", second[0].Path, count, len(f.Files()))
	}
}

func blobsForged(t TB, h BlobsHarness) {
	f := h.Open(t)
	r := blob("true content", "image/png", "")
	f.Damage(stored(t, f, r)[0].Path)
	storedRight(t, f, stored(t, f, r)[0], r)
}

// tooLarge fails unless the blobs are refused and nothing was written.
func tooLarge(t TB, f BlobsFixture, what string, blobs ...domain.Resource) {
	t.Helper()
	before := len(f.Files())
	_, err := f.Blobs.Store(t.Context(), f.Session, blobs)
	var e *domain.Error
	if !errors.As(err, &e) || (e.Code != domain.TooLarge && e.Code != domain.InvalidArgument) || e.Msg == "" {
		t.Errorf("%s: %v", what, err)
	}
	if after := len(f.Files()); after != before {
		t.Errorf("%s: %d files were written", what, after-before)
	}
}

func blobsTooLarge(t TB, h BlobsHarness) {
	f := h.Open(t)
	small := blob("small", "text/plain", "")
	tooLarge(t, f, "one byte over", small, domain.Resource{Binary: true, Blob: make([]byte, domain.MaxBlobBytes+1)})
	half := domain.Resource{Binary: true, Blob: make([]byte, min(domain.MaxBlobBytes, f.Limit))}
	many := slices.Repeat([]domain.Resource{half}, int(f.Limit/int64(len(half.Blob)))+1)
	tooLarge(t, f, "all together", append([]domain.Resource{small}, many...)...)
}

func blobsLimit(t TB, h BlobsHarness) {
	f := h.Open(t)
	r := domain.Resource{MIME: "image/png", Binary: true, Blob: make([]byte, min(domain.MaxBlobBytes, f.Limit))}
	storedRight(t, f, stored(t, f, r)[0], r)
}

func blobsNone(t TB, h BlobsHarness) {
	f := h.Open(t)
	before := len(f.Files())
	stored(t, f)
	if len(f.Files()) != before {
		t.Errorf("files were written")
	}
}

func blobsCancelled(t TB, h BlobsHarness) {
	f := h.Open(t)
	before := len(f.Files())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(domain.CancelledByClient)
	if _, err := f.Blobs.Store(ctx, f.Session, []domain.Resource{blob("x", "image/png", "")}); !errors.Is(err, domain.CancelledByClient) {
		t.Errorf("Store under an ended context: %v", err)
	}
	if len(f.Files()) != before {
		t.Errorf("files were written")
	}
}

func blobsRead(t TB, h BlobsHarness) {
	f := h.Open(t)
	for _, text := range []string{"hello", "", "\x89PNG\r\n\x00\xff"} {
		a := stored(t, f, blob(text, "image/png", "x:/y"))[0]
		if got, err := f.Blobs.Read(t.Context(), f.Session, a); err != nil || string(got) != text {
			t.Errorf("Read of %q: %q, %v", text, got, err)
		}
	}
}

func blobsReadChanged(t TB, h BlobsHarness) {
	f := h.Open(t)
	a := stored(t, f, blob("mine", "text/plain", ""))[0]
	f.Damage(a.Path)
	if got, err := f.Blobs.Read(t.Context(), f.Session, a); !domain.HasCode(err, domain.Conflict) || len(got) > 0 {
		t.Errorf("Read of a changed file: %q, %v", got, err)
	}
}

func blobsReadGone(t TB, h BlobsHarness) {
	f := h.Open(t)
	a := stored(t, f, blob("mine", "text/plain", ""))[0]
	if err := f.Blobs.Remove(t.Context(), f.Session, []domain.Attachment{a}); err != nil {
		t.Fatalf("Remove: %v", err)
	}
	if _, err := f.Blobs.Read(t.Context(), f.Session, a); !domain.HasCode(err, domain.NotFound) {
		t.Errorf("Read of a file that is gone: %v", err)
	}
}

func blobsRemove(t TB, h BlobsHarness) {
	f := h.Open(t)
	list := stored(t, f, blob("1", "image/png", ""), blob("2", "text/plain", ""), blob("3", "", ""))
	kept := list[2].Path
	for range 2 { // what is gone already is no error
		if err := f.Blobs.Remove(t.Context(), f.Session, list[:2]); err != nil {
			t.Errorf("Remove: %v", err)
		}
	}
	files := f.Files()
	for _, a := range list[:2] {
		if _, there := files[a.Path]; there {
			t.Errorf("%s is still there", a.Path)
		}
	}
	if _, there := files[kept]; !there {
		t.Errorf("%s went too", kept)
	}
}

func blobsRemoveForeign(t TB, h BlobsHarness) {
	f := h.Open(t)
	a := stored(t, f, blob("mine", "text/plain", ""))[0]
	f.Damage(a.Path) // somebody made it theirs
	before := f.Files()
	wrong := []domain.Attachment{a}
	for path := range before {
		wrong = append(wrong, domain.Attachment{Path: path, SHA256: a.SHA256, Size: int64(len(before[path]))})
	}
	if err := f.Blobs.Remove(t.Context(), f.Session, wrong); err != nil {
		t.Logf("Remove: %v", err) // a refusal may be told
	}
	after := f.Files()
	for path := range before {
		if _, there := after[path]; !there {
			t.Errorf("%s was removed", path)
		}
	}
}
