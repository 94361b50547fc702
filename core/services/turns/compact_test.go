package turns_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// tokens is a text that is estimated at n tokens.
func tokens(n int, word string) string {
	return strings.Repeat(word+strings.Repeat(".", 7-len(word)%8)+"\n", n*4)[:n*4]
}

// holds gives a world's model a window: 8,000 tokens leave 6,000 for requests,
// which are compacted from 4,800 on to 3,000.
func holds(w *world, window int64) {
	w.model.info = &domain.ModelInfo{Ref: domain.ModelRef{Provider: "test", Model: "one"}, ContextWindow: window, Tools: true}
}

// replies answers with a text and an honest count of tokens.
func replies(answer string) step {
	return func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		usage := domain.Usage{Input: req.Estimate(), Output: int64(len(answer) / 4)}
		events(domain.FinishStop, domain.TextDelta{Text: answer}, domain.UsageReported{Usage: usage})(ctx, req, yield)
	}
}

// isSummary reports whether a request asks for a summary.
func isSummary(req domain.ModelRequest) bool {
	return len(req.Tools) == 0 && strings.HasPrefix(req.System, "You summarise")
}

// sumsUp answers requests for a summary with a text, and others as step does.
func sumsUp(summary, other step) step {
	return func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		if isSummary(req) {
			summary(ctx, req, yield)
			return
		}
		other(ctx, req, yield)
	}
}

// text is everything that a request says to the model.
func text(req domain.ModelRequest) string {
	var b strings.Builder
	for _, m := range req.Messages {
		switch m := m.(type) {
		case domain.UserInput:
			b.WriteString("<user>" + domain.PromptText(m.Blocks) + "\n")
		case domain.ModelReply:
			b.WriteString("<reply>" + m.Text + "\n")
		case domain.ToolOutput:
			b.WriteString("<output>" + m.Text + "\n")
		}
	}
	return b.String()
}

// stored folds the journal as the next process would and returns the messages.
func (w *world) stored() []domain.ModelMessage {
	conv := domain.NewConversation(0)
	for i, r := range w.records() {
		conv.Add(domain.Entry{Seq: domain.Seq(i + 1), Record: r})
	}
	return conv.Messages()
}

// lastCompaction is the newest Compacted of the journal.
func (w *world) lastCompaction() domain.Compacted {
	w.t.Helper()
	var found *domain.Compacted
	for _, r := range w.records() {
		if c, ok := r.(domain.Compacted); ok {
			found = &c
		}
	}
	if found == nil {
		w.t.Fatal("nothing was compacted")
	}
	return *found
}

// compactions are the updates a client gets about them, in short.
func compactions(ups []domain.Update) string {
	var out []string
	for _, u := range ups {
		switch u := u.(type) {
		case domain.CompactionChanged:
			out = append(out, fmt.Sprintf("%s(%s%s)", u.Status, u.Summary, u.Error))
		case domain.CompactionText:
			out = append(out, "+"+u.Text)
		case domain.Notice:
			out = append(out, u.Severity+": "+u.Title)
		}
	}
	return strings.Join(out, " ")
}

