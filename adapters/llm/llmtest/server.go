// Package llmtest holds what the tests of all providers share: a network in
// memory, a server that plays replies in a provider's dialect, and the frame
// that such a dialect fills in. The dialects themselves are its children, one
// package each.
package llmtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/core/ports/porttest"
)

// Canary is the key that fake servers want. It has the shape of no real one,
// so only the redaction by value can find it.
const Canary = "canary0123456789abcdef"

// Server is a fake provider. It answers the n-th request with the n-th reply,
// as its dialect writes it, and keeps account of what it was sent. Make one
// with the New function of a dialect.
type Server struct {
	// Check returns what is wrong with a request, "" when nothing is: the
	// method, the path, the key, the model, fields the wire does not have. A
	// wrong request is answered with a status that no provider uses.
	Check func(req *http.Request, body []byte) string
	// Look returns what a strict provider would refuse in a request that is
	// otherwise right, see porttest.Served.Problems. It may be nil. It is
	// called in the order of the requests, one at a time.
	Look func(body []byte) []string
	// Play writes an answer. It returns when the answer is over or when the
	// client has gone.
	Play func(w *Writer, r porttest.Reply, body []byte)
	// Probe answers a request that asks for no reply, such as the list of
	// models, and reports whether it was one. It may be nil.
	Probe func(w http.ResponseWriter, req *http.Request) bool

	replies  []porttest.Reply
	requests atomic.Int32
	running  atomic.Int32
	ended    chan time.Time

	mu       sync.Mutex
	bodies   []string
	problems []string
}

// Replies sets what is answered.
func (s *Server) Replies(replies ...porttest.Reply) *Server {
	s.replies = replies
	return s
}

// Served returns the account of the server for porttest, without a model.
func (s *Server) Served() porttest.Served {
	return porttest.Served{
		Key:      Canary,
		Requests: func() int { return int(s.requests.Load()) },
		Running:  func() int { return int(s.running.Load()) },
		Problems: s.Problems,
		Sent: func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.bodies) == 0 {
				return ""
			}
			return s.bodies[len(s.bodies)-1]
		},
	}
}

// Requests returns how many requests have come.
func (s *Server) Requests() int { return int(s.requests.Load()) }

// Bodies returns the bodies of all requests, in order.
func (s *Server) Bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// Problems returns what a strict provider would have refused so far.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.problems...)
}

// Gone returns a channel that gets the time at which each request ended. Call
// it before the first request.
func (s *Server) Gone() <-chan time.Time {
	s.ended = make(chan time.Time, 64)
	return s.ended
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if s.Probe != nil && s.Probe(w, req) {
		return
	}
	s.running.Add(1)
	defer func() {
		s.running.Add(-1)
		if s.ended != nil {
			s.ended <- time.Now()
		}
	}()
	n := int(s.requests.Add(1))
	body, _ := io.ReadAll(req.Body)
	s.mu.Lock()
	s.bodies = append(s.bodies, string(body))
	s.mu.Unlock()
	if wrong := s.Check(req, body); wrong != "" {
		s.note("request " + req.Method + " " + req.URL.Path + ": " + wrong)
		http.Error(w, "unexpected request: "+wrong, http.StatusTeapot)
		return
	}
	if n > len(s.replies) {
		http.Error(w, fmt.Sprintf("request %d, but there are %d replies", n, len(s.replies)), http.StatusTeapot)
		return
	}
	if s.Look != nil {
		s.mu.Lock()
		s.problems = append(s.problems, s.Look(body)...)
		s.mu.Unlock()
	}
	s.Play(&Writer{ResponseWriter: w, Req: req, Grain: s.replies[n-1].Grain}, s.replies[n-1], body)
}

func (s *Server) note(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, problem)
}

// Writer writes an answer in pieces of the wanted size.
type Writer struct {
	http.ResponseWriter
	Req   *http.Request
	Grain int // bytes at once; 0 for all
}

// Send writes a piece of the answer and flushes it.
func (w *Writer) Send(s string) {
	step := w.Grain
	if step == 0 {
		step = max(1, len(s))
	}
	for len(s) > 0 {
		n := min(step, len(s))
		_, _ = io.WriteString(w.ResponseWriter, s[:n])
		w.Flush()
		s = s[n:]
	}
}

// Flush sends what was written, and the head if nothing was.
func (w *Writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Begin sends the head of a successful answer.
func (w *Writer) Begin(contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
}

// Wait is silent for a while, or until the client has gone.
func (w *Writer) Wait(d porttest.Wait) {
	select {
	case <-time.After(time.Duration(d)):
	case <-w.Req.Context().Done():
	}
}

// Hang is silent until the client has gone.
func (w *Writer) Hang() {
	w.Flush()
	<-w.Req.Context().Done()
}

// Break breaks the connection in an answer that has begun. It does not return.
func (w *Writer) Break() {
	w.Flush()
	panic(http.ErrAbortHandler)
}

// Refuse answers with a status and a body that is the dialect's error object.
func (w *Writer) Refuse(r porttest.Refusal, body string) {
	w.Header().Set("Content-Type", "application/json")
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	w.WriteHeader(r.Kind.Status())
	if r.Stall {
		w.Send(body[:min(len(body), 10)])
		w.Hang()
		return
	}
	w.Send(body)
}

// Pieces cuts s between characters into n pieces of about the same length.
func Pieces(s string, n int) []string {
	runes := []rune(s)
	n = max(1, n)
	out := make([]string, n)
	for i := range n {
		out[i] = string(runes[len(runes)*i/n : len(runes)*(i+1)/n])
	}
	return out
}

// IsToolName reports whether a server takes a name of a tool.
func IsToolName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}
