package porttest

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

func sessionFaults() map[string]func(*faulty) {
	return map[string]func(*faulty){
		"create-load": func(f *faulty) {
			f.load = func(ctx context.Context, id domain.SessionID) (domain.Session, error) {
				row, err := f.Store.Load(ctx, id)
				row.CwdGiven = row.Cwd
				return row, err
			}
		},
		"create-duplicate-id": func(f *faulty) {
			f.create = func(ctx context.Context, row domain.Session) error {
				_ = f.Store.Delete(ctx, row.ID)
				return f.Store.Create(ctx, row)
			}
		},
		"create-duplicate-key": func(f *faulty) {
			f.create = func(ctx context.Context, row domain.Session) error {
				err := f.Store.Create(ctx, row)
				if domain.HasCode(err, domain.Conflict) {
					row.Key += "2"
					return f.Store.Create(ctx, row)
				}
				return err
			}
		},
		"create-duplicate-label": func(f *faulty) {
			f.create = func(ctx context.Context, row domain.Session) error {
				err := f.Store.Create(ctx, row)
				if domain.HasCode(err, domain.Conflict) {
					row.Label = ""
					return f.Store.Create(ctx, row)
				}
				return err
			}
		},
		"create-invalid": func(f *faulty) {
			f.create = func(ctx context.Context, row domain.Session) error {
				row.Title = strings.ToValidUTF8(row.Title, "?")
				return f.Store.Create(ctx, row)
			}
		},
		"load-missing": func(f *faulty) {
			f.load = func(ctx context.Context, id domain.SessionID) (domain.Session, error) {
				row, _ := f.Store.Load(ctx, id)
				return row, nil
			}
		},
		"update-changes": func(f *faulty) {
			f.update = func(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
				return f.Store.Update(ctx, id, func(s *domain.Session) error {
					label := s.Label
					err := fn(s)
					s.Label = label
					return err
				})
			}
		},
		"update-atomic": func(f *faulty) {
			var mu sync.Mutex
			var stale domain.Session // every second update works on what the one before read
			f.update = func(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
				mu.Lock()
				defer mu.Unlock()
				row := stale
				if stale = (domain.Session{}); row.ID == "" {
					row, _ = f.Store.Load(ctx, id)
					stale = row
				}
				err := fn(&row)
				if err != nil {
					return err
				}
				return f.Store.Update(ctx, id, func(s *domain.Session) error { *s = row; return nil })
			}
		},
		"update-error": func(f *faulty) {
			f.update = func(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
				var mine error
				err := f.Store.Update(ctx, id, func(s *domain.Session) error { mine = fn(s); return nil })
				if mine != nil {
					return mine
				}
				return err
			}
		},
		"update-identity": func(f *faulty) {
			f.update = func(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
				var row domain.Session
				err := f.Store.Update(ctx, id, func(s *domain.Session) error { err := fn(s); row = *s; return err })
				if domain.HasCode(err, domain.InvalidArgument) {
					_ = f.Store.Delete(ctx, id)
					return f.Store.Create(ctx, row)
				}
				return err
			}
		},
		"update-duplicate": func(f *faulty) {
			f.update = func(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
				var row domain.Session
				err := f.Store.Update(ctx, id, func(s *domain.Session) error { err := fn(s); row = *s; return err })
				if domain.HasCode(err, domain.Conflict) {
					_ = f.Store.Update(ctx, id, func(s *domain.Session) error { s.Title = row.Title; return nil })
				}
				return err
			}
		},
		"update-missing": func(f *faulty) {
			f.update = func(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
				err := f.Store.Update(ctx, id, fn)
				if domain.HasCode(err, domain.SessionNotFound) {
					_ = fn(&domain.Session{ID: id})
				}
				return err
			}
		},
		"delete": func(f *faulty) {
			left := make(map[domain.SessionID][]domain.Record)
			f.del = func(ctx context.Context, id domain.SessionID) error {
				for e := range f.Store.Records(ctx, id, 0) {
					left[id] = append(left[id], e.Record)
				}
				return f.Store.Delete(ctx, id)
			}
			f.create = func(ctx context.Context, row domain.Session) error {
				if err := f.Store.Create(ctx, row); err != nil {
					return err
				}
				_, err := f.Store.Append(ctx, row.ID, 0, left[row.ID]...)
				return err
			}
		},
		"delete-missing": func(f *faulty) {
			f.del = func(ctx context.Context, id domain.SessionID) error {
				_ = f.Store.Delete(ctx, id)
				return nil
			}
		},
	}
}

