package porttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// memoryClient is a client and its far end in one, as small as the contract
// allows. Mutants change one thing about it.
type memoryClient struct {
	info    domain.ClientInfo
	arrived chan Received
	gone    chan struct{}
	stalled chan struct{}
	leave   func()
	stall   func()

	mu   sync.Mutex
	asks map[string]chan reply
	last int
}

type reply struct {
	option string
	kind   string // selected, cancelled, error, garbage
}

func newMemoryClient(info domain.ClientInfo) *memoryClient {
	c := &memoryClient{
		info: info, arrived: make(chan Received, 4096), gone: make(chan struct{}), stalled: make(chan struct{}),
		asks: map[string]chan reply{},
	}
	c.leave = sync.OnceFunc(func() { close(c.gone) })
	c.stall = sync.OnceFunc(func() { close(c.stalled) })
	return c
}

func (c *memoryClient) put(ctx context.Context, r Received) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-c.gone:
		return fmt.Errorf("send: %w", domain.Disconnected)
	default:
	}
	select {
	case <-c.stalled:
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.gone:
			return domain.Disconnected
		}
	case c.arrived <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.gone:
		return domain.Disconnected
	}
}

func (c *memoryClient) Send(ctx context.Context, id domain.SessionID, u domain.Update) error {
	if t, ok := u.(domain.AgentText); ok {
		t.Text = strings.ToValidUTF8(t.Text, "\uFFFD")
		u = t
	}
	return c.put(ctx, Received{Session: id, Update: u})
}

func (c *memoryClient) Ask(ctx context.Context, q domain.PermissionRequest) (domain.Decision, error) {
	c.mu.Lock()
	c.last++
	token := fmt.Sprint("ask-", c.last)
	done := make(chan reply, 4)
	c.asks[token] = done
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asks, token)
	}()
	if err := c.put(ctx, Received{Session: q.Session, Ask: &q, Token: token}); err != nil {
		return domain.Decision{}, err
	}
	select {
	case r := <-done:
		return r.decision(q.Options), nil
	case <-ctx.Done():
		c.arrived <- Received{Token: token}
		return domain.Decision{}, context.Cause(ctx)
	case <-c.gone:
		return domain.Decision{}, domain.Disconnected
	}
}

func (r reply) decision(offered []domain.PermissionOption) domain.Decision {
	if r.kind == "cancelled" {
		return domain.Decision{Outcome: domain.Withdrawn}
	}
	known := slices.ContainsFunc(offered, func(o domain.PermissionOption) bool { return o.ID == r.option })
	if r.kind != "selected" || !known {
		return domain.Decision{Note: "no clear answer"}
	}
	return domain.Decision{Outcome: domain.Selected, Option: r.option}
}

func (c *memoryClient) Info() domain.ClientInfo { return c.info }
func (c *memoryClient) Files() (ports.Files, bool) {
	return nil, c.info.ReadFiles || c.info.WriteFiles
}

func (c *memoryClient) Next(ctx context.Context) (Received, error) {
	select {
	case r := <-c.arrived:
		return r, nil
	case <-ctx.Done():
		return Received{}, context.Cause(ctx)
	}
}

func (c *memoryClient) reply(q Received, r reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done := c.asks[q.Token]; done != nil {
		done <- r
	}
}
func (c *memoryClient) Answer(q Received, option string) {
	c.reply(q, reply{option: option, kind: "selected"})
}
func (c *memoryClient) Withdraw(q Received) { c.reply(q, reply{kind: "cancelled"}) }
func (c *memoryClient) Fail(q Received)     { c.reply(q, reply{kind: "error"}) }
func (c *memoryClient) Garble(q Received)   { c.reply(q, reply{kind: "garbage"}) }
func (c *memoryClient) Stall()              { c.stall() }
func (c *memoryClient) Leave()              { c.leave() }

func memoryHarness(wrap func(*memoryClient) ports.Client) ClientHarness {
	return ClientHarness{Connect: func(_ TB, info domain.ClientInfo) (ports.Client, ClientPeer) {
		c := newMemoryClient(info)
		return wrap(c), c
	}}
}

func TestClient_Memory(t *testing.T) {
	Client(Bubble(t), memoryHarness(func(c *memoryClient) ports.Client { return c }))
}

// mutantClient is a memoryClient with one fault.
type mutantClient struct {
	*memoryClient
	send func(context.Context, domain.SessionID, domain.Update) error
	ask  func(context.Context, domain.PermissionRequest) (domain.Decision, error)
	info func() domain.ClientInfo
}

func (m mutantClient) Send(ctx context.Context, id domain.SessionID, u domain.Update) error {
	if m.send != nil {
		return m.send(ctx, id, u)
	}
	return m.memoryClient.Send(ctx, id, u)
}

func (m mutantClient) Ask(ctx context.Context, q domain.PermissionRequest) (domain.Decision, error) {
	if m.ask != nil {
		return m.ask(ctx, q)
	}
	return m.memoryClient.Ask(ctx, q)
}

