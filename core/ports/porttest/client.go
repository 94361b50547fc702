package porttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// ClientHarness tells the suite how to make the client under test.
type ClientHarness struct {
	// Connect returns a connected client that offers what info says, and the
	// recording peer at its far end. The suite ends the connection with Leave.
	Connect func(t TB, info domain.ClientInfo) (ports.Client, ClientPeer)
	// WithdrawalRefuses is set where a question answered with "cancelled"
	// counts as refused, and does not end the turn.
	WithdrawalRefuses bool
}

// ClientPeer is the far end of a client: the person's program. It keeps what
// reaches it, in the order in which it came.
type ClientPeer interface {
	// Next returns the next thing that reached the far end, and takes it away.
	// It waits until there is one or ctx ends.
	Next(ctx context.Context) (Received, error)
	// Answer answers a question with an option, offered or not.
	Answer(question Received, option string)
	// Withdraw answers a question with "cancelled".
	Withdraw(question Received)
	// Fail answers a question with an error.
	Fail(question Received)
	// Garble answers a question with something that is no answer.
	Garble(question Received)
	// Stall makes the far end stop reading, for good.
	Stall()
	// Leave ends the connection, as a crash of the far end would.
	Leave()
}

// Received is one thing that reached the far end of a client.
type Received struct {
	// Session is what the thing is about; empty for a question that was taken
	// back.
	Session domain.SessionID
	// Update is an update in domain terms, as far as the protocol tells it.
	Update domain.Update
	// Ask is a question, in the same way.
	Ask *domain.PermissionRequest
	// Token names a question to the peer. An entry with nothing but a Token
	// says that this question was taken back.
	Token string
}

// Client proves a ports.Client: updates arrive complete and in order, and
// nothing but a clear answer of the person lets a call run.
func Client(t TB, h ClientHarness) {
	t.Helper()
	runChecks(t, h, slices.Concat(sendChecks(), askChecks()))
}

// Ids that every peer takes.
const (
	clientSession domain.SessionID = "5c3f8f52-4b52-4e8f-9d2e-000000000001"
	otherSession  domain.SessionID = "5c3f8f52-4b52-4e8f-9d2e-000000000002"
)

// desk is one client under test with its far end.
type desk struct {
	t      TB
	ctx    context.Context
	client ports.Client
	peer   ClientPeer
}

// sit connects a client; the connection is ended when the case ends.
func (h ClientHarness) sit(t TB, info domain.ClientInfo) *desk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	d := &desk{t: t, ctx: ctx}
	d.client, d.peer = h.Connect(t, info)
	t.Cleanup(func() {
		cancel()
		d.peer.Leave()
	})
	return d
}

func (d *desk) send(id domain.SessionID, u domain.Update) {
	d.t.Helper()
	if err := d.client.Send(d.ctx, id, u); err != nil {
		d.t.Fatalf("send %T: %v", u, err)
	}
}

func (d *desk) next() Received {
	d.t.Helper()
	r, err := d.peer.Next(d.ctx)
	if err != nil {
		d.t.Fatalf("nothing more reached the far end: %v", err)
	}
	return r
}

// text collects the text of the message chunks that arrive, up to the chunk
// that is "end".
func (d *desk) text() string {
	d.t.Helper()
	var all strings.Builder
	for {
		u, ok := d.next().Update.(domain.AgentText)
		if !ok {
			d.t.Fatalf("something else than text arrived")
		}
		if u.Text == "end" {
			return all.String()
		}
		all.WriteString(u.Text)
	}
}