func listFaults() map[string]func(*faulty) {
	// pages changes what is asked for and what is answered.
	pages := func(ask func(*domain.SessionQuery), answer func(domain.SessionQuery, *domain.SessionPage)) func(*faulty) {
		return func(f *faulty) {
			f.list = func(ctx context.Context, q domain.SessionQuery) (domain.SessionPage, error) {
				asked := q
				if ask != nil {
					ask(&asked)
				}
				page, err := f.Store.List(ctx, asked)
				if answer != nil {
					answer(q, &page)
				}
				return page, err
			}
		}
	}
	return map[string]func(*faulty){
		"list-order": pages(nil, func(_ domain.SessionQuery, p *domain.SessionPage) {
			slices.SortStableFunc(p.Sessions, func(a, b domain.Session) int { return b.CreatedAt.Compare(a.CreatedAt) })
		}),
		"list-after-append": func(f *faulty) {
			f.append = func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				row, _ := f.Store.Load(ctx, id)
				pos, err := f.Store.Append(ctx, id, after, recs...)
				_ = f.Store.Update(ctx, id, func(s *domain.Session) error { s.UpdatedAt = row.UpdatedAt; return nil })
				return pos, err
			}
		},
		"list-filters": pages(func(q *domain.SessionQuery) { q.Cwd = "" }, func(q domain.SessionQuery, p *domain.SessionPage) {
			p.Sessions = slices.DeleteFunc(p.Sessions, func(s domain.Session) bool { return q.Cwd != "" && s.Cwd != q.Cwd })
		}),
		"list-sub-sessions": pages(func(q *domain.SessionQuery) { q.All = q.All || q.Key != "" }, nil),
		"list-page-size": pages(func(q *domain.SessionQuery) {
			if q.Limit == 0 {
				q.Limit = 100
			}
		}, nil),
		"list-pages-stable": pages(func(q *domain.SessionQuery) {
			if q.After != nil {
				q.After = &domain.SessionCursor{UpdatedAt: q.After.UpdatedAt} // forgets the second half of the order
			}
		}, nil),
		"list-last-page": pages(nil, func(_ domain.SessionQuery, p *domain.SessionPage) {
			if n := len(p.Sessions); n > 0 {
				p.Next = &domain.SessionCursor{UpdatedAt: p.Sessions[n-1].UpdatedAt, ID: p.Sessions[n-1].ID}
			}
		}),
	}
}

