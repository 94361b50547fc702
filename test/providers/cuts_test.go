package providers

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/core/ports/porttest"
)

var cutEvery = flag.Int("cut-every", 0, "cut replies at every n-th byte instead of at a few places")

// cutPlaces is about how many places a reply is cut at for each way of
// breaking off, unless a flag says otherwise.
const cutPlaces = 10

// breaks are the ways in which an answer breaks off.
var breaks = [...]string{"ends", "breaks", "falls silent"}

// severed plays a recorded answer up to a byte and then breaks off. Requests
// beyond it go to the server it stands before.
type severed struct {
	http.Handler
	mu     sync.Mutex
	head   http.Header
	body   []byte
	armed  bool          // the next answer is to be cut
	at     int           // after how many bytes
	how    string        // one of breaks
	cut    chan struct{} // gets a token when a silence has begun
	starts int           // requests since it was armed
}

func (s *severed) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost || strings.HasSuffix(req.URL.Path, "/show") { // a document about the model
		s.Handler.ServeHTTP(w, req)
		return
	}
	s.mu.Lock()
	armed, body := s.armed, s.body
	s.armed = false
	s.starts++
	s.mu.Unlock()
	switch {
	case body == nil:
		rec := &recorder{ResponseWriter: w}
		s.Handler.ServeHTTP(rec, req)
		s.mu.Lock()
		s.head, s.body = w.Header().Clone(), rec.body.Bytes()
		s.mu.Unlock()
		return
	case !armed:
		s.Handler.ServeHTTP(w, req)
		return
	}
	_, _ = io.Copy(io.Discard, req.Body) // else the server does not notice that the client has gone
	for name, values := range s.head {
		w.Header()[name] = values
	}
	_, _ = w.Write(body[:s.at])
	_ = http.NewResponseController(w).Flush()
	switch s.how {
	case "breaks":
		panic(http.ErrAbortHandler)
	case "falls silent":
		s.cut <- struct{}{}
		<-req.Context().Done()
	}
}

// arm has the next answer cut.
func (s *severed) arm(at int, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed, s.at, s.how, s.starts = true, at, how, 0
}

func (s *severed) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// closing is what stands in the part of a wire's answer that makes it
// complete.
func closing(wire string) string {
	return map[string]string{
		"anthropic": "message_stop", "openai-responses": `"response.completed"`, "gemini": `"finishReason"`,
		"ollama": `"done":true`, "bedrock": "messageStop",
	}[wire]
}

// TestCuts breaks a reply of a thought, a text and a call off at many places,
// in every way, with every provider type: no call of it runs, no turn ends
// well, what was shown is shown once more by a load and nothing else, and the
// session goes on.
func TestCuts(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			called := porttest.Reply{Signed: true, Parts: []porttest.ReplyPart{
				porttest.SendThought("Was für ein "), porttest.SendThought("Schiff? ⛵"), porttest.SendText("Ich lese „"), porttest.SendText("a.txt“ 🚢. "),
				porttest.SendCall{ID: "call_1", Name: "read_file", Args: `{"path":"a.txt"}`, Pieces: 3},
			}}
			replies := []porttest.Reply{called}
			for range 1 << 16 {
				replies = append(replies, porttest.Reply{Parts: text("Done.")})
			}
			s := &severed{cut: make(chan struct{}, 1)}
			r := newRigOf(t, d, replies, 0, func(h http.Handler) http.Handler { s.Handler = h; return s })
			if stop := r.turn("go"); stop != "end_turn" {
				t.Fatal(stop)
			}
			whole := r.seen("agent_message_chunk")
			whole = strings.TrimSuffix(whole, "Done.")
			mark := closing(d.Type)
			if mark == "" {
				mark = `"finish_reason":"`
			}
			end := bytes.LastIndex(s.body, []byte(mark))
			if end < 0 {
				t.Fatalf("the answer holds no %s:\n%s", mark, s.body)
			}
			tried, complete := 0, 0
			for _, how := range breaks {
				for _, at := range places(len(s.body), end) {
					if how == "falls silent" && at > end {
						continue // what is complete may be waited for
					}
					if r.severedTurn(s, at, how, whole, at <= end) {
						complete++
					}
					if tried++; t.Failed() {
						t.Fatalf("an answer that %s after %d of %d bytes: …%q", how, at, len(s.body), tail(s.body[:at]))
					}
				}
			}
			if complete == 0 {
				t.Error("no answer was complete, not even a whole one")
			}
			t.Logf("%d bytes, cut %d times, %d of them complete", len(s.body), tried, complete)
			for _, p := range r.server.Problems() {
				if d.Type == "gemini" && strings.Contains(p, "signed parts") {
					continue // a reply that was cut behind its text looks like the signed one
				}
				t.Errorf("the provider would refuse the request: %s", p)
			}
		})
	}
}

