package porttest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// FilesFixture is a client with buffers, and its far end.
type FilesFixture struct {
	Files   ports.Files
	Session domain.SessionID
	// Path makes an absolute path of a name.
	Path func(name string) string
	// Put makes the client have a file; Got returns what it has.
	Put func(path, text string)
	Got func(path string) (text string, ok bool)
	// Refuse makes the client answer every write with a failure.
	Refuse func()
	// Hang makes the client answer nothing any more.
	Hang func()
}

// FilesHarness makes fixtures.
type FilesHarness struct {
	Open func(TB) FilesFixture
}

// Files is the conformance suite of ports.Files.
func Files(t TB, h FilesHarness) {
	t.Helper()
	runChecks(t, h, filesChecks())
}

func filesChecks() []check[FilesHarness] {
	return []check[FilesHarness]{
		{"files-read", "the model sees the text exactly as the editor has it", filesRead},
		{"files-read-missing", "a missing file is reported as missing, not as a failure", filesMissing},
		{"files-write", "the editor gets the text exactly as it was meant", filesWrite},
		{"files-write-new", "a new file can be made through the client", filesWriteNew},
		{"files-write-refused", "a refusal is never taken for success", filesRefused},
		{"files-several", "two files are never mixed up", filesSeveral},
		{"files-cancelled", "a cancel is answered however the client hangs", filesCancelled},
	}
}

// oddTexts are what a careless mapping would change.
func oddTexts() map[string]string {
	return map[string]string{
		"empty":            "",
		"no line end":      "one",
		"LF":               "one\ntwo\n",
		"CRLF":             "one\r\ntwo\r\n",
		"lone CR":          "one\rtwo",
		"byte-order mark":  "\uFEFFone\n",
		"NUL":              "a\x00b",
		"controls":         "\x01\x1b[31m\x7f\u0085\u2028\u2029",
		"quotes":           `"\" \n \u0041 </script>`,
		"beyond the plane": "𝒳 👩‍👩‍👧 \U0010FFFF",
		"replacement":      "\uFFFD",
		"long":             strings.Repeat("0123456789abcde\n", 1<<16),
	}
}

func filesRead(t TB, h FilesHarness) {
	f := h.Open(t)
	for what, text := range oddTexts() {
		path := f.Path(what + ".txt")
		f.Put(path, text)
		if got, err := f.Files.ReadText(t.Context(), f.Session, path); err != nil || got != text {
			t.Errorf("%s: got %.80q, %v", what, got, err)
		}
	}
}

func filesMissing(t TB, h FilesHarness) {
	f := h.Open(t)
	text, err := f.Files.ReadText(t.Context(), f.Session, f.Path("none.txt"))
	if !domain.HasCode(err, domain.NotFound) {
		t.Errorf("got %q, %v", text, err)
	}
}

func filesWrite(t TB, h FilesHarness) {
	f := h.Open(t)
	for what, text := range oddTexts() {
		path := f.Path(what + ".txt")
		f.Put(path, "before")
		if err := f.Files.WriteText(t.Context(), f.Session, path, text); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got, ok := f.Got(path); !ok || got != text {
			t.Errorf("%s: the client has %.80q, %t", what, got, ok)
		}
	}
}

func filesWriteNew(t TB, h FilesHarness) {
	f := h.Open(t)
	path := f.Path("new.txt")
	if err := f.Files.WriteText(t.Context(), f.Session, path, "text\n"); err != nil {
		t.Fatalf("WriteText: %v", err)
	}
	if got, ok := f.Got(path); !ok || got != "text\n" {
		t.Errorf("the client has %q, %t", got, ok)
	}
}

func filesRefused(t TB, h FilesHarness) {
	f := h.Open(t)
	path := f.Path("a.txt")
	f.Put(path, "before")
	f.Refuse()
	err := f.Files.WriteText(t.Context(), f.Session, path, "after")
	var e *domain.Error
	if !errors.As(err, &e) || e.Msg == "" || e.Code == domain.Internal {
		t.Errorf("a refused write gives %v; it must be coded and say why", err)
	}
	if got, _ := f.Got(path); got != "before" {
		t.Errorf("the client has %q", got)
	}
}

func filesSeveral(t TB, h FilesHarness) {
	f := h.Open(t)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, n := range names {
		f.Put(f.Path(n), n)
	}
	errs := make(chan error, len(names))
	for _, n := range names {
		go func() { // joined below: each sends once
			got, err := f.Files.ReadText(t.Context(), f.Session, f.Path(n))
			if err == nil && got != n {
				err = errors.New("reading " + n + " gave " + got)
			}
			errs <- errors.Join(err, f.Files.WriteText(t.Context(), f.Session, f.Path(n+"2"), n))
		}()
	}
	for range names {
		if err := <-errs; err != nil {
			t.Errorf("side by side: %v", err)
		}
	}
	for _, n := range names {
		if got, _ := f.Got(f.Path(n + "2")); got != n {
			t.Errorf("%s2 holds %q", n, got)
		}
	}
}

func filesCancelled(t TB, h FilesHarness) {
	f := h.Open(t)
	path := f.Path("a.txt")
	f.Put(path, "text")
	f.Hang()
	calls := map[string]func(context.Context) error{
		"read": func(ctx context.Context) error {
			_, err := f.Files.ReadText(ctx, f.Session, path)
			return err
		},
		"write": func(ctx context.Context) error { return f.Files.WriteText(ctx, f.Session, path, "x") },
	}
	for what, call := range calls {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- call(ctx) }() // joined below, or left behind by an adapter that fails here
		cancel(domain.CancelledByClient)
		select {
		case err := <-done:
			if !errors.Is(err, domain.CancelledByClient) {
				t.Errorf("%s: the error hides why the context ended: %v", what, err)
			}
		case <-time.After(hangLimit):
			t.Errorf("%s goes on %v after its context ended", what, hangLimit)
		}
	}
}