// A long session goes on and on: what came before is summarised when the window
// fills, each prompt is seen whole, no request passes the window, and what the
// model is sent is what a restarted process would send.
func TestCompact_LongSession(t *testing.T) {
	bubble(t, nil, func(w *world) {
		holds(w, 8000)
		w.client.info.Compaction = true
		w.model.play(sumsUp(events(domain.FinishStop, domain.TextDelta{Text: "SUM"}, domain.TextDelta{Text: "MARY"},
			domain.UsageReported{Usage: domain.Usage{Input: 100, Output: 10}}), replies(tokens(500, "answer"))))
		for n := range 20 {
			w.begin(fmt.Sprintf("prompt %d %s", n, tokens(500, "asked"))).want(domain.StopEndTurn)
		}
		summaries := 0
		for i, req := range w.model.seen() {
			if isSummary(req) {
				summaries++
				continue
			}
			if size := req.Estimate(); size > 6000 {
				t.Errorf("request %d takes %d tokens", i, size)
			}
			n := i - summaries
			if !strings.Contains(text(req), fmt.Sprintf("prompt %d %s", n, tokens(500, "asked"))) {
				t.Errorf("request %d does not hold prompt %d", i, n)
			}
			if n > 5 && (!strings.Contains(text(req), "SUMMARY") || !strings.Contains(text(req), "- prompt 0")) {
				t.Errorf("request %d holds no summary or not the first request: %.300s", i, text(req))
			}
		}
		if n := count[domain.Compacted](w.records()); n != summaries || n < 3 || n > 8 {
			t.Errorf("%d compactions, %d summaries", n, summaries)
		}
		if rec := w.lastCompaction(); rec.Before <= 4800 || rec.After > 3300 || rec.Usage.Input != 100 || rec.Summary != "SUMMARY" || rec.Plain != nil {
			t.Errorf("the journal says %+v", rec)
		}
		if got := compactions(w.client.log()); !strings.HasPrefix(got, "in_progress() +SUM +MARY completed(SUMMARY) in_progress()") {
			t.Errorf("the client was told %.200s", got)
		}
		seen := w.model.seen()
		stored := w.stored() // with the last reply
		if diff := cmp.Diff(seen[len(seen)-1].Messages, stored[:len(stored)-1]); diff != "" {
			t.Errorf("a restarted process sends something else (-sent +stored):\n%.2000s", diff)
		}
		w.check()
	})
}

// A turn that reads more than fits goes on: older results are trimmed first,
// then older steps are summarised, never the prompt or the newest step.
func TestCompact_LongTurn(t *testing.T) {
	look := reader("look")
	n := 0
	look.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
		n++
		return domain.ToolResult{Text: fmt.Sprintf("result %d %s", n, tokens(900, "found"))}, nil
	}
	bubble(t, []ports.Tool{look}, func(w *world) {
		holds(w, 8000)
		w.agents.agent.MaxTurnRequests = 60
		var steps []step
		for range 40 {
			steps = append(steps, sumsUp(says("SUMMARY"), wants(tokens(100, "think"), "look")))
		}
		w.model.play(append(steps, says("done"))...)
		w.begin("dig " + tokens(300, "deep")).want(domain.StopEndTurn)
		trimmed, results := false, 0
		for i, req := range w.model.seen() {
			if isSummary(req) {
				continue
			}
			all := text(req)
			if size := req.Estimate(); size > 6000 {
				t.Errorf("request %d takes %d tokens", i, size)
			}
			if !strings.Contains(all, "dig "+tokens(300, "deep")) {
				t.Errorf("request %d lost the prompt", i)
			}
			if newest := fmt.Sprintf("result %d %s", results, tokens(900, "found")); results > 0 && !strings.Contains(all, newest) {
				t.Errorf("request %d lost the newest result", i)
			}
			results++
			trimmed = trimmed || strings.Contains(all, "call the tool again") && !strings.Contains(all, "SUMMARY")
		}
		if !trimmed {
			t.Error("results were never trimmed before anything was summarised")
		}
		if strings.Contains(compactions(w.client.log()), "in_progress") != true || !strings.Contains(compactions(w.client.log()), "info: The conversation was made shorter") {
			t.Errorf("the client was told %.300s", compactions(w.client.log()))
		}
		w.check()
	})
}

