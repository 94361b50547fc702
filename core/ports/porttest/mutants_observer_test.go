package porttest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// journalist is an observer that writes everything down.
type journalist struct {
	mu    sync.Mutex
	lines []string
	see   func(*journalist, context.Context, domain.Event) // a mutant's way of observing
	stuck chan struct{}                                    // not nil: the far end takes nothing until it closes
}

func (j *journalist) Observe(ctx context.Context, ev domain.Event) {
	if j.see != nil {
		j.see(j, ctx, ev)
		return
	}
	j.write(ev)
}

// discreet leaves out of an event what was said.
func discreet(ev domain.Event) domain.Event {
	switch ev := ev.(type) {
	case domain.TurnBegan:
		ev.Prompt = nil
		return ev
	case domain.TurnDone:
		ev.Text = ""
		return ev
	case domain.CallDone:
		ev.Args, ev.Result = nil, ""
		return ev
	}
	return ev
}

func (j *journalist) write(ev domain.Event) { j.note(discreet(ev)) }

func (j *journalist) note(ev domain.Event) {
	line := fmt.Sprintf("%T%+v", ev, ev)
	if done, ok := ev.(domain.TurnDone); ok && done.Err != nil {
		line += " " + done.Err.Error()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journalist) output() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

func observerFaults() map[string]func(*journalist) {
	seeing := func(see func(*journalist, context.Context, domain.Event)) func(*journalist) {
		return func(j *journalist) { j.see = see }
	}
	return map[string]func(*journalist){
		"observe-every-kind": seeing(func(j *journalist, _ context.Context, ev domain.Event) {
			if _, ok := ev.(domain.SessionReleased); !ok {
				j.write(ev)
			}
		}),
		"observe-bare": seeing(func(j *journalist, _ context.Context, ev domain.Event) {
			if tr, ok := ev.(domain.Trouble); ok && tr.Err == nil {
				j.see = func(*journalist, context.Context, domain.Event) {} // it broke
				return
			}
			j.write(ev)
		}),
		"observe-cancelled": seeing(func(j *journalist, ctx context.Context, ev domain.Event) {
			if ctx.Err() == nil {
				j.write(ev)
			}
		}),
		"observe-trouble": seeing(func(j *journalist, _ context.Context, ev domain.Event) {
			if tr, ok := ev.(domain.Trouble); ok {
				tr.Where = ""
				ev = tr
			}
			j.write(ev)
		}),
		"observe-failure": seeing(func(j *journalist, _ context.Context, ev domain.Event) {
			if done, ok := ev.(domain.TurnDone); ok {
				done.Err = nil
				ev = done
			}
			j.write(ev)
		}),
		"observe-order": func(j *journalist) {
			j.see = func(j *journalist, _ context.Context, ev domain.Event) {
				j.write(ev)
				j.mu.Lock()
				defer j.mu.Unlock()
				slices.Reverse(j.lines)
			}
		},
		"observe-said": seeing(func(j *journalist, _ context.Context, ev domain.Event) { j.note(ev) }),
		"observe-together": func(j *journalist) {
			busy := map[string]bool{}
			j.see = func(j *journalist, _ context.Context, ev domain.Event) {
				j.mu.Lock()
				seen := busy[fmt.Sprintf("%T", ev)]
				busy[fmt.Sprintf("%T", ev)] = true
				j.mu.Unlock()
				if !seen { // drops what it takes for the same event
					j.write(ev)
				}
			}
		},
		"observe-stuck": func(j *journalist) {
			j.see = func(j *journalist, _ context.Context, ev domain.Event) {
				if j.stuck != nil {
					<-j.stuck
				}
				j.write(ev)
			}
		},
	}
}

func TestObserverMutants(t *testing.T) {
	mutants := observerFaults()
	for _, c := range observerChecks() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := func(fault func(*journalist)) []string {
					return Record(t, func(tb TB) {
						runChecks(tb, ObserverHarness{
							Open: func(TB) (ports.Observer, func() string) {
								j := &journalist{}
								fault(j)
								return j, j.output
							},
							Stuck: func(tb TB) ports.Observer {
								j := &journalist{stuck: make(chan struct{})}
								tb.Cleanup(func() { close(j.stuck) })
								fault(j)
								return j
							},
						}, []check[ObserverHarness]{c})
					})
				}
				demand(t, c.name, mutants, over, func(*journalist) {})
			})
		})
	}
	for name := range mutants {
		t.Errorf("the fault %q belongs to no case", name)
	}
}

func TestObserverSuiteKnowsEveryEvent(t *testing.T) {
	for what, list := range map[string][]domain.Event{"observed": observed("s"), "bare": bare()} {
		var names []string
		for _, ev := range list {
			names = append(names, reflect.TypeOf(ev).Name())
		}
		slices.Sort(names)
		if declared := receiversOf(t, "../../domain", "isEvent"); !slices.Equal(names, declared) {
			t.Errorf("%s has %v, the domain declares %v", what, names, declared)
		}
	}
}
