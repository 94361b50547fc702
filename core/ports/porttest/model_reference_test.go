package porttest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// The limits of the reference model.
const (
	refRetries   = 2
	refFirstByte = 2 * time.Minute
	refIdle      = 90 * time.Second
	refKey       = "canary-0123456789"
)

// flaws are ways in which the reference model can be made worse.
type flaws struct {
	stream func(iter.Seq2[domain.ModelEvent, error]) iter.Seq2[domain.ModelEvent, error]

	attempts    int  // retries, in place of refRetries, when not 0
	retryAll    bool // whatever the refusal
	retryShown  bool // after something was passed on
	noWait      bool // between attempts
	believeWait bool // whatever was asked for
	deafWait    bool // a cancel does not end a wait between attempts
	deaf        bool // a cancel does not end the wait for an event
	late        bool // each event is held back until the next one
	leak        bool // an exchange is not closed when it is left or cancelled
	unlimited   bool // no limits of time
	total       bool // the idle limit counts from the beginning
	eager       bool // a request is sent although the context has ended
	verbatim    bool // words of the provider are shown as they are
	uncoded     bool // errors carry no code
	wordless    bool // the provider's words are lost
	keyless     bool // a wrong key is not told from a missing one
	silentCut   bool // a cut stream is a complete one
	callsAnyway bool // calls of a reply that is not complete are requested
	sameID      bool // calls are told apart by their ids alone
	mend        bool // broken arguments are replaced by {}
	rawEmpty    bool // empty arguments stay empty
	badText     bool // an error inside an answer is skipped
	forgetful   bool // opaque data is not given back
	generous    bool // opaque data is given to providers that did not make it
	blind       bool // pictures are not sent
}

// reference is a model without a wire: it plays replies itself.
type reference struct {
	flaws   flaws
	replies []Reply
	mu      sync.Mutex
	asked   int
	running int
	signed  int    // replies whose opaque data is wanted back
	sent    string // the newest request, as its wire would hold it
	wrong   []string
}

func serveReference(f flaws) func(TB, ...Reply) Served {
	return func(_ TB, replies ...Reply) Served {
		m := &reference{flaws: f, replies: replies}
		return Served{Model: m, Key: refKey, Requests: m.requests, Running: m.open, Problems: m.problems, Sent: m.body}
	}
}

func referenceHarness(f flaws) ModelHarness {
	return ModelHarness{Serve: serveReference(f), Retries: refRetries, FirstByte: refFirstByte, Idle: refIdle}
}

var _ ports.Model = (*reference)(nil)

func (m *reference) requests() int { m.mu.Lock(); defer m.mu.Unlock(); return m.asked }
func (m *reference) open() int     { m.mu.Lock(); defer m.mu.Unlock(); return m.running }

func (m *reference) body() string { m.mu.Lock(); defer m.mu.Unlock(); return m.sent }

func (m *reference) problems() []string { m.mu.Lock(); defer m.mu.Unlock(); return m.wrong }

func (m *reference) Info() domain.ModelInfo {
	return domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Title: "reference", Images: true}
}

// send notes what a wire would carry of a request.
func (m *reference) send(req domain.ModelRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = ""
	back := 0
	for _, msg := range req.Messages {
		switch msg := msg.(type) {
		case domain.ModelReply:
			if msg.Opaque == nil || m.flaws.forgetful || msg.Opaque.Provider != "fake" && !m.flaws.generous {
				continue
			}
			m.sent += string(msg.Opaque.Data)
			back++
		case domain.ToolOutput:
			for _, b := range msg.Media {
				if p, ok := b.(domain.Image); ok && !m.flaws.blind {
					m.sent += base64.StdEncoding.EncodeToString(p.Data)
				}
			}
		case domain.UserInput:
		}
	}
	if back < m.signed {
		m.wrong = append(m.wrong, "a signature is missing")
	}
}