// Several results that are each too large, in one step, are cut to what fits;
// the journal and the client have them whole.
func TestCompact_OversizedResults(t *testing.T) {
	look := reader("look")
	look.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
		return domain.ToolResult{Text: "begin " + tokens(50_000, "found") + " end"}, nil
	}
	for _, calls := range []int{1, 4, 12} {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			bubble(t, []ports.Tool{look}, func(w *world) {
				holds(w, 8000)
				var names []string
				for range calls {
					names = append(names, "look")
				}
				w.model.play(sumsUp(says("SUMMARY"), wants("", names...)), sumsUp(says("SUMMARY"), says("seen")))
				w.begin("dig").want(domain.StopEndTurn)
				seen := w.model.seen()
				last := seen[len(seen)-1]
				if size := last.Estimate(); size > 6000 {
					t.Errorf("the request takes %d tokens", size)
				}
				if n := strings.Count(text(last), "bytes are left out here"); n != calls {
					t.Errorf("%d of %d results are marked as cut", n, calls)
				}
				whole := 0
				for _, u := range w.client.log() {
					if c, ok := u.(domain.CallChanged); ok && c.Status == domain.CallCompleted && len(contentText(c.Content)) > 200_000 {
						whole++
					}
				}
				if whole != calls {
					t.Errorf("the client was shown %d of %d results whole", whole, calls)
				}
				w.begin("and now?").want(domain.StopEndTurn)
				w.check()
			})
		})
	}
}

// When the model cannot write the summary, a plain one stands in, and what was
// shown of the attempt is replaced.
func TestCompact_WithoutTheModelsHelp(t *testing.T) {
	for name, c := range map[string]struct {
		summary step
		why     string
	}{
		"an error":         {fails("half a summ", domain.Errorf(domain.Unavailable, "it is down")), "it is down"},
		"an uncoded error": {fails("", fmt.Errorf("secret detail")), "an internal error"},
		"a panic":          {func(context.Context, domain.ModelRequest, func(domain.ModelEvent, error) bool) { panic("bug") }, "an internal error"},
		"nothing":          {says(" \n"), "was empty"},
		"a refusal":        {events(domain.FinishRefusal, domain.TextDelta{Text: "I will not"}), "refused"},
		"cut at the limit": {events(domain.FinishLength, domain.TextDelta{Text: "and then"}), "too long"},
		"endless words":    {says(strings.Repeat("word ", 10_000)), "too long"},
		"a stream without a finish": {func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			yield(domain.TextDelta{Text: "x"}, nil)
		}, "broke off"},
		"itself too long": {fails("", domain.Errorf(domain.ContextTooLong, "too long for it")), "too long for it"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				holds(w, 8000)
				w.client.info.Compaction = true
				w.model.play(sumsUp(c.summary, replies(tokens(1500, "answer"))))
				for n := range 5 {
					w.begin(fmt.Sprintf("prompt %d", n)).want(domain.StopEndTurn)
				}
				rec := w.lastCompaction()
				if rec.Plain == nil || !strings.Contains(rec.Plain.Msg, c.why) || strings.Contains(rec.Plain.Msg, "secret") {
					t.Errorf("why it is plain: %+v", rec.Plain)
				}
				if !strings.Contains(rec.Summary, "- The user: prompt 1") || !strings.Contains(rec.Summary, "- The agent: answer") {
					t.Errorf("the plain summary is %q", rec.Summary)
				}
				if !strings.Contains(compactions(w.client.log()), "completed("+rec.Summary+")") {
					t.Errorf("the client was told %.300s", compactions(w.client.log()))
				}
				w.check()
			})
		})
	}
}