func (m mutantClient) Info() domain.ClientInfo {
	if m.info != nil {
		return m.info()
	}
	return m.memoryClient.Info()
}

// editing is a mutant that changes each update on its way.
func editing(edit func(domain.Update) (domain.Update, bool)) func(*memoryClient) ports.Client {
	return func(c *memoryClient) ports.Client {
		return mutantClient{memoryClient: c, send: func(ctx context.Context, id domain.SessionID, u domain.Update) error {
			u, keep := edit(u)
			if !keep {
				return nil
			}
			return c.Send(ctx, id, u)
		}}
	}
}

// deciding is a mutant that changes each decision.
func deciding(edit func(domain.PermissionRequest, domain.Decision, error) (domain.Decision, error)) func(*memoryClient) ports.Client {
	return func(c *memoryClient) ports.Client {
		return mutantClient{memoryClient: c, ask: func(ctx context.Context, q domain.PermissionRequest) (domain.Decision, error) {
			d, err := c.Ask(ctx, q)
			return edit(q, d, err)
		}}
	}
}

// asking is a mutant that changes each question on its way.
func asking(edit func(*domain.PermissionRequest)) func(*memoryClient) ports.Client {
	return func(c *memoryClient) ports.Client {
		return mutantClient{memoryClient: c, ask: func(ctx context.Context, q domain.PermissionRequest) (domain.Decision, error) {
			edit(&q)
			return c.Ask(ctx, q)
		}}
	}
}