func journalFaults() map[string]func(*faulty) {
	type appendFunc = func(context.Context, domain.SessionID, domain.Seq, []domain.Record) (domain.Seq, error)
	appends := func(make func(*faulty) appendFunc) func(*faulty) {
		return func(f *faulty) { f.append = make(f) }
	}
	return map[string]func(*faulty){
		"append-positions": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				_, err := f.Store.Append(ctx, id, after, recs...)
				return after + 1, err
			}
		}),
		"append-nothing": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				if len(recs) == 0 {
					_ = f.Store.Update(ctx, id, func(s *domain.Session) error { s.UpdatedAt = f.clock(); return nil })
				}
				return f.Store.Append(ctx, id, after, recs...)
			}
		}),
		"append-missing": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				pos, err := f.Store.Append(ctx, id, after, recs...)
				if domain.HasCode(err, domain.SessionNotFound) {
					return after + domain.Seq(len(recs)), nil
				}
				return pos, err
			}
		}),
		"append-conflict": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				for e := range f.Store.Records(ctx, id, after) {
					after = e.Seq
				}
				return f.Store.Append(ctx, id, after, recs...)
			}
		}),
		"append-all-or-none": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				for _, rec := range recs {
					var err error
					if after, err = f.Store.Append(ctx, id, after, rec); err != nil {
						return 0, err
					}
				}
				return after, nil
			}
		}),
		"append-row": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				row, _ := f.Store.Load(ctx, id)
				pos, err := f.Store.Append(ctx, id, after, recs...)
				_ = f.Store.Update(ctx, id, func(s *domain.Session) error { s.Title = row.Title; return nil })
				return pos, err
			}
		}),
		"append-clock-back": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				pos, err := f.Store.Append(ctx, id, after, recs...)
				_ = f.Store.Update(ctx, id, func(s *domain.Session) error { s.UpdatedAt = f.clock(); return nil })
				return pos, err
			}
		}),
		"append-concurrent": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				recs = slices.Clone(recs)
				slices.Reverse(recs)
				return f.Store.Append(ctx, id, after, recs...)
			}
		}),
		"records-middle": func(f *faulty) {
			f.records = func(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
				if after >= 100 {
					after-- // hands out the record at the position again
				}
				return f.Store.Records(ctx, id, after)
			}
		},
		"records-stamp": reads(func(e *domain.Entry) { e.At = e.At.Truncate(time.Millisecond) }),
		"records-as-of-start": func(f *faulty) {
			f.records = func(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
				return func(yield func(domain.Entry, error) bool) {
					for more := true; more; {
						more = false
						for e, err := range f.Store.Records(ctx, id, after) {
							if !yield(e, err) || err != nil {
								return
							}
							after, more = e.Seq, true
						}
					}
				}
			}
		},
		"records-break": func(f *faulty) {
			open := 0
			f.records = func(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
				return func(yield func(domain.Entry, error) bool) {
					if open++; open > 4 {
						yield(domain.Entry{}, domain.Errorf(domain.StoreUnavailable, "no connection is free"))
						return
					}
					for e, err := range f.Store.Records(ctx, id, after) {
						if !yield(e, err) {
							return // and nobody gives the connection back
						}
					}
					open--
				}
			}
		},
		"records-inside": func(f *faulty) {
			open := 0
			f.records = func(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
				return func(yield func(domain.Entry, error) bool) {
					open++
					defer func() { open-- }()
					if open > 4 {
						yield(domain.Entry{}, domain.Errorf(domain.StoreUnavailable, "no connection is free"))
						return
					}
					f.Store.Records(ctx, id, after)(yield)
				}
			}
		},
		"records-missing": func(f *faulty) {
			f.records = func(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
				return func(yield func(domain.Entry, error) bool) {
					for e, err := range f.Store.Records(ctx, id, after) {
						if err != nil || !yield(e, nil) {
							return
						}
					}
				}
			}
		},
		"records-cancel": func(f *faulty) {
			f.records = func(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
				return f.Store.Records(context.WithoutCancel(ctx), id, after)
			}
		},
		"cancelled": appends(func(f *faulty) appendFunc {
			return func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				if _, err := f.Store.Append(context.WithoutCancel(ctx), id, after, recs[0]); err != nil {
					return 0, err
				}
				return f.Store.Append(ctx, id, after+1, recs[1:]...)
			}
		}),
	}
}

// reads changes every entry on its way out.
func reads(change func(*domain.Entry)) func(*faulty) {
	return func(f *faulty) {
		f.records = func(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
			return func(yield func(domain.Entry, error) bool) {
				for e, err := range f.Store.Records(ctx, id, after) {
					if err == nil {
						change(&e)
					}
					if !yield(e, err) {
						return
					}
				}
			}
		}
	}
}

// editTexts changes every text of the entries on their way out.
func editTexts(change func(string) string) func(*faulty) {
	return reads(func(e *domain.Entry) {
		v := reflect.New(reflect.TypeOf(e.Record)).Elem()
		v.Set(reflect.ValueOf(e.Record))
		eachText(v, func(s reflect.Value) { s.SetString(change(s.String())) })
		e.Record = v.Interface().(domain.Record)
	})
}

func valueFaults() map[string]func(*faulty) {
	return map[string]func(*faulty){
		"record-types": reads(func(e *domain.Entry) {
			if c, ok := e.Record.(domain.CallBegan); ok && len(c.Update.Locations) > 0 {
				c.Update.Locations[1].Line = 0
				e.Record = c
			}
		}),
		"record-nil-empty": reads(func(e *domain.Entry) {
			if c, ok := e.Record.(domain.CallFinished); ok && len(c.Content) == 0 {
				c.Content = nil
				e.Record = c
			}
		}),
		"record-file-bytes": reads(func(e *domain.Entry) {
			if r, ok := e.Record.(domain.CallFinished); ok {
				for i, c := range r.Content {
					if f, ok := c.(domain.FileContent); ok {
						f.Data = []byte("abc")
						r.Content[i] = f
					}
				}
			}
		}),
		"record-unknown": reads(func(e *domain.Entry) {
			if u, ok := e.Record.(domain.Unknown); ok {
				u.Payload = []byte(strings.TrimSpace(string(u.Payload)))
				e.Record = u
			}
		}),
		"record-big":  editTexts(func(s string) string { return s[:min(len(s), 1<<20)] }),
		"text-kept":   editTexts(func(s string) string { return strings.ReplaceAll(s, "\x00", "") }),
		"bytes-kept":  emptyArgs,
		"no-aliasing": sharedRows,
		"text-invalid": func(f *faulty) {
			f.append = func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
				for i, rec := range recs {
					if p, ok := rec.(domain.PermissionGiven); ok {
						p.Option = strings.ToValidUTF8(p.Option, "?")
						recs[i] = p
					}
				}
				return f.Store.Append(ctx, id, after, recs...)
			}
		},
		"times": func(f *faulty) {
			f.load = func(ctx context.Context, id domain.SessionID) (domain.Session, error) {
				row, err := f.Store.Load(ctx, id)
				row.UpdatedAt = row.UpdatedAt.In(time.FixedZone("there", 3600))
				return row, err
			}
		},
	}
}

