package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func said(text string) domain.Record {
	return domain.AssistantSaid{Turn: "t", Parts: []domain.MessagePart{{ID: "m", Text: text}}}
}

// image is the content of a store's files: the database and, when it was
// taken from a living store, its log.
type image map[string][]byte

const imageSessions = 5

// takeImage makes a store of some pages and copies its files, before it is
// closed (as a kill leaves them) or after.
func takeImage(t testing.TB, killed bool) image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	s := openAt(t, path)
	for n := range imageSessions {
		id := mustCreate(t, s, n)
		fillTurns(t, s, id, 12)
		// One record too long for a page.
		if _, err := s.Append(t.Context(), id, 48, said(strings.Repeat(fmt.Sprint(n), 20000))); err != nil {
			t.Fatal(err)
		}
	}
	if !killed {
		s.Close()
	}
	img := readImage(t, path)
	if _, log := img["-wal"]; log != killed {
		t.Fatalf("the image has a log: %v", log)
	}
	s.Close()
	return img
}

func readImage(t testing.TB, path string) image {
	t.Helper()
	img := make(image)
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err == nil {
			img[suffix] = data
		}
	}
	return img
}

func (img image) write(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s.db")
	for suffix, data := range img {
		if err := os.WriteFile(path+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// with returns a copy with one file changed.
func (img image) with(suffix string, change func([]byte) []byte) image {
	c := maps.Clone(img)
	c[suffix] = change(bytes.Clone(img[suffix]))
	return c
}

func zeroed(data []byte) []byte            { return make([]byte, len(data)) }
func cut(n int) func([]byte) []byte        { return func(data []byte) []byte { return data[:n] } }
func content(s string) func([]byte) []byte { return func([]byte) []byte { return []byte(s) } }

func TestOpen_DamagedFiles(t *testing.T) {
	clean, killed := takeImage(t, false), takeImage(t, true)
	size := len(clean[""])
	page := func(n int) func([]byte) []byte {
		return func(data []byte) []byte {
			clear(data[n*4096 : (n+1)*4096])
			return data
		}
	}
	for name, img := range map[string]image{
		"zeros":                  clean.with("", zeroed),
		"a text file":            clean.with("", content("Dear diary,\n"+strings.Repeat("today I was a database. ", 500))),
		"a short text file":      clean.with("", content("hello\n")),
		"one byte":               clean.with("", cut(1)),
		"half a header":          clean.with("", cut(50)),
		"a header alone":         clean.with("", cut(100)),
		"one page":               clean.with("", cut(4096)),
		"cut to half":            clean.with("", cut(size/2)),
		"cut by a page":          clean.with("", cut(size-4096)),
		"a bad header":           clean.with("", func(d []byte) []byte { copy(d, "SQLite format 4"); return d }),
		"the first page zeroed":  clean.with("", page(0)),
		"the second page zeroed": clean.with("", page(1)),
		"a page zeroed":          clean.with("", page(size/4096/2)),
		"a garbage log":          killed.with("-wal", func(d []byte) []byte { return bytes.Repeat([]byte("garbage!"), len(d)/8) }),
		"a log with a bad sum":   killed.with("-wal", func(d []byte) []byte { d[25] ^= 1; return d }),
		"a log without its file": killed.with("", cut(0)),
		"damage below a log":     killed.with("-wal", func(d []byte) []byte { clear(d[32+24+4096*3:]); return d }).with("", zeroed),
	} {
		t.Run(name, func(t *testing.T) {
			path := img.write(t)
			s, err := Open(t.Context(), Config{Path: path, CheckBudget: time.Minute})
			if err == nil {
				s.Close()
				t.Fatalf("a damaged store was opened")
			}
			if !domain.HasCode(err, domain.StoreCorrupt) {
				t.Errorf("the error is %v (%v), want it to tell of damage", err, domain.CodeOf(err))
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not name the file: %v", err)
			}
			for suffix, want := range img {
				got, err := os.ReadFile(path + suffix)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("the file s.db%s was changed (%d bytes, were %d; %v)", suffix, len(got), len(want), err)
				}
			}
		})
	}
}

func TestOpen_NotDamaged(t *testing.T) {
	clean, killed := takeImage(t, false), takeImage(t, true)
	for name, tt := range map[string]struct {
		img  image
		want int // sessions
	}{
		"as it was closed":         {clean, imageSessions},
		"as a kill left it":        {killed, imageSessions},
		"an empty file":            {clean.with("", cut(0)), 0},
		"an empty log":             {clean.with("-wal", content("")), imageSessions},
		"a log that never got out": {clean.with("-wal", func([]byte) []byte { return make([]byte, 4096) }), imageSessions},
		"a stale index of the log": {killed.with("-shm", func([]byte) []byte { return bytes.Repeat([]byte{0xa5}, 32768) }), imageSessions},
		"a log with a torn end": {killed.with("-wal", func(d []byte) []byte {
			return append(d, bytes.Repeat([]byte{7}, 3000)...)
		}), imageSessions},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, tt.img.write(t))
			page, err := s.List(t.Context(), domain.SessionQuery{})
			if err != nil || len(page.Sessions) != tt.want {
				t.Fatalf("%d sessions, want %d (%v)", len(page.Sessions), tt.want, err)
			}
			for _, session := range page.Sessions {
				if n, err := countRecords(t, s, session.ID); n != 49 || err != nil {
					t.Errorf("session %s has %d records (%v)", session.ID, n, err)
				}
			}
		})
	}
}

