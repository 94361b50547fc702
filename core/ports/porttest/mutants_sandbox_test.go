package porttest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// kennel is a Sandbox that says what it is told to.
type kennel struct {
	mu      sync.Mutex
	posture domain.Posture
	looks   int
	ready   chan struct{} // closed when trying is over
	look    func(*kennel, context.Context) domain.Posture
	known   func(*kennel) (domain.Posture, bool)
}

func (k *kennel) Known(string) (domain.Posture, bool) {
	if k.known != nil {
		return k.known(k)
	}
	select {
	case <-k.ready:
	default:
		return domain.Posture{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.posture
	p.Lacks = slices.Clone(p.Lacks)
	return p, true
}

func (k *kennel) Posture(ctx context.Context, _ string) domain.Posture {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looks++
	if k.look != nil {
		return k.look(k, ctx)
	}
	return k.wait(ctx)
}

func (k *kennel) wait(ctx context.Context) domain.Posture {
	select {
	case <-k.ready:
	default:
		select {
		case <-k.ready:
		case <-ctx.Done():
			return domain.Posture{Word: domain.PostureNone, Reason: "nobody waited for the answer"}
		}
	}
	p := k.posture
	p.Lacks = slices.Clone(p.Lacks)
	return p
}

func sandboxFaults() map[string]func(*kennel) {
	saying := func(look func(*kennel, context.Context) domain.Posture) func(*kennel) {
		return func(k *kennel) { k.look = look }
	}
	return map[string]func(*kennel){
		"sandbox-word":    func(k *kennel) { k.posture.Word = "fine" },
		"sandbox-backend": func(k *kennel) { k.posture.Backend = "" },
		"sandbox-reason":  func(k *kennel) { k.posture.Reason = "" },
		"sandbox-stable": saying(func(k *kennel, _ context.Context) domain.Posture {
			return k.posture // with the very list it keeps
		}),
		"sandbox-together": saying(func(k *kennel, ctx context.Context) domain.Posture {
			if p := k.wait(ctx); k.looks < 3 {
				return p
			}
			return domain.Posture{Word: domain.PostureNone, Reason: "a probe is running already"}
		}),
		"sandbox-impatient": saying(func(k *kennel, ctx context.Context) domain.Posture {
			if ctx.Err() != nil {
				k.posture = domain.Posture{Word: domain.PostureNone, Reason: "nobody waited for the answer"}
			}
			return k.wait(ctx)
		}),
		"sandbox-known": func(k *kennel) {
			k.known = func(k *kennel) (domain.Posture, bool) {
				return domain.Posture{Word: domain.PostureStrong, Backend: "namespaces"}, true // a guess
			}
		},
		"sandbox-stuck": saying(func(k *kennel, ctx context.Context) domain.Posture {
			return k.wait(context.WithoutCancel(ctx))
		}),
	}
}

func TestSandboxMutants(t *testing.T) {
	mutants := sandboxFaults()
	sound := []domain.Posture{
		{Word: domain.PosturePartial, Backend: "landlock", Lacks: []string{"processes"}, Reason: "no user namespaces; allow them"},
		{Word: domain.PostureStrong, Backend: "namespaces"},
		{Word: domain.PostureOff, Reason: "sandbox = none"},
	}
	for _, c := range sandboxChecks() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := func(posture domain.Posture, fault func(*kennel)) []string {
					open := func(tb TB, ready bool) ports.Sandbox {
						k := &kennel{posture: posture, ready: make(chan struct{})}
						k.posture.Lacks = slices.Clone(posture.Lacks)
						if ready {
							close(k.ready)
						} else {
							tb.Cleanup(func() { close(k.ready) })
						}
						fault(k)
						return k
					}
					return Record(t, func(tb TB) {
						runChecks(tb, SandboxHarness{
							Agents: []string{"a", "b"},
							Open:   func(tb TB) ports.Sandbox { return open(tb, true) },
							Stuck:  func(tb TB) ports.Sandbox { return open(tb, false) },
						}, []check[SandboxHarness]{c})
					})
				}
				for _, p := range sound[1:] {
					if failed := over(p, func(*kennel) {}); len(failed) > 0 {
						t.Errorf("%s: the case fails on a sound adapter: %v", p.Word, failed)
					}
				}
				demand(t, c.name, mutants, func(fault func(*kennel)) []string { return over(sound[0], fault) }, func(*kennel) {})
			})
		})
	}
	for name := range mutants {
		t.Errorf("the fault %q belongs to no case", name)
	}
}