// emptyArgs gives back an object where there were no arguments.
func emptyArgs(f *faulty) {
	reads(func(e *domain.Entry) {
		if a, ok := e.Record.(domain.AssistantSaid); ok && len(a.Calls) > 0 && len(a.Calls[0].Args) == 0 {
			a.Calls[0].Args = []byte("{}")
			e.Record = a
		}
	})(f)
}

// sharedRows hands out the same list again and again.
func sharedRows(f *faulty) {
	lists := make(map[domain.SessionID][]string)
	f.load = func(ctx context.Context, id domain.SessionID) (domain.Session, error) {
		row, err := f.Store.Load(ctx, id)
		if lists[id] == nil {
			lists[id] = row.Additional
		}
		row.Additional = lists[id]
		return row, err
	}
}

func lifeFaults() map[string]func(*faulty) {
	return map[string]func(*faulty){
		"durable": func(f *faulty) { f.durable = func() bool { return false } },
		"closed":  func(f *faulty) { f.close = func() error { return nil } },
	}
}

func leaseFaults() map[string]func(*faulty) {
	everybody := func(f *faulty) {
		f.acquire = func(ctx context.Context, id domain.SessionID) error {
			if err := f.Store.Acquire(ctx, id); !domain.HasCode(err, domain.SessionActive) {
				return err
			}
			return nil
		}
	}
	return map[string]func(*faulty){
		"lease-one-owner": everybody,
		"lease-race":      everybody,
		"lease-again": func(f *faulty) {
			held := make(map[domain.SessionID]bool)
			f.acquire = func(ctx context.Context, id domain.SessionID) error {
				if held[id] {
					return domain.Errorf(domain.SessionActive, "held")
				}
				held[id] = true
				return f.Store.Acquire(ctx, id)
			}
		},
		"lease-release": func(f *faulty) { f.release = func(context.Context, domain.SessionID) error { return nil } },
		"lease-close":   func(f *faulty) { f.close = func() error { return nil } },
		"lease-delete": func(f *faulty) {
			f.del = func(ctx context.Context, id domain.SessionID) error {
				err := f.Store.Delete(ctx, id)
				_ = f.Store.Acquire(ctx, id)
				return err
			}
			f.release = func(context.Context, domain.SessionID) error { return nil }
		},
		"lease-cancelled": func(f *faulty) {
			f.acquire = func(ctx context.Context, id domain.SessionID) error {
				_ = f.Store.Acquire(context.WithoutCancel(ctx), id)
				return f.Store.Acquire(ctx, id)
			}
		},
	}
}

// harnessFaults are faults between stores rather than in one.
func harnessFaults() map[string]func() StoreHarness {
	sound := func() StoreHarness { return faultyHarness(func(*faulty) {}) }
	return map[string]func() StoreHarness{
		"reopen": func() StoreHarness {
			h := sound()
			h.Reopen = func(t TB, _ ports.Store, clock ports.Clock) ports.Store { return h.Open(t, clock) }
			return h
		},
		"shared": func() StoreHarness {
			h := sound()
			h.Other = func(t TB, s ports.Store) ports.Store { return h.Open(t, s.(*faulty).clock) }
			return h
		},
		"lease-crash": func() StoreHarness {
			h := sound()
			h.Crash = func(TB, ports.Store) {}
			return h
		},
		"lease-release-foreign": func() StoreHarness {
			h := sound()
			other := h.Other
			h.Other = func(t TB, s ports.Store) ports.Store {
				f := other(t, s).(*faulty)
				f.release = s.Release
				return f
			}
			return h
		},
		"lease-fences-append": func() StoreHarness {
			h := sound()
			other := h.Other
			h.Other = func(t TB, s ports.Store) ports.Store {
				f := other(t, s).(*faulty)
				f.append = func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
					return s.Append(ctx, id, after, recs...)
				}
				return f
			}
			return h
		},
	}
}