func sendChecks() []check[ClientHarness] {
	return []check[ClientHarness]{
		{"client-order", "the order of Send is the order at the far end, whatever the kinds", clientOrder},
		{"client-text", "text arrives as it was sent, in chunks that concatenate to it", clientText},
		{"client-bad-text", "text that is no UTF-8 arrives repaired, and the connection lives", clientBadText},
		{"client-long-text", "a text of a megabyte and more arrives whole", clientLongText},
		{"client-call", "a call arrives with its id, title, kind, status and diff", clientCall},
		{"client-sessions", "updates of one session are not held up or reordered by another", clientSessions},
		{"client-cancelled-send", "a Send whose context has ended sends nothing and says the cause", clientCancelledSend},
		{"client-slow", "a far end that does not read slows Send down, until its context ends", clientSlow},
		{"client-gone-send", "after the client has gone Send fails with the cause Disconnected", clientGoneSend},
		{"client-info", "Info is what the client said", clientInfo},
		{"client-no-files", "a client that offers no files has none", clientNoFiles},
	}
}

func clientOrder(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	const n = 300
	var want []string
	for i := range n {
		id := domain.CallID(fmt.Sprint("c", i))
		for _, u := range []domain.Update{
			domain.AgentText{ID: "m", Text: fmt.Sprint("t", i)},
			domain.AgentThought{ID: "r", Text: fmt.Sprint("r", i)},
			domain.CallOpened{ID: id, Name: "x", Title: "X", Kind: domain.KindRead, Status: domain.CallPending},
			domain.CallChanged{ID: id, Status: domain.CallCompleted},
		} {
			d.send(clientSession, u)
			want = append(want, label(u))
		}
	}
	for i, w := range want {
		if got := label(d.next().Update); got != w {
			t.Fatalf("number %d is %s, want %s", i, got, w)
		}
	}
}

// label is what tells an update from its neighbours.
func label(u domain.Update) string {
	switch u := u.(type) {
	case domain.AgentText:
		return "text " + u.Text
	case domain.AgentThought:
		return "thought " + u.Text
	case domain.CallOpened:
		return "call " + string(u.ID)
	case domain.CallChanged:
		return "change " + string(u.ID) + " " + string(u.Status)
	}
	return fmt.Sprintf("%T", u)
}

func clientText(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	for _, s := range []string{"plain", "line\nline\r\n\ttab", "nul\x00bell\a", "\"quotes\" \\ </script> &", "żółć 日本 👩‍🚀 \u2028"} {
		d.send(clientSession, domain.AgentText{ID: "m", Text: s})
		d.send(clientSession, domain.AgentText{ID: "m", Text: "end"})
		if got := d.text(); got != s {
			t.Errorf("%q arrived as %q", s, got)
		}
	}
}

func clientBadText(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	d.send(clientSession, domain.AgentText{ID: "m", Text: "a\xff\xfeb\xe2\x82"})
	d.send(clientSession, domain.AgentText{ID: "m", Text: "end"})
	got := d.text()
	if !strings.HasPrefix(got, "a\uFFFD") || !strings.Contains(got, "b") || strings.ToValidUTF8(got, "") != got {
		t.Errorf("arrived as %q", got)
	}
}

func clientLongText(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	long := strings.Repeat("żółć\n", 150_000)
	sending := background(func() error {
		if err := d.client.Send(d.ctx, clientSession, domain.AgentText{ID: "m", Text: long}); err != nil {
			return err
		}
		return d.client.Send(d.ctx, clientSession, domain.AgentText{ID: "m", Text: "end"})
	})
	if got := d.text(); got != long {
		t.Errorf("%d bytes arrived as %d, or changed", len(long), len(got))
	}
	if err := <-sending; err != nil {
		t.Errorf("send: %v", err)
	}
}

func clientCall(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	call := someCall()
	d.send(clientSession, call)
	got, ok := d.next().Update.(domain.CallOpened)
	if !ok {
		t.Fatalf("arrived as another kind of update")
	}
	sameCall(t, got, call)
}

// someCall is a call with all that a person has to see.
func someCall() domain.CallOpened {
	return domain.CallOpened{
		ID: "call-1", Name: "edit_file", Title: "Edit total.go", Kind: domain.KindEdit, Status: domain.CallPending,
		Content: []domain.CallContent{domain.Diff{Path: "/proj/total.go", OldText: "a\n", NewText: "b\n"}},
	}
}