// A cancel while the summary is written is answered at once, leaves the
// conversation as it was, and tells the compaction's end.
func TestCompact_Cancel(t *testing.T) {
	forever := make(chan struct{})
	for name, summary := range map[string]step{
		"a model that heeds it": hang(domain.TextDelta{Text: "half"}, domain.UsageReported{Usage: domain.Usage{Input: 9}}),
		"a model that does not heed it": func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			if yield(domain.TextDelta{Text: "half"}, nil) {
				<-forever
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				forever = make(chan struct{})
				w := newWorld(t)
				holds(w, 8000)
				w.client.info.Compaction = true
				w.model.play(sumsUp(summary, replies(tokens(1500, "answer"))))
				for range 3 {
					w.begin("more").want(domain.StopEndTurn)
				}
				r := w.begin("too much")
				synctest.Wait()
				start := time.Now()
				w.stop()
				r.want(domain.StopCancelled)
				if d := r.at.Sub(start); d > 250*time.Millisecond {
					t.Errorf("answered after %v", d)
				}
				if got := compactions(w.client.log()); got != "in_progress() +half cancelled()" {
					t.Errorf("the client was told %q", got)
				}
				close(forever)
				synctest.Wait()
				w.model.play(sumsUp(says("SUMMARY"), says("on")))
				w.begin("again").want(domain.StopEndTurn)
				if rec := w.lastCompaction(); rec.Cancelled || rec.Summary != "SUMMARY" {
					t.Errorf("afterwards: %+v", rec)
				}
				w.check()
				w.shutdown()
			})
		})
	}
}

// A provider that finds a request too long gets a shorter one, at most twice,
// unless something of a reply was shown; the window need not be known.
func TestCompact_ContextTooLong(t *testing.T) {
	tooLong := func(text string) step {
		return fails(text, domain.Errorf(domain.ContextTooLong, "maximum is 3000 tokens"))
	}
	for name, c := range map[string]struct {
		window  int64
		refused int
		shown   string
		want    int // requests of the last turn but summaries; 0: it fails
	}{
		"once":                   {refused: 1, want: 2},
		"for ever":               {refused: 9},
		"with a window":          {window: 1_000_000, refused: 1, want: 2},
		"after words were shown": {refused: 1, shown: "half"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				holds(w, c.window)
				w.model.play(replies(tokens(2000, "answer")))
				for n := range 4 {
					w.begin(fmt.Sprintf("prompt %d", n)).want(domain.StopEndTurn)
				}
				refused, asked := 0, 0
				w.model.play(sumsUp(says("SUMMARY"), func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
					asked++
					if refused++; refused <= c.refused {
						tooLong(c.shown)(ctx, req, yield)
						return
					}
					says("fine")(ctx, req, yield)
				}))
				r := w.begin("go on")
				<-r.done
				if c.want > 0 && (r.err != nil || asked != c.want) {
					t.Errorf("after %d requests: %v", asked, r.err)
				}
				if c.want == 0 && (!domain.HasCode(r.err, domain.ContextTooLong) || asked > 3) {
					t.Errorf("after %d requests: %v", asked, r.err)
				}
				if c.want == 0 && c.shown == "" && !strings.Contains(r.err.Error(), "new session") {
					t.Errorf("it does not say what to do: %v", r.err)
				}
				refused = 99
				w.begin("next").want(domain.StopEndTurn)
				seen := w.model.seen()
				if last := text(seen[len(seen)-1]); c.want == 0 && c.shown == "" && strings.Contains(last, "<user>go on") {
					t.Errorf("what failed stands in the way: %s", last)
				}
				w.check()
			})
		})
	}
}

// A window that nobody knew is found by trying: what came before goes first,
// then the newest results are cut.
func TestCompact_FindsTheWindow(t *testing.T) {
	look := reader("look")
	look.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
		return domain.ToolResult{Text: tokens(6000, "found")}, nil
	}
	bubble(t, []ports.Tool{look}, func(w *world) {
		holds(w, 0)
		w.model.play(replies(tokens(2000, "answer")))
		for range 4 {
			w.begin("more").want(domain.StopEndTurn)
		}
		limited := func(s step) step {
			return sumsUp(says("SUMMARY"), func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
				if req.Estimate() > 3000 && strings.Contains(text(req), "<output>") {
					yield(nil, domain.Errorf(domain.ContextTooLong, "no"))
					return
				}
				s(ctx, req, yield)
			})
		}
		w.model.play(wants("", "look"), limited(replies("fine")))
		w.begin("dig").want(domain.StopEndTurn)
		if recs := w.records(); count[domain.Compacted](recs) != 2 || w.lastCompaction().Largest == 0 {
			t.Errorf("%d compactions, the last is %+v", count[domain.Compacted](recs), w.lastCompaction())
		}
		w.begin("next").want(domain.StopEndTurn)
		w.check()
	})
}