// countRecords reads a journal and checks that no altered record is served.
func countRecords(t testing.TB, s *Store, id domain.SessionID) (n int, err error) {
	t.Helper()
	for e, err := range s.Records(t.Context(), id, 0) {
		if err != nil {
			return n, err
		}
		want := any(nil)
		if n < 48 {
			want = turn(n / 4)[n%4]
		} else {
			want = said(strings.Repeat(string(id[len(id)-1]), 20000))
		}
		if fmt.Sprint(e.Record) != fmt.Sprint(want) {
			t.Fatalf("session %s: record %d was served altered", id, n+1)
		}
		n++
	}
	return n, nil
}

// TestStore_RandomDamage changes files at random places. Whatever happens, no
// altered record is served as good and nothing panics.
func TestStore_RandomDamage(t *testing.T) {
	variants := 400
	if testing.Short() {
		variants = 60
	}
	images := []image{takeImage(t, false), takeImage(t, true)}
	rng := rand.New(rand.NewPCG(1, 2))
	refused, failed, served := 0, 0, 0
	for n := range variants {
		img := images[n%2]
		suffix := ""
		if n%4 == 3 {
			suffix = "-wal"
		}
		img = img.with(suffix, func(d []byte) []byte {
			at := rng.IntN(len(d))
			switch n % 3 {
			case 0:
				d[at] ^= 1 << rng.IntN(8)
			case 1:
				clear(d[at/512*512 : min(at/512*512+512, len(d))])
			case 2:
				return d[:at]
			}
			return d
		})
		budget := time.Second
		if n%8 >= 4 {
			budget = -1 // then the checksums alone must find it
		}
		s, err := Open(t.Context(), Config{Path: img.write(t), CheckBudget: budget})
		if err != nil {
			refused++
			if c := domain.CodeOf(err); c != domain.StoreCorrupt && c != domain.StoreUnavailable {
				t.Errorf("variant %d: open failed with %v (%v)", n, err, c)
			}
			continue
		}
		for i := range imageSessions {
			switch _, err := countRecords(t, s, row(i).ID); {
			case err == nil:
				served++
			case domain.HasCode(err, domain.Internal):
				t.Errorf("variant %d: uncoded error %v", n, err)
			default:
				failed++
			}
		}
		s.Close()
	}
	t.Logf("%d files were refused, %d journals failed, %d were served whole or from before", refused, failed, served)
	if refused == 0 || served == 0 {
		t.Errorf("the damage was not of both kinds")
	}
}

// TestStore_DamagedRecordFailsAlone alters one record past the store.
func TestStore_DamagedRecordFailsAlone(t *testing.T) {
	for name, damage := range map[string]string{
		"a changed payload":  "UPDATE records SET payload = replace(payload, 'hello', 'hullo') WHERE pos = (1 << 32) + 2",
		"a changed time":     "UPDATE records SET at = at + 1 WHERE pos = (1 << 32) + 2",
		"a missing record":   "DELETE FROM records WHERE pos = (1 << 32) + 2",
		"a missing end":      "DELETE FROM records WHERE pos > (1 << 32) + 2 AND pos < (2 << 32)",
		"swapped records":    "UPDATE records SET pos = CASE pos WHEN (1 << 32) + 2 THEN -1 ELSE (1 << 32) + 2 END WHERE pos IN ((1 << 32) + 2); UPDATE records SET pos = (1 << 32) + 2 WHERE pos = (1 << 32) + 3; UPDATE records SET pos = (1 << 32) + 3 WHERE pos = -1",
		"another's record":   "DELETE FROM records WHERE pos = (1 << 32) + 2; UPDATE records SET pos = (1 << 32) + 2 WHERE pos = (2 << 32) + 6",
		"a payload of bytes": "UPDATE records SET payload = x'00ff' WHERE pos = (1 << 32) + 2",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			s := openAt(t, path)
			bad, good := mustCreate(t, s, 1), mustCreate(t, s, 2)
			for _, id := range []domain.SessionID{bad, good} {
				pos := domain.Seq(0)
				for i := range 6 {
					var err error
					if pos, err = s.Append(t.Context(), id, pos, said(fmt.Sprint("hello ", i))); err != nil {
						t.Fatal(err)
					}
				}
			}
			db, err := rawConn(path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(damage); err != nil {
				t.Fatal(err)
			}
			var last error
			n := 0
			for e, err := range s.Records(t.Context(), bad, 0) {
				if last = err; err == nil {
					n++
					if e.Record.(domain.AssistantSaid).Parts[0].Text != fmt.Sprint("hello ", n-1) {
						t.Errorf("an altered record was served: %v", e)
					}
				}
			}
			if !domain.HasCode(last, domain.StoreCorrupt) || n > 2 {
				t.Errorf("the damaged journal gave %d records and %v", n, last)
			}
			var e *domain.Error
			if errors.As(last, &e) && (len(e.Details) == 0 || e.Details[0].Value != string(bad)) {
				t.Errorf("the error does not name the session: %+v", e.Details)
			}
			if name != "another's record" {
				n = 0
				for _, err := range s.Records(t.Context(), good, 0) {
					if err != nil {
						t.Fatalf("the other session: %v", err)
					}
					n++
				}
				if n != 6 {
					t.Errorf("the other session has %d records", n)
				}
			}
			if _, err := s.Append(t.Context(), good, 6, said("more")); err != nil {
				t.Errorf("append to the other session: %v", err)
			}
		})
	}
}
