package sessions_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// uploaded is a turn that named stored files.
func uploaded(n int, paths ...string) []domain.Record {
	recs := whole(n)
	said := recs[0].(domain.UserSaid)
	for _, p := range paths {
		said.Blocks = append(said.Blocks, domain.Attachment{Path: p, SHA256: "x"})
	}
	recs[0] = said
	return recs
}

func TestDelete_RemovesUploadsThatNobodyElseNames(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		mine := w.fresh()
		w.says(mine, uploaded(1, "/project/uploads/a", "/project/uploads/b", "/project/uploads/c", "/project/uploads/d")...)
		w.says(mine, uploaded(2, "/project/uploads/a")...)
		same := w.fresh()
		w.says(same, uploaded(1, "/project/uploads/b")...)
		// This one stored a file here and works elsewhere now.
		moved := w.fresh()
		w.says(moved, uploaded(1, "/project/uploads/c")...)
		w.close(moved)
		if _, err := w.load(w.client, domain.OpenSession{ID: moved, Dirs: domain.Directories{Cwd: "/elsewhere"}}); err != nil {
			t.Fatal(err)
		}
		if err := w.end(w.svc.Delete, w.client, mine); err != nil {
			t.Fatal(err)
		}
		if want := []string{"/project/uploads/a", "/project/uploads/d"}; !slices.Equal(w.blobs.removed, want) {
			t.Errorf("removed %v, want %v", w.blobs.removed, want)
		}
		// A transcript that a reset left behind still names its files.
		req := in("/project")
		req.Key, req.Reset = "acp:"+string(same), true
		w.open(req)
		if err := w.end(w.svc.Delete, w.client, same); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(w.blobs.removed, "/project/uploads/b") {
			t.Errorf("removed %v: the files of an old transcript stay for ever", w.blobs.removed)
		}
	})
}

// A journal that cannot be read must not keep everybody else's session from
// being deleted, nor cost anybody a file.
func TestDelete_WhenAnotherJournalIsDamaged(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		mine, other := w.fresh(), w.fresh()
		w.says(mine, uploaded(1, "/project/uploads/a")...)
		w.says(other, uploaded(1, "/project/uploads/a")...)
		n := 0
		w.store.before(func(_ context.Context, m string) error {
			if m == "records" {
				if n++; n > 1 {
					return domain.Errorf(domain.StoreCorrupt, "damaged")
				}
			}
			return nil
		})
		if err := w.end(w.svc.Delete, w.client, mine); err != nil {
			t.Errorf("delete: %v", err)
		}
		w.store.before(nil)
		if len(w.blobs.removed) != 0 || w.observer.troubles() == "" {
			t.Errorf("removed %v, troubles %q", w.blobs.removed, w.observer.troubles())
		}
	})
}

func TestDelete_WhatIsNotOpen(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.close(id)
		if err := w.end(w.svc.Delete, w.client, id); err != nil {
			t.Fatal(err)
		}
		if _, err := w.memory.Load(t.Context(), id); !domain.HasCode(err, domain.SessionNotFound) {
			t.Errorf("the row: %v", err)
		}
		w.wantCode(w.end(w.svc.Delete, w.client, id), domain.SessionNotFound)
		w.wantCode(w.end(w.svc.Delete, w.client, "a b"), domain.SessionNotFound)
		// In use by another process: not ours to delete.
		used := w.fresh()
		w.close(used)
		other := w.memory.Other()
		if err := other.Acquire(t.Context(), used); err != nil {
			t.Fatal(err)
		}
		w.wantCode(w.end(w.svc.Delete, w.client, used), domain.SessionActive)
		_ = other.Close()
		if err := w.end(w.svc.Delete, w.client, used); err != nil {
			t.Error(err)
		}
	})
}

// Until a session is deleted nobody can open it, whoever comes first.
func TestDelete_AgainstOpen(t *testing.T) {
	for _, active := range []bool{true, false} {
		bubble(t, func(t *testing.T, w *world) {
			id := w.fresh()
			if !active {
				w.close(id)
			}
			run, err := w.svc.Delete(w.client, id)
			if err != nil {
				t.Fatal(err)
			}
			refused := func() {
				t.Helper()
				for _, c := range []*client{w.client, {}} {
					_, err := w.svc.Open(c, domain.OpenSession{ID: id})
					w.wantCode(err, domain.SessionActive)
				}
				_, err := w.tryAdmit(id, true)
				w.wantCode(err, domain.SessionNotFound)
				_, err = w.svc.Delete(w.client, id)
				w.wantCode(err, domain.SessionActive)
			}
			refused()
			w.store.before(func(context.Context, string) error { time.Sleep(time.Second); return nil })
			done := make(chan error, 1)
			go func() { done <- run(context.Background()) }()
			time.Sleep(1500 * time.Millisecond)
			refused()
			w.svc.Detach(w.client, domain.Disconnected) // in the middle of it
			if err := <-done; err != nil {
				t.Errorf("delete: %v", err)
			}
			w.store.before(nil)
			synctest.Wait()
			_, err = w.load(w.client, domain.OpenSession{ID: id})
			w.wantCode(err, domain.SessionNotFound)
		})
	}
}

// A delete that fails leaves the session as it was, and free.
func TestDelete_EachStepFails(t *testing.T) {
	for _, step := range []string{"load", "acquire", "records", "delete"} {
		t.Run(step, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				id := w.fresh()
				w.says(id, uploaded(1, "/project/uploads/a")...)
				w.store.before(func(_ context.Context, m string) error {
					if m == step {
						return domain.Errorf(domain.StoreUnavailable, "The disk is full")
					}
					return nil
				})
				w.wantCode(w.end(w.svc.Delete, w.client, id), domain.StoreUnavailable)
				w.store.before(nil)
				if w.leased(id) || len(w.blobs.removed) != 0 {
					t.Errorf("leased %v, removed %v", w.leased(id), w.blobs.removed)
				}
				if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
					t.Errorf("it does not open again: %v", err)
				}
			})
		})
	}
}

// shows is a turn with calls that showed files: each path is followed by
// whether it was delivered. The hash of a file is its path.
func shows(files ...any) []domain.Record {
	recs := whole(1)
	var content []domain.CallContent
	for i := 0; i < len(files); i += 2 {
		path := files[i].(string)
		content = append(content, domain.FileContent{
			File: domain.Attachment{Path: path, SHA256: path, Name: "n"}, Title: "T", Delivered: files[i+1].(bool), Data: []byte("live"),
		})
	}
	call := domain.ModelCall{ID: "c", Name: "x", Args: []byte("{}")}
	return []domain.Record{
		recs[0], domain.AssistantSaid{Turn: "t1", Calls: []domain.ModelCall{call}},
		domain.CallBegan{Turn: "t1", Call: call, Update: domain.CallOpened{ID: "c", Status: domain.CallPending}},
		domain.CallFinished{Turn: "t1", Call: "c", Text: "shown", Content: content}, recs[2],
	}
}

// What was delivered was stored for the session like an attachment; what was
// only looked at is somebody's file.
func TestDelete_RemovesWhatWasDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		mine, other := w.fresh(), w.fresh()
		w.says(mine, shows("/project/uploads/a", true, "/project/uploads/b", true, "/project/picture.png", false)...)
		w.says(other, shows("/project/uploads/b", true)...)
		if err := w.end(w.svc.Delete, w.client, mine); err != nil {
			t.Fatal(err)
		}
		if want := []string{"/project/uploads/a"}; !slices.Equal(w.blobs.removed, want) {
			t.Errorf("removed %v, want %v", w.blobs.removed, want)
		}
	})
}
