package providers

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// outcome is one row of the table: what a provider does, and what a client
// must see of it.
type outcome struct {
	name    string
	replies []porttest.Reply
	// run plays it and says what the client saw.
	run  func(r *rig) string
	want string
}

func refuses(kind porttest.RefusalKind, words, after string) porttest.Reply {
	return porttest.Reply{Refusal: &porttest.Refusal{Kind: kind, Words: words, RetryAfter: after}}
}

func text(pieces ...string) []porttest.ReplyPart {
	parts := make([]porttest.ReplyPart, len(pieces))
	for i, p := range pieces {
		parts[i] = porttest.SendText(p)
	}
	return parts
}

// outcomes are the rows.
//
//nolint:funlen // a table
func outcomes() []outcome {
	five := text("one ", "two ", "three ", "four ", "five")
	words := "the model is in a bad mood"
	return []outcome{
		{
			name: "a turn of two steps with tools",
			replies: []porttest.Reply{
				{Signed: true, Parts: []porttest.ReplyPart{
					porttest.SendThought("Which files?"), porttest.SendText("I read. "),
					porttest.SendCall{ID: "call_1", Name: "read_file", Args: `{"path":"a.txt"}`, Pieces: 3},
					porttest.SendCall{ID: "call_2", Name: "read_file", Args: `{"path":"b.txt"}`, Pieces: 1},
				}},
				{Parts: text("Done.")},
			},
			run: func(r *rig) string {
				stop := r.turn("read both")
				sent := r.server.Bodies()
				for _, content := range []string{"the content of a", "the content of b"} {
					if len(sent) != 2 || !strings.Contains(sent[1], content) {
						r.t.Errorf("the model was not given %q", content)
					}
				}
				n, _ := r.count("tool_call")
				return fmt.Sprintf("`%s`, %d calls, %q", stop, n, r.seen("agent_message_chunk"))
			},
			want: "`end_turn`, 2 calls, \"I read. Done.\"",
		},
		{
			name:    "thoughts",
			replies: []porttest.Reply{{Parts: append([]porttest.ReplyPart{porttest.SendThought("Let me "), porttest.SendThought("think.")}, text("Done.")...)}},
			run: func(r *rig) string {
				stop := r.turn("think")
				return fmt.Sprintf("`%s`, %q apart from %q", stop, r.seen("agent_thought_chunk"), r.seen("agent_message_chunk"))
			},
			want: "`end_turn`, \"Let me think.\" apart from \"Done.\"",
		},
		{
			name:    "usage",
			replies: []porttest.Reply{{Parts: text("Done."), Usage: domain.Usage{Input: 1200, Output: 34, CachedRead: 1000}}},
			run: func(r *rig) string {
				stop := r.turn("count")
				_, u := r.count("usage_update")
				return fmt.Sprintf("`%s`, %d of %d tokens used", stop, u.Used, u.Size)
			},
			want: "`end_turn`, 1234 of 100000 tokens used",
		},
		{
			name:    "cancel in the middle",
			replies: []porttest.Reply{{Parts: text("one "), End: porttest.EndSilent}, {Parts: text("again")}},
			run: func(r *rig) string {
				stop := make(chan string, 1)
				go func() { stop <- r.turn("talk") }()
				r.await("one ")
				began := time.Now()
				if err := r.client.Cancel(r.t.Context(), r.session); err != nil {
					r.t.Fatal(err)
				}
				said := <-stop
				select {
				case at := <-r.gone:
					r.t.Logf("the provider's side was closed %s after the cancel was sent", at.Sub(began).Round(10*time.Microsecond))
				case <-time.After(patience):
					r.t.Error("the exchange with the provider is still open")
				}
				return fmt.Sprintf("`%s`, exchange closed, next turn `%s`", said, r.turn("go on"))
			},
			want: "`cancelled`, exchange closed, next turn `end_turn`",
		},
		{
			name:    "401",
			replies: []porttest.Reply{refuses(porttest.KeyRefused, words, "")},
			run:     func(r *rig) string { return r.turn("go") },
			want:    "AUTH_REQUIRED (-32000)",
		},
		{
			name:    "429 with Retry-After",
			replies: []porttest.Reply{refuses(porttest.LimitedRate, words, "1"), {Parts: text("Done.")}},
			run: func(r *rig) string {
				began := time.Now()
				stop := r.turn("go")
				if took := time.Since(began); took < time.Second {
					r.t.Errorf("it was asked to wait 1 s and waited %s", took)
				}
				return fmt.Sprintf("waits as told, %d notice, `%s`", r.retries(), stop)
			},
			want: "waits as told, 1 notice, `end_turn`",
		},
		{
			name:    "500 twice, then an answer",
			replies: []porttest.Reply{refuses(porttest.ServerError, words, ""), refuses(porttest.ServerError, words, ""), {Parts: text("Done.")}},
			run: func(r *rig) string {
				stop := r.turn("go")
				return fmt.Sprintf("%d notices, `%s`", r.retries(), stop)
			},
			want: "2 notices, `end_turn`",
		},
		{
			name:    "cut after five pieces",
			replies: []porttest.Reply{{Parts: five, End: porttest.EndCut}},
			run:     partly("one two three four five"),
			want:    "PROVIDER_ERROR (-32603), what was shown is kept",
		},
		{
			name:    "malformed event",
			replies: []porttest.Reply{{Parts: five, End: porttest.EndMalformed}},
			run:     partly("one two three four five"),
			want:    "PROVIDER_ERROR (-32603), what was shown is kept",
		},
		{
			name: "error object in a 200",
			replies: []porttest.Reply{{
				Parts: five, End: porttest.EndError, Fault: porttest.Refusal{Kind: porttest.Overloaded, Words: words},
			}},
			run:  partly("one two three four five"),
			want: "PROVIDER_ERROR (-32603), what was shown is kept",
		},
		{
			name: "the token limit, in a call",
			replies: []porttest.Reply{{End: porttest.EndLength, Parts: append(text("I write. "),
				porttest.SendCall{ID: "call_1", Name: "write_file", Args: `{"path":"c.txt","content":"x"}`, Pieces: 2})}},
			run: func(r *rig) string {
				stop := r.turn("go")
				n, _ := r.count("tool_call")
				return fmt.Sprintf("`%s`, %d calls run", stop, n)
			},
			want: "`max_tokens`, 0 calls run",
		},
		{
			name:    "refused by the model",
			replies: []porttest.Reply{{Parts: text("I cannot help with that."), End: porttest.EndRefusal}},
			run:     func(r *rig) string { return fmt.Sprintf("`%s`, %q", r.turn("go"), r.seen("agent_message_chunk")) },
			want:    "`refusal`, \"I cannot help with that.\"",
		},
		{
			name: "longer than the window",
			replies: []porttest.Reply{
				{Parts: text("First.")}, refuses(porttest.TooLong, "", ""), {Parts: text("A summary of it all.")}, {Parts: text("Second.")},
			},
			run: func(r *rig) string {
				r.turn("remember this: " + strings.Repeat("a long story about a ship and its berth. ", 1000))
				return fmt.Sprintf("compacted, then `%s`", r.turn("go on"))
			},
			want: "compacted, then `end_turn`",
		},
	}
}

