package turns_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/services/permissions"
	"github.com/berth-dev/berth/core/services/sessions"
	"github.com/berth-dev/berth/core/services/turns"
)

// world is an engine over fakes and a store in memory, with one session open.
type world struct {
	t        *testing.T
	store    *store
	sessions *sessions.Service
	engine   *turns.Engine
	client   *client
	model    *model
	models   *models
	blobs    *blobs
	box      *toolbox
	observer *observer
	told     *told
	agents   *agents
	id       domain.SessionID
	turns    []*running
}

// askLimit is how long a permission question waits for the person.
const askLimit = time.Hour

// lastID is shared by all worlds: a journal of one may be read in another.
var lastID atomic.Int64

func newWorld(t *testing.T, tools ...ports.Tool) *world {
	t.Helper()
	return newWorldWith(t, 0, tools...)
}

// newWorldWith is a world in which a lost client is waited for.
func newWorldWith(t *testing.T, grace time.Duration, tools ...ports.Tool) *world {
	t.Helper()
	w := &world{
		t: t, store: &store{Store: memory.New(time.Now)}, client: &client{}, model: &model{}, blobs: &blobs{},
		box: &toolbox{tools: tools}, observer: &observer{}, told: &told{},
		agents: &agents{agent: domain.Agent{
			Alias: "default", Enabled: true, Model: domain.ModelRef{Provider: "test", Model: "one"}, Workspace: "/agent",
			Policy: domain.Policy{Level: domain.LevelSupervised}, MaxTurnRequests: 10,
		}},
	}
	w.models = &models{model: w.model}
	w.model.play(says("hello"))
	ids := func() string { return fmt.Sprintf("id-%d", lastID.Add(1)) }
	w.sessions = sessions.New(sessions.Params{
		Config:   sessions.Config{MaxSessions: 10, QueueLimit: 2, IdleTimeout: time.Hour, Grace: grace},
		Sessions: w.store, Journal: w.store, Leases: w.store, Durable: func() bool { return true },
		Agents: w.agents, Models: w.models, Roots: roots{}, Blobs: w.blobs, Tools: []ports.ToolSource{w.box}, Sandbox: w.told,
		Observer: w.observer, Clock: time.Now, IDs: ids,
	})
	w.engine = turns.New(turns.Params{
		Sessions: w.sessions, Permissions: permissions.New(w.observer, time.Now, askLimit), Models: w.models, Ledger: w.store, Blobs: w.blobs,
		Instructions: w.told, Sandbox: w.told,
		Observer: w.observer, Clock: time.Now, IDs: ids,
	})
	opened, err := w.sessions.New(t.Context(), w.client, domain.NewSession{Dirs: domain.Directories{Cwd: "/project"}})
	if err != nil {
		t.Fatalf("open the session: %v", err)
	}
	w.id = opened.Session.ID
	return w
}

// bubble runs a test with a world in a synctest bubble. At its end everything
// is shut down; a goroutine that is left fails the test.
func bubble(t *testing.T, tools []ports.Tool, fn func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tools...)
		fn(w)
		w.shutdown()
	})
}

func (w *world) shutdown() {
	w.t.Helper()
	if err := w.sessions.Shutdown(w.t.Context(), domain.ProcessEnding); err != nil {
		w.t.Errorf("shutdown: %v", err)
	}
	synctest.Wait()
	for _, r := range w.turns {
		if !r.ended() {
			w.t.Errorf("the prompt %q was never answered", r.text)
		}
	}
	if left := w.box.left(); left != 0 {
		w.t.Errorf("%d toolsets are left open", left)
	}
}

// running is one prompt on its way.
type running struct {
	w       *world
	text    string
	cancel  context.CancelCauseFunc // of the request
	done    chan struct{}
	outcome domain.TurnOutcome
	err     error
	at      time.Time // of the answer
	told    int       // updates before the answer
}

// begin admits a prompt and starts its task.
func (w *world) begin(text string) *running {
	w.t.Helper()
	r, err := w.tryBegin(text)
	if err != nil {
		w.t.Fatalf("prompt %q: %v", text, err)
	}
	return r
}