// A first prompt that the provider finds too long fails, and leaves nothing
// behind that would make the next one fail.
func TestCompact_FirstPromptTooLong(t *testing.T) {
	bubble(t, nil, func(w *world) {
		holds(w, 0)
		w.model.play(func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			if req.Estimate() > 5000 {
				yield(nil, domain.Errorf(domain.ContextTooLong, "no"))
				return
			}
			says("fine")(ctx, req, yield)
		})
		r := w.begin(tokens(10_000, "huge"))
		<-r.done
		if !domain.HasCode(r.err, domain.ContextTooLong) || len(w.model.seen()) != 1 {
			t.Errorf("after %d requests: %v", len(w.model.seen()), r.err)
		}
		w.begin("small").want(domain.StopEndTurn)
		w.check()
	})
}

// A prompt that alone is too much is refused before it is journalled.
func TestCompact_PromptThatCannotFit(t *testing.T) {
	bubble(t, nil, func(w *world) {
		holds(w, 8000)
		w.model.play(replies("hello"))
		w.begin("hello").want(domain.StopEndTurn)
		before := w.records()
		r := w.begin(tokens(7000, "huge"))
		<-r.done
		if !domain.HasCode(r.err, domain.TooLarge) {
			t.Fatalf("the error is %v", r.err)
		}
		for _, part := range []string{"7,000 tokens", "test/one", "8,000", "2,000"} {
			if !strings.Contains(r.err.Error(), part) {
				t.Errorf("it does not say %q: %v", part, r.err)
			}
		}
		if diff := cmp.Diff(before, w.records()); diff != "" {
			t.Errorf("it left (-before +after):\n%s", diff)
		}
		w.begin("small").want(domain.StopEndTurn)
		w.begin(tokens(4500, "large")).want(domain.StopEndTurn)
		w.check()
	})
}

// Instructions and tools that leave no room are said to, and nothing is asked.
func TestCompact_WindowThatHoldsNothing(t *testing.T) {
	for _, window := range []int64{1, 10} {
		bubble(t, nil, func(w *world) {
			holds(w, window)
			for _, prompt := range []string{"hi", tokens(20, "more")} { // before and after an earlier failure, small and large
				r := w.begin(prompt)
				<-r.done
				if !domain.HasCode(r.err, domain.ContextTooLong) || !strings.Contains(r.err.Error(), "Instructions and tools alone") || len(w.model.seen()) != 0 {
					t.Errorf("a window of %d, after %d requests: %v", window, len(w.model.seen()), r.err)
				}
			}
			w.check()
		})
	}
}

// A model that is none is asked whatever its window is said to be.
func TestCompact_WindowOfNoLanguageModel(t *testing.T) {
	bubble(t, nil, func(w *world) {
		holds(w, 100)
		w.model.info.Offline = true
		w.begin("hi").want(domain.StopEndTurn)
		w.check()
	})
}

// A compaction that the store does not take ends for the client all the same,
// and the next turn knows what is stored.
func TestCompact_StoreFails(t *testing.T) {
	bubble(t, nil, func(w *world) {
		holds(w, 8000)
		w.client.info.Compaction = true
		w.model.play(sumsUp(says("SUMMARY"), replies(tokens(1500, "answer"))))
		for range 3 {
			w.begin("more").want(domain.StopEndTurn)
		}
		w.store.hook(func(_ context.Context, _ int, recs []domain.Record) (bool, error) {
			if _, ok := recs[0].(domain.Compacted); ok {
				return false, domain.Errorf(domain.StoreUnavailable, "no room")
			}
			return false, nil
		})
		r := w.begin("too much")
		<-r.done
		if !domain.HasCode(r.err, domain.StoreUnavailable) {
			t.Errorf("the error is %v", r.err)
		}
		if got := compactions(w.client.log()); got != "in_progress() +SUMMARY failed(It broke off.)" {
			t.Errorf("the client was told %q", got)
		}
		w.store.hook(nil)
		w.begin("again").want(domain.StopEndTurn)
		w.check()
	})
}

