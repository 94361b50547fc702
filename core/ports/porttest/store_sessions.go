package porttest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func sessionChecks() []check[StoreHarness] {
	return []check[StoreHarness]{
		{"create-load", "a session comes back with every field as it was given", createLoad},
		{"create-duplicate-id", "an id names one session for ever; the second is told, the first is kept", createDuplicateID},
		{"create-duplicate-key", "the same key always means the same stored session", createDuplicateKey},
		{"create-duplicate-label", "the same label always means the same stored session, and no label is no name", createDuplicateLabel},
		{"create-invalid", "a row that nobody could open is refused when it is made", createInvalid},
		{"load-missing", "an unknown id is told by its code and named, never an empty session", loadMissing},
		{"update-changes", "an update changes what it set and nothing else, also the names others find the session by", updateChanges},
		{"update-atomic", "of 50 concurrent updates none is lost", updateAtomic},
		{"update-error", "an update that fails leaves no trace and returns its own error", updateError},
		{"update-identity", "an update cannot turn a session into another one", updateIdentity},
		{"update-duplicate", "an update cannot take a name of another session", updateDuplicate},
		{"update-missing", "an update of an unknown session runs nothing", updateMissing},
		{"delete", "a deleted session is gone with its journal and its names", deleteTakesAll},
		{"delete-missing", "deleting what is not there is told", deleteMissing},
	}
}

func createLoad(t TB, h StoreHarness) {
	r := h.open(t)
	full := r.session(1)
	full.Label, full.Parent, full.Start = "my label", "parent-1", 7
	bare := domain.Session{ID: "b", Key: "k", Agent: "a", Cwd: "/", CreatedAt: full.CreatedAt, UpdatedAt: full.UpdatedAt}
	empty := r.session(2)
	empty.Additional = []string{}
	for _, row := range []domain.Session{full, bare, empty} {
		r.create(row)
		r.wantSame(r.load(row.ID), row, "session "+string(row.ID))
	}
}

func createDuplicateID(t TB, h StoreHarness) {
	r := h.open(t)
	first := r.create(r.session(1))
	r.append(first.ID, 0, said("kept"))
	again := r.session(1)
	again.Key, again.Title = "another key", "another title"
	r.wantCode(r.store.Create(r.ctx, again), domain.Conflict, "create with a taken id")
	if got := r.load(first.ID); got.Title != first.Title || got.Key != first.Key {
		t.Errorf("the first session was overwritten: %+v", got)
	}
	r.wantEntries(first.ID, said("kept"))
}

func createDuplicateKey(t TB, h StoreHarness) {
	r := h.open(t)
	first := r.create(r.session(1))
	again := r.session(2)
	again.Key = first.Key
	r.wantCode(r.store.Create(r.ctx, again), domain.Conflict, "create with a taken key")
	_, err := r.store.Load(r.ctx, again.ID)
	r.wantCode(err, domain.SessionNotFound, "load of the refused session")
}

func createDuplicateLabel(t TB, h StoreHarness) {
	r := h.open(t)
	first := r.session(1)
	first.Label = "label"
	r.create(first)
	again := r.session(2)
	again.Label = "label"
	r.wantCode(r.store.Create(r.ctx, again), domain.Conflict, "create with a taken label")
	again.Label = ""
	r.create(again)
	r.create(r.session(3)) // a second one without a label
}

func createInvalid(t TB, h StoreHarness) {
	r := h.open(t)
	for _, tt := range []struct {
		name string
		mend func(*domain.Session)
	}{
		{"no id", func(s *domain.Session) { s.ID = "" }},
		{"an id with a slash", func(s *domain.Session) { s.ID = "../x" }},
		{"no key", func(s *domain.Session) { s.Key = "" }},
		{"no agent", func(s *domain.Session) { s.Agent = "" }},
		{"no directory", func(s *domain.Session) { s.Cwd = "" }},
		{"a title that is not UTF-8", func(s *domain.Session) { s.Title = "a\xffb" }},
		{"a root that is not UTF-8", func(s *domain.Session) { s.Additional = []string{"/a\xc3"} }},
	} {
		row := r.session(1)
		tt.mend(&row)
		r.wantCode(r.store.Create(r.ctx, row), domain.InvalidArgument, "create with "+tt.name)
	}
	page, err := r.store.List(r.ctx, domain.SessionQuery{All: true})
	if err != nil || len(page.Sessions) != 0 {
		t.Errorf("a refused session is listed: %v, %v", page.Sessions, err)
	}
}

func loadMissing(t TB, h StoreHarness) {
	r := h.open(t)
	r.create(r.session(1))
	for _, id := range []domain.SessionID{"no-such-session", "", "%", "00000000"} {
		row, err := r.store.Load(r.ctx, id)
		r.wantCode(err, domain.SessionNotFound, "load of "+strconv.Quote(string(id)))
		if row.ID != "" {
			t.Errorf("load of %q gave %+v beside the error", id, row)
		}
		var e *domain.Error
		if errors.As(err, &e) && (len(e.Details) == 0 || e.Details[0].Value != string(id)) {
			t.Errorf("the error does not name the id %q: %+v", id, e.Details)
		}
	}
}

