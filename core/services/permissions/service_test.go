package permissions_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/services/permissions"
)

// person answers as the test says.
type person func(context.Context, domain.PermissionRequest) (domain.Decision, error)

func (p person) Ask(ctx context.Context, r domain.PermissionRequest) (domain.Decision, error) {
	return p(ctx, r)
}

type observer struct {
	mu   sync.Mutex
	seen []domain.PermissionDone
}

func (o *observer) Observe(_ context.Context, ev domain.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if done, ok := ev.(domain.PermissionDone); ok {
		o.seen = append(o.seen, done)
	}
}

var edit = domain.Access{Class: domain.AccessEdit, Tool: "write_file", Scope: "/project"}

func question(a domain.Access) permissions.Question {
	return permissions.Question{
		Session: "s", Turn: "t", Call: domain.CallOpened{ID: "c"}, Access: a, Policy: domain.Policy{Level: domain.LevelSupervised},
	}
}

// What the observer is told is enough to answer "who allowed this, and when".
func TestDecide_IsObserved(t *testing.T) {
	cases := []struct {
		name   string
		access domain.Access
		answer domain.Decision
		want   domain.PermissionDone
	}{
		{"allowed without a question", domain.Access{Class: domain.AccessRead, Tool: "read_file"}, domain.Decision{},
			domain.PermissionDone{Session: "s", Turn: "t", Call: "c", Tool: "read_file", Verdict: domain.Allow}},
		{"refused without a question", domain.Access{Class: domain.AccessEdit, Tool: "write_file", Forbidden: "no"}, domain.Decision{},
			domain.PermissionDone{Session: "s", Turn: "t", Call: "c", Tool: "write_file", Verdict: domain.Refuse}},
		{"asked", edit, domain.Decision{Outcome: domain.Selected, Option: "allow-always"},
			domain.PermissionDone{Session: "s", Turn: "t", Call: "c", Tool: "write_file", Verdict: domain.Ask, Asked: true, Outcome: domain.Selected, Option: "allow-always", Duration: time.Second}},
		{"an option that was not offered", edit, domain.Decision{Outcome: domain.Selected, Option: "allow-everything"},
			domain.PermissionDone{Session: "s", Turn: "t", Call: "c", Tool: "write_file", Verdict: domain.Ask, Asked: true, Outcome: domain.Unanswered, Duration: time.Second}},
		{"cancelled by the person", edit, domain.Decision{Outcome: domain.Withdrawn},
			domain.PermissionDone{Session: "s", Turn: "t", Call: "c", Tool: "write_file", Verdict: domain.Ask, Asked: true, Outcome: domain.Withdrawn, Duration: time.Second}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &observer{}
				s := permissions.New(o, time.Now, time.Minute)
				_, err := s.Decide(t.Context(), person(func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
					time.Sleep(time.Second)
					return c.answer, nil
				}), question(c.access))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]domain.PermissionDone{c.want}, o.seen); diff != "" {
					t.Errorf("observed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Waiting ends with the turn's cause, and with the limit, whatever the client
// makes of its context.
func TestDecide_Waiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name   string
			cancel bool
			want   domain.Outcome
		}{{"the turn ends", true, domain.Withdrawn}, {"nobody answers", false, domain.Unanswered}} {
			o := &observer{}
			ctx, cancel := context.WithCancel(t.Context())
			waits := person(func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
				if tt.cancel {
					cancel()
				}
				<-ctx.Done()
				return domain.Decision{}, context.Cause(ctx)
			})
			_, err := permissions.New(o, time.Now, time.Minute).Decide(ctx, waits, question(edit))
			if (err != nil) != tt.cancel || len(o.seen) != 1 || o.seen[0].Outcome != tt.want {
				t.Errorf("%s: %v, and the observer was told %+v; want outcome %v", tt.name, err, o.seen, tt.want)
			}
			cancel()
		}
	})

	synctest.Test(t, func(t *testing.T) {
		s := permissions.New(&observer{}, time.Now, time.Minute)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(domain.SessionClosed) })
		_, err := s.Decide(ctx, person(func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
			<-ctx.Done()
			return domain.Decision{Outcome: domain.Selected, Option: "allow-once"}, nil
		}), question(edit))
		if !errors.Is(err, domain.SessionClosed) {
			t.Errorf("the error is %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := permissions.New(&observer{}, time.Now, time.Minute)
		start := time.Now()
		answer, err := s.Decide(t.Context(), person(func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
			<-ctx.Done()
			return domain.Decision{Outcome: domain.Selected, Option: "allow-once"}, nil
		}), question(edit))
		if err != nil || answer.Allowed || answer.Record == nil || answer.Record.Outcome != domain.Unanswered || time.Since(start) != time.Minute {
			t.Errorf("after %v: %+v, %v", time.Since(start), answer, err)
		}
	})
}

// Every set of options holds one answer that allows and one that rejects, ids
// and names that tell them apart, and always-answers only together.
func TestOptions(t *testing.T) {
	for _, rememberable := range []bool{true, false} {
		ruling := domain.Ruling{Verdict: domain.Ask}
		if rememberable {
			ruling.Always = []domain.Rule{{Allow: true, Tool: edit.Tool, Scope: edit.Scope}}
		}
		options := permissions.Options(edit, ruling)
		ids, names, kinds := map[string]bool{}, map[string]bool{}, map[domain.OptionKind]bool{}
		for _, o := range options {
			ids[o.ID], names[o.Name], kinds[o.Kind] = true, true, true
		}
		if len(ids) != len(options) || len(names) != len(options) || len(kinds) != len(options) {
			t.Errorf("options repeat themselves: %+v", options)
		}
		if !kinds[domain.AllowOnce] || !kinds[domain.RejectOnce] || kinds[domain.AllowAlways] != rememberable || kinds[domain.RejectAlways] != rememberable {
			t.Errorf("rememberable %v offers %+v", rememberable, options)
		}
	}
}