func (w *world) beginBlocks(blocks []domain.Block) *running {
	w.t.Helper()
	r, err := w.tryBlocks(domain.Prompt{Blocks: blocks})
	if err != nil {
		w.t.Fatalf("begin: %v", err)
	}
	return r
}

func (w *world) tryBegin(text string) (*running, error) {
	return w.tryBlocks(domain.Prompt{Blocks: []domain.Block{domain.Text{Text: text}}, Queue: true})
}

func (w *world) tryBlocks(p domain.Prompt) (*running, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	run, err := w.engine.Begin(ctx, w.client, w.id, p)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	r := &running{w: w, text: domain.PromptText(p.Blocks), cancel: cancel, done: make(chan struct{})}
	w.turns = append(w.turns, r)
	go func() {
		defer close(r.done)
		defer cancel(nil)
		outcome, err := run()
		r.at, r.told = time.Now(), len(w.client.log())
		r.outcome, r.err = outcome, err
	}()
	return r, nil
}

func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// wait returns the stop; a failure of the turn fails the test.
func (r *running) wait() domain.Stop {
	r.w.t.Helper()
	<-r.done
	if r.err != nil {
		r.w.t.Fatalf("prompt %q failed: %v", r.text, r.err)
	}
	return r.outcome.Stop
}

func (r *running) want(stop domain.Stop) {
	r.w.t.Helper()
	if got := r.wait(); got != stop {
		r.w.t.Errorf("prompt %q ended with %v, want %v", r.text, got, stop)
	}
}

// stop cancels the session's turns as session/cancel does.
func (w *world) stop() bool { return w.engine.Cancel(w.client, w.id, domain.CancelledByClient) }

// records reads the session's journal.
func (w *world) records() []domain.Record {
	w.t.Helper()
	var recs []domain.Record
	for e, err := range w.store.Records(context.Background(), w.id, 0) {
		if err != nil {
			w.t.Fatalf("read the journal: %v", err)
		}
		recs = append(recs, e.Record)
	}
	return recs
}

// check demands what must hold whenever every prompt was answered: the client
// was told a whole story and nothing after an answer, and the journal is
// closed, valid for a model, and replays the same story.
func (w *world) check() {
	w.t.Helper()
	told := w.client.log()
	if err := wholeStory(told); err != nil {
		w.t.Errorf("live: %v\n%s", err, show(told))
	}
	last := 0
	for _, r := range w.turns {
		if r.ended() {
			last = max(last, r.told)
		}
	}
	if len(told) > last {
		w.t.Errorf("told after the last answer: %s", show(told[last:]))
	}
	recs := w.records()
	conv := domain.NewConversation(0)
	var replayed []domain.Update
	for i, r := range recs {
		conv.Add(domain.Entry{Seq: domain.Seq(i + 1), Record: r})
		replayed = append(replayed, domain.Replay(r)...)
	}
	if open := conv.Settle(); len(open) > 0 {
		w.t.Errorf("the journal is left open: %+v", open)
	}
	if err := wholeStory(replayed); err != nil {
		w.t.Errorf("replay: %v\n%s", err, show(replayed))
	}
	if live, stored := words(told), words(replayed); live != stored {
		w.t.Errorf("live and replay differ:\nlive:   %s\nreplay: %s", live, stored)
	}
	if err := eachEndsOnce(recs); err != nil {
		w.t.Error(err)
	}
}

// eachEndsOnce demands one end for each turn of a journal, before the next
// turn begins.
func eachEndsOnce(recs []domain.Record) error {
	open, ended := domain.TurnID(""), map[domain.TurnID]bool{}
	for i, r := range recs {
		if said, ok := r.(domain.UserSaid); ok {
			if open != "" {
				return fmt.Errorf("record %d begins turn %s while %s is open", i, said.Turn, open)
			}
			open = said.Turn
		}
		if end, ok := r.(domain.TurnFinished); ok {
			if ended[end.Turn] || end.Turn != open {
				return fmt.Errorf("record %d ends turn %s, open is %q", i, end.Turn, open)
			}
			ended[end.Turn], open = true, ""
		}
	}
	if open != "" {
		return fmt.Errorf("turn %s has no end", open)
	}
	return nil
}