// places are the bytes to cut a body at: some all over it, where what makes it
// complete begins, and its end.
func places(size, end int) []int {
	step := max(1, size/cutPlaces)
	if *cutEvery > 0 {
		step = *cutEvery
	}
	var at []int
	for i := 0; i <= size; i++ {
		if i%step == 0 || i == size || i == end {
			at = append(at, i)
		}
	}
	return at
}

// failureMark begins what a load says of a turn that failed, behind what was
// shown of it.
const failureMark = "[This turn "

func tail(b []byte) []byte { return b[max(0, len(b)-60):] }

// severedTurn runs a turn in a session of its own whose first answer is cut,
// and reports whether the answer was taken for complete.
func (r *rig) severedTurn(s *severed, at int, how, whole string, must bool) (complete bool) {
	r.t.Helper()
	r.renew()
	s.arm(at, how)
	said := make(chan string, 1)
	go func() { said <- r.turn("go") }()
	want := "PROVIDER_ERROR (-32603)"
	var stop string
	if how == "falls silent" {
		want = "cancelled"
		<-s.cut
		if err := r.client.Cancel(r.t.Context(), r.session); err != nil {
			r.t.Fatal(err)
		}
	}
	stop = <-said
	calls, _ := r.count("tool_call")
	shown, thoughts := r.seen("agent_message_chunk"), r.seen("agent_thought_chunk")
	complete = stop == "end_turn"
	switch {
	case complete && must:
		r.t.Errorf("the turn ended with %s", stop)
	case complete && (calls != 1 || shown != whole+"Done." || s.asked() != 2):
		r.t.Errorf("a complete answer: %d calls, %q shown, %d requests", calls, shown, s.asked())
	case !complete && (stop != want || calls != 0 || s.asked() != 1 || !strings.HasPrefix(whole, strings.TrimSuffix(shown, "\uFFFD"))):
		r.t.Errorf("the turn ended with %s (want %s): %d calls, %q shown, %d requests", stop, want, calls, shown, s.asked())
	}
	got, _, _ := strings.Cut(r.reload(), failureMark)
	if got != shown || r.seen("agent_thought_chunk") != thoughts {
		r.t.Errorf("a load shows %q and the thought %q, but %q and %q were shown", got, r.seen("agent_thought_chunk"), shown, thoughts)
	}
	if n, _ := r.count("tool_call"); n != calls {
		r.t.Errorf("a load shows %d calls, want %d", n, calls)
	}
	if stop := r.turn("go on"); stop != "end_turn" {
		r.t.Errorf("the next turn ended with %s", stop)
	}
	return complete
}

// renew closes the session and goes on in a new one.
func (r *rig) renew() {
	r.t.Helper()
	if _, err := r.client.Call(r.t.Context(), "session/close", map[string]any{"sessionId": r.session}); err != nil {
		r.t.Fatal(err)
	}
	session, err := r.client.NewSession(r.t.Context(), r.project, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for len(r.gone) > 0 {
		<-r.gone // nobody else does, and it has an end
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session, r.updates = session, nil
}