// Pictures that a model cannot see take no room.
func TestCompact_PicturesNobodySees(t *testing.T) {
	bubble(t, nil, func(w *world) {
		holds(w, 8000)
		var blocks []domain.Block
		for range 10 {
			blocks = append(blocks, domain.Image{MIME: "image/png", Data: []byte("x")})
		}
		w.beginBlocks(blocks).want(domain.StopEndTurn)
	})
}

func TestCompactCommand(t *testing.T) {
	bubble(t, nil, func(w *world) {
		holds(w, 200_000)
		w.model.play(replies(tokens(1000, "answer")))
		first := w.begin("/compact")
		first.want(domain.StopEndTurn)
		if !strings.HasPrefix(first.outcome.Text, "There is nothing to compact: the conversation takes about ") || len(w.model.seen()) != 0 {
			t.Errorf("of nothing: %q after %d requests", first.outcome.Text, len(w.model.seen()))
		}
		for n := range 3 {
			w.begin(fmt.Sprintf("prompt %d", n)).want(domain.StopEndTurn)
		}
		asked := len(w.model.seen())
		w.model.play(sumsUp(says("SUMMARY"), says("answered")))
		r := w.begin(" /compact keep the plan ")
		r.want(domain.StopEndTurn)
		seen := w.model.seen()
		if len(seen) != asked+1 || !isSummary(seen[asked]) || !strings.Contains(text(seen[asked]), "keep in mind: keep the plan") {
			t.Errorf("the model was asked %d times, last %.2000s", len(seen)-asked, text(seen[len(seen)-1]))
		}
		rec := w.lastCompaction()
		want := fmt.Sprintf("The conversation took about %s tokens and takes about %s now. What came before is summarised for it. The history keeps everything.",
			thousands(rec.Before), thousands(rec.After))
		if r.outcome.Text != want || r.outcome.Usage != (domain.Usage{Input: 10, Output: 1}) {
			t.Errorf("the answer is %q (%+v), want %q", r.outcome.Text, r.outcome.Usage, want)
		}
		w.begin("go on").want(domain.StopEndTurn)
		seen = w.model.seen()
		last := text(seen[len(seen)-1])
		if strings.Contains(last, "/compact") || strings.Contains(last, "took about") || !strings.Contains(last, "SUMMARY") ||
			strings.Contains(last, "<user>prompt 1") || !strings.Contains(last, "<user>prompt 2") {
			t.Errorf("the next request holds %.600s", last)
		}
		if row, _ := w.store.Load(t.Context(), w.id); row.Title != "prompt 0" {
			t.Errorf("the session is called %q", row.Title)
		}
		w.check()
	})
}

// thousands groups a number of up to six digits.
func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// The session of A-CTX-1: larger than the window of the model that goes on
// with it. It is compacted by itself, and by the command as well.
func TestCompact_SessionLargerThanTheWindow(t *testing.T) {
	for _, first := range []string{"go on", "/compact"} {
		t.Run(first, func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				holds(w, 1_000_000)
				w.model.play(sumsUp(says("SUMMARY"), replies(tokens(4000, "answer"))))
				for range 10 {
					w.begin("more").want(domain.StopEndTurn)
				}
				holds(w, 8000)
				w.model.play(sumsUp(says("SUMMARY"), says("fine")))
				w.begin(first).want(domain.StopEndTurn)
				w.begin("next").want(domain.StopEndTurn)
				seen := w.model.seen()
				for _, req := range seen[10:] {
					if req.Estimate() > 6000 {
						t.Errorf("a request takes %d tokens", req.Estimate())
					}
				}
				w.check()
			})
		})
	}
}