// partly runs a turn whose reply breaks off after a text was shown, and looks
// for the text in the history.
func partly(shown string) func(r *rig) string {
	return func(r *rig) string {
		said := r.turn("go")
		if got := r.seen("agent_message_chunk"); got != shown {
			r.t.Errorf("the client was shown %q, want %q", got, shown)
		}
		if n := r.server.Requests(); n != 1 {
			r.t.Errorf("the provider was asked %d times, although a text had been shown", n)
		}
		if again := r.reload(); strings.Contains(again, shown) {
			said += ", what was shown is kept"
		}
		return said
	}
}

// TestOutcomes plays every outcome with every provider type, and keeps the
// table of docs/providers.md what it was found to be.
func TestOutcomes(t *testing.T) {
	var mu sync.Mutex
	right := map[string]bool{}
	t.Run("play", func(t *testing.T) {
		for _, d := range dialects() {
			for _, o := range outcomes() {
				t.Run(d.Name+"/"+o.name, func(t *testing.T) {
					t.Parallel()
					r := newRig(t, d, o.replies)
					if got := o.run(r); got != o.want {
						t.Errorf("the client saw: %s\nwant: %s", got, o.want)
					}
					for _, p := range r.server.Problems() {
						t.Errorf("the provider would refuse the request: %s", p)
					}
					mu.Lock()
					defer mu.Unlock()
					right[d.Name+"/"+o.name] = !t.Failed()
				})
			}
		}
	})
	if t.Failed() {
		return // a narrowed run or a wrong outcome makes no table
	}
	if len(right) < len(dialects())*len(outcomes()) {
		t.Skip("only a part was played")
	}
	checkPage(t, right)
}
