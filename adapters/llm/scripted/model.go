package scripted

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Model plays a script. It is safe for concurrent use.
type Model struct {
	info   domain.ModelInfo
	script Script

	mu       sync.Mutex
	sessions map[domain.SessionID]*played
}

// played is what one session has used up.
type played struct {
	number int // 1-based order of the session's first request
	steps  map[int]bool
	calls  int // made so far, for ids
}

var _ ports.Model = (*Model)(nil)

// New returns a model that plays script from the start for every session.
func New(info domain.ModelInfo, script Script) *Model {
	return &Model{info: complete(info), script: script, sessions: make(map[domain.SessionID]*played)}
}

func complete(info domain.ModelInfo) domain.ModelInfo {
	info.Offline, info.Tools = true, true
	return info
}

// Info describes the model.
func (m *Model) Info() domain.ModelInfo { return m.info }

// Stream plays the next step of the request's session. A session that has no
// step left gets an error coded ProviderRejected.
func (m *Model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		if ctx.Err() != nil {
			yield(nil, cancelled(ctx))
			return
		}
		step, firstCall, err := m.take(req)
		if err != nil {
			yield(nil, err)
			return
		}
		p := player{ctx: ctx, req: req, yield: yield, provider: m.info.Ref.Provider, nextCall: firstCall}
		p.play(step)
	}
}

// take consumes the step a request plays and returns it with the number of
// its first call.
func (m *Model) take(req domain.ModelRequest) (Step, int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[req.Session]
	if s == nil {
		s = &played{number: len(m.sessions) + 1, steps: make(map[int]bool)}
		m.sessions[req.Session] = s
	}
	newest := newestInput(req.Messages)
	for _, always := range []bool{false, true} {
		for i, step := range m.script.Steps {
			g := step.Guard
			if g.Always != always || s.steps[i] || (g.Session != 0 && g.Session != s.number) ||
				!strings.Contains(newest, g.When) {
				continue
			}
			s.steps[i] = !always
			first := s.calls + 1
			for _, mv := range step.Moves {
				if _, ok := mv.(Invoke); ok {
					s.calls++
				}
			}
			return step, first, nil
		}
	}
	return Step{}, 0, domain.Errorf(domain.ProviderRejected,
		"the script has no step left for request %d of session number %d", len(s.steps)+1, s.number)
}

// player plays one step.
type player struct {
	ctx      context.Context
	req      domain.ModelRequest
	yield    func(domain.ModelEvent, error) bool
	provider string
	nextCall int
	calls    []domain.ModelCall
	opaque   *domain.Opaque
}

func (p *player) play(step Step) {
	for _, m := range step.Moves {
		if !p.move(m) {
			return
		}
	}
	reason := domain.FinishStop
	if len(p.calls) > 0 {
		reason = domain.FinishCalls
	}
	p.finish(reason)
}

// emit passes one event on, unless the request was cancelled meanwhile. It
// reports whether the step goes on.
func (p *player) emit(ev domain.ModelEvent) bool {
	if p.ctx.Err() != nil {
		p.yield(nil, cancelled(p.ctx))
		return false
	}
	return p.yield(ev, nil)
}

// move plays one move and reports whether the step goes on.
func (p *player) move(m Move) bool {
	switch m := m.(type) {
	case Say:
		return p.emit(domain.TextDelta(m))
	case Think:
		return p.emit(domain.ThoughtDelta(m))
	case Chunks:
		return p.chunks(m)
	case Invoke:
		id := m.ID
		if id == "" {
			id = fmt.Sprintf("scripted_%d", p.nextCall)
		}
		p.nextCall++
		p.calls = append(p.calls, domain.ModelCall{ProviderID: id, Name: m.Name, Args: []byte(m.Args)})
	case Report:
		return p.emit(domain.UsageReported{Usage: m.Usage, Cost: m.Cost})
	case Fingerprint:
		return p.emit(domain.TextDelta{Text: fingerprint(p.req)})
	case Delay:
		return p.sleep(m.For)
	case Stall:
		time.Sleep(m.For)
	case Retry:
		return p.emit(domain.Retrying(m)) && p.sleep(m.Wait)
	case Keep:
		p.opaque = &domain.Opaque{Provider: p.provider, Data: []byte(m.Data)}
	case Expect:
		return p.expect(m)
	case Finish:
		p.finish(m.Reason)
		return false
	case Fail:
		p.yield(nil, &domain.Error{Code: m.Code, Msg: m.Msg, RetryAfter: m.After})
		return false
	case Hang:
		<-p.ctx.Done()
		p.yield(nil, cancelled(p.ctx))
		return false
	}
	return true
}

func (p *player) chunks(m Chunks) bool {
	for range m.Count {
		if m.Every > 0 && !p.sleep(m.Every) {
			return false
		}
		if !p.emit(domain.TextDelta{Text: m.Text}) {
			return false
		}
	}
	return true
}

func (p *player) finish(reason domain.FinishReason) {
	if reason == domain.FinishCalls || reason == domain.FinishStop {
		for _, c := range p.calls {
			if !p.emit(domain.CallRequested{Call: c}) {
				return
			}
			reason = domain.FinishCalls
		}
	}
	p.emit(domain.Finish{Reason: reason, Opaque: p.opaque})
}

func (p *player) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		p.yield(nil, cancelled(p.ctx))
		return false
	}
}

func (p *player) expect(m Expect) bool {
	if strings.Contains(requestText(p.req), m.Text) != m.Not {
		return true
	}
	verb := "does not hold"
	if m.Not {
		verb = "holds"
	}
	p.yield(nil, domain.Errorf(domain.ProviderRejected, "the request %s %q, against the script", verb, m.Text))
	return false
}

// newestInput is the text of the user's newest message.
func newestInput(msgs []domain.ModelMessage) string {
	for i := len(msgs) - 1; i >= 0; i-- {
		if in, ok := msgs[i].(domain.UserInput); ok {
			return domain.PromptText(in.Blocks)
		}
	}
	return ""
}

// fingerprint tells requests apart that differ in anything but the newest
// prompt and what follows it.
func fingerprint(req domain.ModelRequest) string {
	last := len(req.Messages)
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if _, ok := req.Messages[i].(domain.UserInput); ok {
			last = i
			break
		}
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %v\n", req.System, req.Tools)
	for _, m := range req.Messages[:last] {
		if r, ok := m.(domain.ModelReply); ok && r.Opaque != nil {
			fmt.Fprintf(sum, "%v\n", *r.Opaque)
			r.Opaque = nil // an address would be told
			m = r
		}
		fmt.Fprintf(sum, "%T %v\n", m, m)
	}
	return fmt.Sprintf("%d messages, %x", last, sum.Sum(nil)[:8])
}

// requestText is all a request tells a model, one part a line.
func requestText(req domain.ModelRequest) string {
	parts := []string{req.System}
	for _, msg := range req.Messages {
		switch msg := msg.(type) {
		case domain.UserInput:
			parts = append(parts, domain.PromptText(msg.Blocks))
		case domain.ModelReply:
			parts = append(parts, msg.Text)
			for _, c := range msg.Calls {
				parts = append(parts, c.Name+" "+string(c.Args))
			}
		case domain.ToolOutput:
			parts = append(parts, msg.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func cancelled(ctx context.Context) error {
	return domain.WrapError(domain.Cancelled, context.Cause(ctx), "the scripted model was cancelled")
}
