package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// book is what is open between the two ends.
type book struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and made anew when a request is answered
	requests map[string]*request
	last     int // number of the newest request

	questions map[string]*question // of the gateway, by the id the editor knows
	aliases   int

	sessions map[string]*session
	loading  map[string]*session // that are being loaded or resumed
	reset    bool                // --reset-session was used

	begun    chan struct{} // closed by the first initialize
	started  bool          // it has come
	agreed   *request      // the initialize that the gateway agreed to
	early    []byte        // the result that the editor was given before the gateway's
	offer    offer
	signedIn json.RawMessage // params of the authenticate that succeeded
}

// request is one of the editor's that is not answered.
type request struct {
	id        jsonrpc.ID
	method    string
	session   string
	frame     []byte          // as it goes to the gateway
	params    json.RawMessage // likewise
	number    int
	sent      atomic.Bool // W has taken it
	cancelled atomic.Bool
	answered  bool   // by the bridge; what the gateway says is not for the editor
	turn      string // of a prompt, where the gateway's history has shown it
	place     int    // of that turn in the history
	missing   bool   // a prompt that the history shows not to have begun
	waits     bool   // the gateway was asked when the turn ends, not for a turn
	awaits    bool   // the newest turn's end, whose prompt this may be
	again     int    // how often it was sent again
}

// session is one that the editor has open.
type session struct {
	params json.RawMessage // of the request that opened it
	cwd    string
	seen   seen
	replay *replay // what comes now was sent before, or may have been
	// turns are those that ran or waited when the session was taken over.
	turns []string
	own   bool     // they are those of the editor's prompts
	ended []string // turns that prompts were answered with, the newest last
	// asked are the newest prompts in the history that came then; whole says
	// that it was all of it.
	asked []asked
	whole bool
}

// offer is what the gateway can do that the bridge makes use of.
type offer struct{ load, resume, await bool }

func (k *book) init() {
	k.changed, k.begun = make(chan struct{}), make(chan struct{})
	k.requests, k.questions = map[string]*request{}, map[string]*question{}
	k.sessions, k.loading = map[string]*session{}, map[string]*session{}
}

// add notes a request of the editor's. ok is false when its id is taken.
func (k *book) add(m jsonrpc.Message, frame []byte) (r *request, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := m.ID.Key()
	if m.ID != jsonrpc.NullID && k.requests[key] != nil {
		return nil, false
	}
	k.last++
	params := at(frame, "params")
	r = &request{
		id: m.ID, method: m.Method, session: text(at(params, "sessionId")), frame: frame, params: params, number: k.last,
	}
	if r.session == "" {
		r.session = text(at(params, "session_id"))
	}
	if m.ID != jsonrpc.NullID {
		k.requests[key] = r
	}
	switch m.Method {
	case "session/load", "session/resume":
		if k.sessions[r.session] == nil && k.loading[r.session] == nil {
			k.loading[r.session] = &session{}
		}
	case "session/prompt":
		if s := k.sessions[r.session]; s != nil {
			s.seen.place.turn()
			s.seen.prompt = r.number
		}
	}
	if m.Method == "initialize" {
		if !k.started {
			close(k.begun)
		}
		k.started = true
	}
	return r, true
}

// nothingBegun reports whether the editor has said nothing yet.
func (k *book) nothingBegun() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.started
}

// find returns an open request.
func (k *book) find(id jsonrpc.ID) *request {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests[id.Key()]
}

// answered takes a request off the book; nil when there is none.
func (k *book) answered(id jsonrpc.ID) *request {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.answeredLocked(id)
}

func (k *book) answeredLocked(id jsonrpc.ID) *request {
	r := k.requests[id.Key()]
	if r != nil {
		delete(k.requests, id.Key())
		close(k.changed)
		k.changed = make(chan struct{})
	}
	return r
}

// idle waits until no request is open, or ctx ends, which it reports as false.
func (k *book) idle(ctx context.Context) bool {
	for {
		k.mu.Lock()
		n, changed := len(k.requests), k.changed
		k.mu.Unlock()
		if n == 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// open returns the requests that are open, the oldest first.
func (k *book) open() []*request {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]*request, 0, len(k.requests))
	for _, r := range k.requests {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *request) int { return cmp.Compare(a.number, b.number) })
	return list
}

// prompting returns the sessions with an open prompt.
func (k *book) prompting() []string {
	var list []string
	for _, r := range k.open() {
		if r.method == "session/prompt" && !slices.Contains(list, r.session) {
			list = append(list, r.session)
		}
	}
	return list
}

// cancelled notes that the editor has cancelled the requests that are.
func (k *book) cancelled(are func(*request) bool) {
	for _, r := range k.open() {
		if are(r) {
			r.cancelled.Store(true)
		}
	}
}

// hold notes that the editor has a session open.
func (k *book) hold(id string, params json.RawMessage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holdLocked(id, params)
}

// loaded notes how a load or resume ended.
func (k *book) loaded(r *request, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.method != "session/load" && r.method != "session/resume" {
		return
	}
	s := k.loading[r.session]
	delete(k.loading, r.session)
	if s != nil && ok && k.sessions[r.session] == nil {
		k.sessions[r.session] = s
	}
	if ok {
		k.holdLocked(r.session, r.params)
	} else if s := k.sessions[r.session]; s != nil {
		s.replay = nil
	}
}

func (k *book) holdLocked(id string, params json.RawMessage) {
	s := k.sessions[id]
	if s == nil {
		s = &session{}
		k.sessions[id] = s
	}
	s.params, s.replay = params, nil
	for _, name := range []string{"cwd", "workspaceDir", "workspace_dir"} {
		if cwd := text(at(params, name)); cwd != "" {
			s.cwd = cwd
			break
		}
	}
}

func (k *book) forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sessions, id)
}

// held returns the ids of the sessions that the editor has open.
func (k *book) held() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]string, 0, len(k.sessions))
	for id := range k.sessions {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

func (k *book) cwdOf(id string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sessions[id]; s != nil {
		return s.cwd
	}
	return ""
}

// takeReset reports whether this session/new is the one that resets.
func (k *book) takeReset(wanted bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := !k.reset
	k.reset = true
	return wanted && first
}