func (m *reference) begin() (Reply, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running++
	if m.asked++; m.asked > len(m.replies) {
		return Reply{}, false
	}
	return m.replies[m.asked-1], true
}

func (m *reference) end() { m.mu.Lock(); defer m.mu.Unlock(); m.running-- }

func (m *reference) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	seq := func(yield func(domain.ModelEvent, error) bool) {
		m.send(req)
		p := &refStream{m: m, f: m.flaws, ctx: ctx, yield: yield}
		p.run()
	}
	if m.flaws.stream != nil {
		return m.flaws.stream(seq)
	}
	return seq
}

// refStream is one request.
type refStream struct {
	m     *reference
	f     flaws
	ctx   context.Context
	yield func(domain.ModelEvent, error) bool
	begun bool
	left  bool
	held  []domain.ModelEvent
}

// refFailure is why an attempt failed.
type refFailure struct {
	err   *domain.Error
	retry bool
}

func (s *refStream) emit(ev domain.ModelEvent) bool {
	if s.ctx.Err() != nil && !s.f.eager {
		return false
	}
	s.begun = true
	if s.f.late {
		if _, last := ev.(domain.Finish); !last {
			s.held = append(s.held, ev)
			if len(s.held) == 1 {
				return true
			}
			ev, s.held = s.held[0], s.held[1:]
		} else {
			for _, h := range s.held {
				if !s.yield(h, nil) {
					s.left = true
					return false
				}
			}
		}
	}
	s.left = !s.yield(ev, nil)
	return !s.left
}

func (s *refStream) fail(err *domain.Error) {
	if s.f.uncoded {
		s.yield(nil, errors.New(err.Msg))
		return
	}
	s.yield(nil, err)
}

func (s *refStream) cancelled() *domain.Error {
	return domain.WrapError(domain.Cancelled, context.Cause(s.ctx), "cancelled")
}

func (s *refStream) run() {
	if s.ctx.Err() != nil && !s.f.eager {
		s.fail(s.cancelled())
		return
	}
	most := refRetries
	if s.f.attempts != 0 {
		most = max(0, s.f.attempts)
	}
	for n := 1; ; n++ {
		f := s.attempt()
		if s.left || f == nil {
			return
		}
		if s.ctx.Err() != nil {
			s.fail(s.cancelled())
			return
		}
		again := (f.retry || s.f.retryAll) && (!s.begun || s.f.retryShown) && n <= most
		if !again || (f.err.RetryAfter > time.Minute && !s.f.believeWait) {
			s.fail(f.err)
			return
		}
		wait := f.err.RetryAfter
		if s.f.noWait {
			wait = 0
		}
		if !s.yield(domain.Retrying{Attempt: n, Wait: wait, Reason: f.err.Msg}, nil) {
			return
		}
		if !s.sleep(wait, s.f.deafWait) {
			s.fail(s.cancelled())
			return
		}
	}
}

// sleep waits; false when cancelled.
func (s *refStream) sleep(d time.Duration, deaf bool) bool {
	if deaf {
		time.Sleep(d)
		return s.ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-s.ctx.Done():
		return false
	}
}

// attempt plays one reply; nil when it was complete.
func (s *refStream) attempt() *refFailure {
	r, ok := s.m.begin()
	defer func() {
		if !s.f.leak || (s.ctx.Err() == nil && !s.left) {
			s.m.end()
		}
	}()
	if !ok {
		return &refFailure{err: domain.Errorf(domain.ProviderRejected, "more requests than replies")}
	}
	if r.Refusal != nil {
		return s.refused(*r.Refusal)
	}
	var calls []SendCall
	var waited time.Duration
	for _, part := range r.Parts {
		ok := true
		switch part := part.(type) {
		case SendText:
			ok = s.emit(domain.TextDelta{Text: string(part)})
		case SendThought:
			ok = s.emit(domain.ThoughtDelta{Text: string(part)})
		case SendCall:
			calls = append(calls, part)
		case Wait:
			if waited += time.Duration(part); s.f.total && waited > refIdle {
				return &refFailure{err: domain.Errorf(domain.Unavailable, "slow")}
			}
			s.sleep(time.Duration(part), false)
		}
		if !ok || s.ctx.Err() != nil {
			return &refFailure{}
		}
	}
	return s.close(r, calls)
}