func sameCall(t TB, got, want domain.CallOpened) {
	t.Helper()
	if got.ID != want.ID || got.Title != want.Title || got.Kind != want.Kind || got.Status != want.Status {
		t.Errorf("the call is %+v, want %+v", got, want)
	}
	for _, c := range got.Content {
		if c == want.Content[0] {
			return
		}
	}
	t.Errorf("the diff is not among %+v", got.Content)
}

func clientSessions(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	const n = 200
	sending := background(func() error {
		for i := range n {
			if err := d.client.Send(d.ctx, otherSession, domain.AgentText{ID: "m", Text: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range n {
		d.send(clientSession, domain.AgentText{ID: "m", Text: fmt.Sprint(i)})
	}
	if err := <-sending; err != nil {
		t.Fatalf("send: %v", err)
	}
	seen := map[domain.SessionID]int{}
	for range 2 * n {
		r := d.next()
		u, _ := r.Update.(domain.AgentText)
		if want := fmt.Sprint(seen[r.Session]); u.Text != want {
			t.Fatalf("session %s: %q, want %q", r.Session, u.Text, want)
		}
		seen[r.Session]++
	}
	if seen[clientSession] != n || seen[otherSession] != n {
		t.Errorf("arrived: %v, want %d each", seen, n)
	}
}

func clientCancelledSend(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	ctx, cancel := context.WithCancelCause(d.ctx)
	cancel(domain.CancelledByClient)
	if err := d.client.Send(ctx, clientSession, domain.AgentText{ID: "m", Text: "late"}); !errors.Is(err, domain.CancelledByClient) {
		t.Errorf("send after the cancel: %v, want the cause", err)
	}
	d.send(clientSession, domain.AgentText{ID: "m", Text: "next"})
	if got := label(d.next().Update); got != "text next" {
		t.Errorf("arrived: %s, want the text that was sent after", got)
	}
}

func clientSlow(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	d.peer.Stall()
	ctx, cancel := context.WithTimeoutCause(d.ctx, 200*time.Millisecond, domain.CancelledByClient)
	defer cancel()
	piece := strings.Repeat("x", 64<<10)
	full := background(func() error {
		for range 64 << 10 { // 4 GiB: more than anyone may queue
			if err := d.client.Send(ctx, clientSession, domain.AgentText{ID: "m", Text: piece}); err != nil {
				return err
			}
		}
		return nil
	})
	select {
	case err := <-full:
		if !errors.Is(err, domain.CancelledByClient) {
			t.Errorf("send to a far end that does not read: %v, want the cause of its context", err)
		}
	case <-time.After(hangLimit):
		t.Errorf("Send waits on although its context has ended")
	}
}

func clientGoneSend(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	d.send(clientSession, domain.AgentText{ID: "m", Text: "before"})
	d.next()
	d.peer.Leave()
	for d.ctx.Err() == nil { // the news may take a moment
		err := d.client.Send(d.ctx, clientSession, domain.AgentText{ID: "m", Text: "after"})
		if err == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if !errors.Is(err, domain.Disconnected) {
			t.Errorf("send: %v, want Disconnected in the chain", err)
		}
		return
	}
	t.Errorf("Send succeeds although the client has gone")
}

func clientInfo(t TB, h ClientHarness) {
	want := domain.ClientInfo{Name: "quill", Title: "Quill", Version: "4.1", ReadFiles: true, Notices: true}
	if got := h.sit(t, want).client.Info(); got != want {
		t.Errorf("info %+v, want %+v", got, want)
	}
}

func clientNoFiles(t TB, h ClientHarness) {
	if _, ok := h.sit(t, domain.ClientInfo{}).client.Files(); ok {
		t.Errorf("files, although the client offers none")
	}
	for _, info := range []domain.ClientInfo{{ReadFiles: true}, {WriteFiles: true}} {
		if _, ok := h.sit(t, info).client.Files(); !ok {
			t.Errorf("no files, although the client offers %+v", info)
		}
	}
}

// background runs fn on a goroutine of its own, which the receiver of the
// channel waits for.
func background[T any](fn func() T) <-chan T {
	done := make(chan T, 1)
	go func() { done <- fn() }()
	return done
}