func TestClient_Mutants(t *testing.T) {
	yes := domain.Decision{Outcome: domain.Selected, Option: "allow-once"}
	cases := []struct {
		fault string
		wrap  func(*memoryClient) ports.Client
		kills string // the case that must notice
	}{
		{"drops thoughts", editing(func(u domain.Update) (domain.Update, bool) {
			_, thought := u.(domain.AgentThought)
			return u, !thought
		}), "client-order"},
		{"holds every second update back", func(c *memoryClient) ports.Client {
			var held []func(context.Context) error
			var mu sync.Mutex
			return mutantClient{memoryClient: c, send: func(ctx context.Context, id domain.SessionID, u domain.Update) error {
				mu.Lock()
				defer mu.Unlock()
				held = append(held, func(ctx context.Context) error { return c.Send(ctx, id, u) })
				if len(held) < 2 {
					return nil
				}
				first, second := held[1], held[0]
				held = nil
				if err := first(ctx); err != nil {
					return err
				}
				return second(ctx)
			}}
		}, "client-order"},
		{"trims text", editing(func(u domain.Update) (domain.Update, bool) {
			if text, ok := u.(domain.AgentText); ok {
				text.Text = strings.TrimSpace(text.Text)
				return text, true
			}
			return u, true
		}), "client-text"},
		{"cuts long text", editing(func(u domain.Update) (domain.Update, bool) {
			if text, ok := u.(domain.AgentText); ok && len(text.Text) > 1<<20 {
				text.Text = text.Text[:1<<20]
				return text, true
			}
			return u, true
		}), "client-long-text"},
		{"drops bad bytes with their neighbours", editing(func(u domain.Update) (domain.Update, bool) {
			if text, ok := u.(domain.AgentText); ok && strings.ToValidUTF8(text.Text, "") != text.Text {
				text.Text = ""
				return text, true
			}
			return u, true
		}), "client-bad-text"},
		{"leaves the diff out", editing(func(u domain.Update) (domain.Update, bool) {
			if call, ok := u.(domain.CallOpened); ok {
				call.Content = nil
				return call, true
			}
			return u, true
		}), "client-call"},
		{"mixes sessions up", func(c *memoryClient) ports.Client {
			return mutantClient{memoryClient: c, send: func(ctx context.Context, _ domain.SessionID, u domain.Update) error {
				return c.Send(ctx, clientSession, u)
			}}
		}, "client-sessions"},
		{"sends after its context ended", func(c *memoryClient) ports.Client {
			return mutantClient{memoryClient: c, send: func(ctx context.Context, id domain.SessionID, u domain.Update) error {
				return c.Send(context.WithoutCancel(ctx), id, u)
			}}
		}, "client-cancelled-send"},
		{"queues without bound", func(c *memoryClient) ports.Client {
			return mutantClient{memoryClient: c, send: func(ctx context.Context, id domain.SessionID, u domain.Update) error {
				select {
				case <-c.stalled:
					return nil
				default:
					return c.Send(ctx, id, u)
				}
			}}
		}, "client-slow"},
		{"succeeds after the client has gone", func(c *memoryClient) ports.Client {
			return mutantClient{memoryClient: c, send: func(ctx context.Context, id domain.SessionID, u domain.Update) error {
				select {
				case <-c.gone:
					return nil
				default:
					return c.Send(ctx, id, u)
				}
			}}
		}, "client-gone-send"},
		{"forgets what the client offers", func(c *memoryClient) ports.Client {
			return mutantClient{memoryClient: c, info: func() domain.ClientInfo { return domain.ClientInfo{} }}
		}, "client-info"},
		{"offers files to all", func(c *memoryClient) ports.Client { return alwaysFiles{c} }, "client-no-files"},
		{"asks with a bare title", asking(func(q *domain.PermissionRequest) { q.Call.Content = nil }), "client-ask-shown"},
		{"hides an option", asking(func(q *domain.PermissionRequest) { q.Options = q.Options[:3] }), "client-ask-shown"},
		{"takes always for once", deciding(func(_ domain.PermissionRequest, d domain.Decision, err error) (domain.Decision, error) {
			d.Option = strings.ReplaceAll(d.Option, "always", "once")
			return d, err
		}), "client-ask-selected"},
		{"asks before what was sent before", func(c *memoryClient) ports.Client {
			return mutantClient{memoryClient: c, send: func(ctx context.Context, id domain.SessionID, u domain.Update) error {
				if _, ok := u.(domain.CallOpened); !ok {
					return c.Send(ctx, id, u)
				}
				go func() {
					time.Sleep(10 * time.Millisecond)
					_ = c.Send(ctx, id, u)
				}()
				return nil
			}}
		}, "client-ask-order"},
		{"believes any option", deciding(func(_ domain.PermissionRequest, d domain.Decision, err error) (domain.Decision, error) {
			if err == nil && d.Outcome == domain.Unanswered {
				return yes, nil
			}
			return d, err
		}), "client-ask-unknown"},
		{"takes an error for a yes", deciding(func(_ domain.PermissionRequest, d domain.Decision, err error) (domain.Decision, error) {
			if d.Note != "" {
				return yes, err
			}
			return d, err
		}), "client-ask-fail"},
		{"gives no reason", deciding(func(_ domain.PermissionRequest, d domain.Decision, err error) (domain.Decision, error) {
			d.Note = ""
			return d, err
		}), "client-ask-garbled"},
		{"takes cancelled for a refusal", deciding(func(_ domain.PermissionRequest, d domain.Decision, err error) (domain.Decision, error) {
			if d.Outcome == domain.Withdrawn {
				return domain.Decision{Note: "refused"}, err
			}
			return d, err
		}), "client-ask-withdrawn"},
		{"hides the cause", deciding(func(_ domain.PermissionRequest, d domain.Decision, err error) (domain.Decision, error) {
			if err != nil {
				return d, context.Canceled
			}
			return d, nil
		}), "client-ask-context"},
		{"waits for the answer after its context ended", func(c *memoryClient) ports.Client {
			return mutantClient{memoryClient: c, ask: func(ctx context.Context, q domain.PermissionRequest) (domain.Decision, error) {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hangLimit*3/4)
				defer cancel()
				return c.Ask(ctx, q)
			}}
		}, "client-ask-context"},
		{"gives an answer to whoever waits", func(c *memoryClient) ports.Client { return mixedAnswers(c) }, "client-ask-late"},
		{"gives the first answer to the first question", func(c *memoryClient) ports.Client { return mixedAnswers(c) }, "client-ask-several"},
		{"takes a disconnect for a yes", deciding(func(_ domain.PermissionRequest, d domain.Decision, err error) (domain.Decision, error) {
			if err != nil {
				return yes, nil
			}
			return d, err
		}), "client-ask-gone"},
		{"answers for a client that has gone", deciding(func(_ domain.PermissionRequest, d domain.Decision, err error) (domain.Decision, error) {
			return d, nil
		}), "client-ask-after-gone"},
	}
	for _, m := range cases {
		t.Run(m.fault, func(t *testing.T) {
			var failures []string
			synctest.Test(t, func(t *testing.T) { // what never arrives costs no time
				failures = Record(t, func(tb TB) { Client(tb, memoryHarness(m.wrap)) })
			})
			if !slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(f, m.kills+":") }) {
				t.Errorf("%s does not notice; failed: %q", m.kills, failures)
			}
		})
	}
}

// alwaysFiles offers files whatever the client said.
type alwaysFiles struct{ *memoryClient }

func (alwaysFiles) Files() (ports.Files, bool) { return nil, true }

// mixedAnswers is a client that keeps one line of answers for all questions.
func mixedAnswers(c *memoryClient) ports.Client {
	shared := make(chan reply, 16)
	return mutantClient{memoryClient: c, ask: func(ctx context.Context, q domain.PermissionRequest) (domain.Decision, error) {
		c.mu.Lock()
		c.last++
		token := fmt.Sprint("ask-", c.last)
		c.asks[token] = shared
		c.mu.Unlock()
		if err := c.put(ctx, Received{Session: q.Session, Ask: &q, Token: token}); err != nil {
			return domain.Decision{}, err
		}
		select {
		case r := <-shared:
			return r.decision(q.Options), nil
		case <-ctx.Done():
			c.arrived <- Received{Token: token}
			return domain.Decision{}, context.Cause(ctx)
		case <-c.gone:
			return domain.Decision{}, domain.Disconnected
		}
	}}
}
