package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), Config{Path: filepath.Join(b.TempDir(), "s.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func row(n int) domain.Session {
	at := time.UnixMicro(int64(n) * 1e6).UTC()
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
	return domain.Session{
		ID: domain.SessionID(id), Key: "acp:" + id, Agent: "default", Cwd: "/home/someone/project", CwdGiven: "/home/someone/project",
		Workspace: "/home/someone/.local/share/berth/agents/default/workspace", Client: "zed 1.0", CreatedAt: at, UpdatedAt: at,
	}
}

// turn is what one ordinary turn leaves in the journal: four records.
func turn(n int) []domain.Record {
	id := domain.TurnID(fmt.Sprintf("11111111-0000-4000-8000-%012d", n))
	call := domain.ModelCall{ID: domain.CallID(id + "-1"), ProviderID: "call_abc", Name: "read_file", Args: []byte(`{"path":"/home/someone/project/main.go"}`)}
	text := strings.Repeat("The function reads the file and returns its lines.\n", 8)
	return []domain.Record{
		domain.UserSaid{Turn: id, ID: domain.MessageID(id + "-u"), Blocks: []domain.Block{domain.Text{Text: "Please explain what main.go does, line by line."}}},
		domain.CallBegan{Turn: id, Call: call, Update: domain.CallOpened{
			ID: call.ID, Name: call.Name, Title: "Read main.go", Kind: domain.KindRead, Status: domain.CallPending,
			Locations: []domain.Location{{Path: "/home/someone/project/main.go"}}, RawInput: call.Args,
		}},
		domain.CallFinished{Turn: id, Call: call.ID, Text: text},
		domain.AssistantSaid{
			Turn: id, Model: domain.ModelRef{Provider: "offline", Model: "offline"}, Finish: domain.FinishStop, Window: 200000,
			Parts: []domain.MessagePart{{ID: domain.MessageID(id + "-a"), Text: text}}, Usage: domain.Usage{Input: 1200, Output: 300},
		},
	}
}

// fillTurns writes n turns of one session.
func fillTurns(tb testing.TB, s *Store, id domain.SessionID, n int) {
	tb.Helper()
	pos := domain.Seq(0)
	for from := 0; from < n; from += 50 {
		var recs []domain.Record
		for i := from; i < min(from+50, n); i++ {
			recs = append(recs, turn(i)...)
		}
		var err error
		if pos, err = s.Append(tb.Context(), id, pos, recs...); err != nil {
			tb.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s := benchStore(b)
	if err := s.Create(b.Context(), row(1)); err != nil {
		b.Fatal(err)
	}
	recs := turn(1)
	pos := domain.Seq(0)
	for b.Loop() {
		var err error
		if pos, err = s.Append(b.Context(), row(1).ID, pos, recs[int(pos)%4]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendEightWriters(b *testing.B) {
	s := benchStore(b)
	recs := turn(1)
	var next atomic.Int64
	b.SetParallelism(4) // of two processors
	b.RunParallel(func(pb *testing.PB) {
		id := row(int(next.Add(1))).ID
		if err := s.Create(b.Context(), row(int(next.Load())*1000)); err != nil && !domain.HasCode(err, domain.Conflict) {
			b.Error(err)
		}
		r := row(0)
		r.ID, r.Key = id, string(id)
		if err := s.Create(b.Context(), r); err != nil {
			b.Error(err)
		}
		pos := domain.Seq(0)
		for pb.Next() {
			var err error
			if pos, err = s.Append(b.Context(), id, pos, recs[int(pos)%4]); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkCreate(b *testing.B) {
	s := benchStore(b)
	for n := 0; b.Loop(); n++ {
		if err := s.Create(b.Context(), row(n)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreateAcquire(b *testing.B) {
	s := benchStore(b)
	for n := 0; b.Loop(); n++ {
		if err := errors.Join(s.Create(b.Context(), row(n)), s.Acquire(b.Context(), row(n).ID)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad4000Records(b *testing.B) {
	s := benchStore(b)
	if err := s.Create(b.Context(), row(1)); err != nil {
		b.Fatal(err)
	}
	fillTurns(b, s, row(1).ID, 1000)
	for b.Loop() {
		n := 0
		for _, err := range s.Records(b.Context(), row(1).ID, 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 4000 {
			b.Fatalf("%d records", n)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, turns := range []int{0, 1000, 20000} {
		b.Run(fmt.Sprintf("existing/%dturns", turns), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "s.db")
			s, err := Open(b.Context(), Config{Path: path})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Create(b.Context(), row(1)); err != nil {
				b.Fatal(err)
			}
			fillTurns(b, s, row(1).ID, turns)
			s.Close()
			for b.Loop() {
				benchOpen(b, path)
			}
		})
	}
	b.Run("fresh", func(b *testing.B) {
		dir := b.TempDir()
		for n := 0; b.Loop(); n++ {
			benchOpen(b, filepath.Join(dir, fmt.Sprint(n), "s.db"))
		}
	})
}

// benchOpen counts opening alone.
func benchOpen(b *testing.B, path string) {
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	s.Close()
	b.StartTimer()
}

func BenchmarkListOf10000(b *testing.B) {
	s := benchStore(b)
	for n := range 10000 {
		r := row(n)
		if n%10 == 0 {
			r.Cwd = "/other"
		}
		if err := s.Create(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	for name, q := range map[string]domain.SessionQuery{
		"all": {}, "cwd": {Cwd: row(1).Cwd}, "key": {Key: row(77).Key},
		"middle": {After: &domain.SessionCursor{UpdatedAt: row(5000).UpdatedAt, ID: row(5000).ID}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if page, err := s.List(b.Context(), q); err != nil || len(page.Sessions) == 0 {
					b.Fatal(page, err)
				}
			}
		})
	}
}
