package porttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func listChecks() []check[StoreHarness] {
	return []check[StoreHarness]{
		{"list-order", "lists show the newest first, and equal times in one fixed order", listOrder},
		{"list-after-append", "a session that was worked on comes first", listAfterAppend},
		{"list-filters", "filters are applied before paging and several must all match", listFilters},
		{"list-sub-sessions", "sub-sessions are hidden until they are asked for", listSubSessions},
		{"list-page-size", "a page holds what was asked for, 50 when nothing was, 200 at most", listPageSize},
		{"list-pages-stable", "whoever pages sees every session once while others are added", listPagesStable},
		{"list-last-page", "a cursor never leads to an empty page", listLastPage},
	}
}

func (r *rig) list(q domain.SessionQuery) domain.SessionPage {
	r.t.Helper()
	page, err := r.store.List(r.ctx, q)
	if err != nil {
		r.t.Fatalf("list %+v: %v", q, err)
	}
	return page
}

// wantList checks which sessions a query gives, by their numbers.
func (r *rig) wantList(q domain.SessionQuery, want ...int) {
	r.t.Helper()
	var got, ids []domain.SessionID
	for _, s := range r.list(q).Sessions {
		got = append(got, s.ID)
	}
	for _, n := range want {
		ids = append(ids, r.session(n).ID)
	}
	if !slices.Equal(got, ids) {
		r.t.Errorf("list %+v gave %v, want %v", q, got, ids)
	}
}

func listOrder(t TB, h StoreHarness) {
	r := h.open(t)
	for _, n := range []int{3, 1, 4, 2, 5} {
		row := r.session(n)
		if n >= 4 {
			row.UpdatedAt = r.session(3).UpdatedAt // three of one time
		}
		row.CreatedAt = r.session(9 - n).CreatedAt
		r.create(row)
	}
	r.wantList(domain.SessionQuery{}, 5, 4, 3, 2, 1)
	first := r.list(domain.SessionQuery{Limit: 1}).Sessions[0]
	r.wantSame(first, r.load(first.ID), "a listed session")
}

func listAfterAppend(t TB, h StoreHarness) {
	r := h.open(t)
	for n := range 3 {
		r.create(r.session(n))
	}
	r.clock.advance(time.Hour)
	r.append(r.session(1).ID, 0, said("hello"))
	r.wantList(domain.SessionQuery{}, 1, 2, 0)
}

func listFilters(t TB, h StoreHarness) {
	r := h.open(t)
	for n := range 123 {
		row := r.session(n)
		row.Cwd = "/q"
		if n < 3 {
			row.Cwd, row.Label = "/p", fmt.Sprint("label ", n)
		}
		r.create(row)
	}
	for _, tt := range []struct {
		q    domain.SessionQuery
		want []int
	}{
		{domain.SessionQuery{Cwd: "/p"}, []int{2, 1, 0}},
		{domain.SessionQuery{Cwd: "/p", Limit: 2}, []int{2, 1}},
		{domain.SessionQuery{Cwd: "/q", Limit: 1}, []int{122}},
		{domain.SessionQuery{Cwd: "/"}, nil},
		{domain.SessionQuery{Cwd: "/p/"}, nil},
		{domain.SessionQuery{Cwd: "%"}, nil},
		{domain.SessionQuery{Key: r.session(7).Key}, []int{7}},
		{domain.SessionQuery{Label: "label 1"}, []int{1}},
		{domain.SessionQuery{Label: "LABEL 1"}, nil},
		{domain.SessionQuery{Label: "label 1", Cwd: "/q"}, nil},
		{domain.SessionQuery{Label: "label 1", Cwd: "/p", Key: r.session(1).Key}, []int{1}},
		{domain.SessionQuery{Label: "label 1", Key: r.session(2).Key}, nil},
	} {
		r.wantList(tt.q, tt.want...)
	}
	if next := r.list(domain.SessionQuery{Cwd: "/p"}).Next; next != nil {
		t.Errorf("three sessions and a page of 50 gave a cursor %+v", next)
	}
	page := r.list(domain.SessionQuery{Cwd: "/p", Limit: 2})
	if page.Next == nil {
		t.Fatalf("two of three sessions gave no cursor")
	}
	r.wantList(domain.SessionQuery{Cwd: "/p", Limit: 2, After: page.Next}, 0)
}

func listSubSessions(t TB, h StoreHarness) {
	r := h.open(t)
	for n := range 4 {
		row := r.session(n)
		if n%2 == 1 {
			row.Parent = r.session(0).ID
		}
		r.create(row)
	}
	r.wantList(domain.SessionQuery{}, 2, 0)
	r.wantList(domain.SessionQuery{Key: r.session(1).Key})
	r.wantList(domain.SessionQuery{Key: r.session(1).Key, All: true}, 1)
	r.wantList(domain.SessionQuery{All: true}, 3, 2, 1, 0)
	r.wantList(domain.SessionQuery{All: true, Cwd: r.session(1).Cwd}, 3, 2, 1, 0)
}

func listPageSize(t TB, h StoreHarness) {
	r := h.open(t)
	for n := range 205 {
		r.create(r.session(n))
	}
	for limit, want := range map[int]int{0: 50, -3: 50, 1: 1, 50: 50, 200: 200, 1000: 200} {
		page := r.list(domain.SessionQuery{Limit: limit})
		if len(page.Sessions) != want || page.Next == nil {
			t.Errorf("limit %d gave %d sessions and the cursor %v, want %d and one", limit, len(page.Sessions), page.Next, want)
		}
	}
}

func listPagesStable(t TB, h StoreHarness) {
	r := h.open(t)
	const n = 20
	for i := range n {
		row := r.session(i)
		row.UpdatedAt = r.session(i / 4).UpdatedAt // runs of four equal times
		r.create(row)
	}
	seen := make(map[domain.SessionID]int)
	q := domain.SessionQuery{Limit: 3}
	for pages := 0; ; pages++ {
		page := r.list(q)
		for _, s := range page.Sessions {
			seen[s.ID]++
		}
		r.create(r.session(1000 + pages)) // newer than everything
		if page.Next == nil {
			break
		}
		if pages > n {
			t.Fatalf("paging does not end")
		}
		q.After = page.Next
	}
	for i := range n {
		if got := seen[r.session(i).ID]; got != 1 {
			t.Errorf("session %d was seen %d times", i, got)
		}
	}
}

func listLastPage(t TB, h StoreHarness) {
	r := h.open(t)
	if page := r.list(domain.SessionQuery{}); len(page.Sessions) != 0 || page.Next != nil {
		t.Errorf("an empty store lists %+v", page)
	}
	for n := range 4 {
		r.create(r.session(n))
	}
	for _, limit := range []int{1, 2, 3, 4, 5} {
		q := domain.SessionQuery{Limit: limit}
		for total := 0; ; {
			page := r.list(q)
			if len(page.Sessions) == 0 {
				t.Errorf("with pages of %d, a cursor led to an empty page", limit)
			}
			total += len(page.Sessions)
			if page.Next == nil {
				if total != 4 {
					t.Errorf("with pages of %d, %d of 4 sessions were listed", limit, total)
				}
				break
			}
			q.After = page.Next
		}
	}
}