func (s *refStream) refused(r Refusal) *refFailure {
	words := r.Words
	for _, secret := range []string{refKey, "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a", samplePrompt, SampleRequest().System} {
		if !s.f.verbatim {
			words = strings.ReplaceAll(words, secret, "***")
		}
	}
	if s.f.wordless {
		words = "something went wrong"
	}
	e := domain.Errorf(r.Kind.Code(), "refused: %s", words)
	if r.Kind == KeyRefused && !s.f.keyless {
		e = e.With("key", "refused")
	}
	if n, err := strconv.ParseFloat(r.RetryAfter, 64); err == nil && n > 0 && n < 1e15 {
		e.RetryAfter = time.Duration(min(n, 1e6)) * time.Second
	} else if at, err := http.ParseTime(r.RetryAfter); err == nil {
		e.RetryAfter = time.Until(at)
	}
	return &refFailure{err: e, retry: r.Kind.Passing()}
}

// close plays the end of a reply.
func (s *refStream) close(r Reply, calls []SendCall) *refFailure {
	unavailable := &refFailure{err: domain.Errorf(domain.Unavailable, "cut"), retry: true}
	reason := domain.FinishStop
	switch r.End {
	case EndComplete:
	case EndLength:
		reason = domain.FinishLength
	case EndRefusal:
		reason = domain.FinishRefusal
	case EndCut, EndBroken, EndMalformed:
		if s.f.callsAnyway {
			s.request(calls)
		}
		if !s.f.silentCut {
			return unavailable
		}
	case EndError:
		if !s.f.badText {
			return s.refused(r.Fault)
		}
	case EndSilent:
		return s.silent()
	}
	if r.Usage != (domain.Usage{}) && !s.emit(domain.UsageReported{Usage: r.Usage}) {
		return &refFailure{}
	}
	if (reason == domain.FinishStop || s.f.callsAnyway) && len(calls) > 0 {
		if f := s.request(calls); f != nil || s.left {
			return f
		}
		if reason == domain.FinishStop {
			reason = domain.FinishCalls
		}
	}
	finish := domain.Finish{Reason: reason}
	if r.Signed {
		finish.Opaque = &domain.Opaque{Provider: "fake", Data: []byte("signature")}
		s.m.mu.Lock()
		s.m.signed++
		s.m.mu.Unlock()
	}
	if !s.emit(finish) {
		return &refFailure{}
	}
	return nil
}

func (s *refStream) silent() *refFailure {
	limit := refFirstByte
	if s.begun {
		limit = refIdle
	}
	if s.f.unlimited {
		limit = 24 * time.Hour
	}
	s.sleep(limit, s.f.deaf)
	return &refFailure{err: domain.Errorf(domain.Unavailable, "silent")}
}

// request emits the calls, all of them whole or none.
func (s *refStream) request(calls []SendCall) *refFailure {
	var out []domain.ModelCall
	seen := make(map[string]bool)
	for _, c := range calls {
		if seen[c.ID] && s.f.sameID {
			continue
		}
		seen[c.ID] = true
		args := c.Args
		if args == "" && !s.f.rawEmpty {
			args = "{}"
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(args), &object); (err != nil || object == nil) && !s.f.rawEmpty && !s.f.callsAnyway {
			if !s.f.mend {
				return &refFailure{err: domain.Errorf(domain.Unavailable, "arguments"), retry: true}
			}
			args = "{}"
		}
		out = append(out, domain.ModelCall{ProviderID: c.ID, Name: c.Name, Args: []byte(args)})
	}
	for _, c := range out {
		if !s.emit(domain.CallRequested{Call: c}) {
			return &refFailure{}
		}
	}
	return nil
}