// wholeStory demands that calls are introduced once before they are changed,
// move forward only, and end once.
func wholeStory(ups []domain.Update) error {
	order := map[domain.CallStatus]int{domain.CallPending: 0, domain.CallInProgress: 1, domain.CallCompleted: 2, domain.CallFailed: 2}
	status := map[domain.CallID]domain.CallStatus{}
	for _, u := range ups {
		if opened, ok := u.(domain.CallOpened); ok {
			if _, again := status[opened.ID]; again {
				return fmt.Errorf("call %s is introduced twice", opened.ID)
			}
			status[opened.ID] = opened.Status
		}
		if changed, ok := u.(domain.CallChanged); ok {
			now, known := status[changed.ID]
			switch {
			case !known:
				return fmt.Errorf("call %s is changed before it was introduced", changed.ID)
			case now.Final():
				return fmt.Errorf("call %s is changed after its end", changed.ID)
			case changed.Status != "" && order[changed.Status] <= order[now]:
				return fmt.Errorf("call %s goes from %s to %s", changed.ID, now, changed.Status)
			}
			if changed.Status != "" {
				status[changed.ID] = changed.Status
			}
		}
	}
	for id, s := range status {
		if !s.Final() {
			return fmt.Errorf("call %s is left %s", id, s)
		}
	}
	return nil
}

// words is what a person sees of a history: texts by message, calls with their
// end, in order of first appearance. Marks of failed turns are left out: they
// are only ever replayed.
func words(ups []domain.Update) string {
	var order []string
	text := map[string]string{}
	add := func(key, s string) {
		if _, known := text[key]; !known {
			order = append(order, key)
		}
		text[key] += s
	}
	for _, u := range ups {
		switch u := u.(type) {
		case domain.AgentText:
			if !strings.HasSuffix(string(u.ID), "-end") {
				add(string(u.ID), u.Text)
			}
		case domain.AgentThought:
			add(string(u.ID), "("+u.Text+")")
		case domain.CallOpened:
			add(string(u.ID), u.Title)
		case domain.CallChanged:
			if u.Status.Final() {
				add(string(u.ID), " "+string(u.Status)+contentText(u.Content))
			}
		case domain.PlanChanged:
			add("plan", fmt.Sprint(u.Entries))
		}
	}
	var b strings.Builder
	for _, key := range order {
		fmt.Fprintf(&b, "%s: %s\n", key, strings.ReplaceAll(text[key], ")(", ""))
	}
	return b.String()
}

func contentText(list []domain.CallContent) string {
	var b strings.Builder
	for _, c := range list {
		if block, ok := c.(domain.ContentBlock); ok {
			if text, ok := block.Block.(domain.Text); ok {
				b.WriteString(" " + text.Text)
			}
		}
	}
	return b.String()
}

func show(ups []domain.Update) string {
	var b strings.Builder
	for _, u := range ups {
		fmt.Fprintf(&b, "  %T%+v\n", u, u)
	}
	return b.String()
}

// kinds lists the types of updates, runs of one kind as one.
func kinds(ups []domain.Update) string {
	var out []string
	for _, u := range ups {
		name := strings.TrimPrefix(fmt.Sprintf("%T", u), "domain.")
		if changed, ok := u.(domain.CallChanged); ok {
			name = string(changed.Status)
			if name == "" {
				name = "progress"
			}
		}
		out = append(out, name)
	}
	return strings.Join(slices.Compact(out), " ")
}

// count returns how many records of a type the journal holds.
func count[R domain.Record](recs []domain.Record) int {
	n := 0
	for _, r := range recs {
		if _, ok := r.(R); ok {
			n++
		}
	}
	return n
}