func updateChanges(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	other := r.create(r.session(2))
	r.append(row.ID, 0, said("kept"))
	moved := r.load(row.ID)
	moved.Key, moved.Label, moved.Agent = "new key", "new label", "new_agent"
	moved.Cwd, moved.CwdGiven, moved.Workspace = "/new", "/./new", "/new/workspace"
	moved.Additional, moved.Title, moved.Parent, moved.Client = nil, "new title", other.ID, "new client"
	moved.Start, moved.UpdatedAt = 1, moved.UpdatedAt.Add(time.Hour)
	err := r.store.Update(r.ctx, row.ID, func(s *domain.Session) error {
		*s = moved
		return nil
	})
	if err != nil {
		t.Fatalf("update: %v", err)
	}
	r.wantSame(r.load(row.ID), moved, "the updated session")
	r.wantSame(r.load(other.ID), other, "the other session")
	r.wantEntries(row.ID, said("kept"))
	again := r.session(3)
	again.Key = row.Key
	r.create(again) // the old key is free
	again = r.session(4)
	again.Label = "new label"
	r.wantCode(r.store.Create(r.ctx, again), domain.Conflict, "create with the label set by an update")
}

func updateAtomic(t TB, h StoreHarness) {
	const writers = 50
	r := h.open(t)
	row := r.session(1)
	row.Title = "0"
	r.create(row)
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			errs[i] = r.store.Update(r.ctx, row.ID, func(s *domain.Session) error {
				n, err := strconv.Atoi(s.Title)
				s.Title = strconv.Itoa(n + 1)
				return err
			})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("update: %v", err)
	}
	if got := r.load(row.ID).Title; got != strconv.Itoa(writers) {
		t.Errorf("%d updates counted to %s", writers, got)
	}
}

func updateError(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	mine := errors.New("mine")
	err := r.store.Update(r.ctx, row.ID, func(s *domain.Session) error {
		s.Title, s.Label = "changed", "changed"
		s.Additional[0] = "/changed"
		return mine
	})
	if !errors.Is(err, mine) {
		t.Errorf("the update returned %v, not the function's error", err)
	}
	r.wantSame(r.load(row.ID), row, "the session after a failed update")
	err = r.store.Update(r.ctx, row.ID, func(s *domain.Session) error {
		s.Title = "\xff"
		return nil
	})
	r.wantCode(err, domain.InvalidArgument, "an update to a title that is not UTF-8")
	err = r.store.Update(r.ctx, row.ID, func(s *domain.Session) error {
		s.Cwd = ""
		return nil
	})
	r.wantCode(err, domain.InvalidArgument, "an update to no directory")
	r.wantSame(r.load(row.ID), row, "the session after refused updates")
}

func updateIdentity(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	for name, change := range map[string]func(*domain.Session){
		"id":            func(s *domain.Session) { s.ID = "another" },
		"creation time": func(s *domain.Session) { s.CreatedAt = s.CreatedAt.Add(time.Hour) },
	} {
		err := r.store.Update(r.ctx, row.ID, func(s *domain.Session) error {
			change(s)
			return nil
		})
		r.wantCode(err, domain.InvalidArgument, "an update that changes the "+name)
	}
	r.wantSame(r.load(row.ID), row, "the session")
	_, err := r.store.Load(r.ctx, "another")
	r.wantCode(err, domain.SessionNotFound, "load of the id an update wanted")
}

func updateDuplicate(t TB, h StoreHarness) {
	r := h.open(t)
	first := r.session(1)
	first.Label = "label"
	r.create(first)
	second := r.create(r.session(2))
	for name, change := range map[string]func(*domain.Session){
		"key":   func(s *domain.Session) { s.Key = first.Key },
		"label": func(s *domain.Session) { s.Label = first.Label },
	} {
		err := r.store.Update(r.ctx, second.ID, func(s *domain.Session) error {
			s.Title = "changed"
			change(s)
			return nil
		})
		r.wantCode(err, domain.Conflict, "an update to a taken "+name)
	}
	r.wantSame(r.load(second.ID), second, "the session")
}

func updateMissing(t TB, h StoreHarness) {
	r := h.open(t)
	err := r.store.Update(r.ctx, "none", func(*domain.Session) error {
		t.Errorf("the function ran for a session that does not exist")
		return nil
	})
	r.wantCode(err, domain.SessionNotFound, "update")
}

func deleteTakesAll(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.session(1)
	row.Label = "label"
	r.create(row)
	kept := r.create(r.session(2))
	r.append(row.ID, 0, saidN("a", 300)...)
	r.append(kept.ID, 0, saidN("b", 3)...)
	if err := r.store.Delete(r.ctx, row.ID); err != nil {
		t.Fatalf("delete: %v", err)
	}
	_, err := r.store.Load(r.ctx, row.ID)
	r.wantCode(err, domain.SessionNotFound, "load after delete")
	_, err = r.store.Append(r.ctx, row.ID, 300, said("late"))
	r.wantCode(err, domain.SessionNotFound, "append after delete")
	r.create(row) // id, key and label are free again
	r.wantEntries(row.ID)
	r.wantEntries(kept.ID, saidN("b", 3)...)
}

func deleteMissing(t TB, h StoreHarness) {
	r := h.open(t)
	r.wantCode(r.store.Delete(context.WithoutCancel(r.ctx), "none"), domain.SessionNotFound, "delete")
}
