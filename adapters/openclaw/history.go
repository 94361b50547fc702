package openclaw

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// entry is one entry of a transcript.
type entry struct {
	role    string
	run     string // "" when the Gateway does not say
	prompt  string // of a user's message: the run that it began
	item    string // of what was said before a tool call
	stop    string // why the model stopped
	call    string // of a result: the call
	tool    string
	failed  bool
	show    bool // an entry of the Gateway's own that is for people
	content json.RawMessage
	raw     fields
}

func entryOf(raw json.RawMessage) entry {
	f := fieldsOf(raw)
	own := f.in("__openclaw")
	e := entry{
		role: f.text("role"), run: own.text("runId"), stop: f.text("stopReason"),
		call: f.text("toolCallId"), tool: f.text("toolName"), failed: f.flag("isError"), show: f.flag("display"),
		item:    f.in("openclawStreamFallback").text("itemId"),
		content: f["content"], raw: f,
	}
	key := or(f.text("idempotencyKey"), own.text("idempotencyKey"))
	if n := len(key) - len(":user"); e.role == "user" && n > 0 && key[n:] == ":user" {
		e.prompt = key[:n]
	} else if e.run == "" && e.role == "assistant" {
		e.run = key // commands are answered under it
	}
	return e
}

// calls are the ids of the tool calls that a message makes.
func (e entry) calls() []string {
	var ids []string
	for c := range jsonrpc.Elements(e.content) {
		if f := fieldsOf(c); f.text("type") == "toolCall" && f.text("id") != "" {
			ids = append(ids, f.text("id"))
		}
	}
	return ids
}

// history is a part of a transcript, with what runs right now.
type history struct {
	entries []entry // the oldest first
	running string  // the run that goes on, "" for none
	active  []string
	busy    bool // something goes on
}

type historyParams struct {
	SessionKey string `json:"sessionKey"`
	Limit      int    `json:"limit"`
	Offset     int    `json:"offset,omitempty"`
	MaxChars   int    `json:"maxChars"`
}

// The bounds of what is asked for at a time.
const (
	historyPage  = 500
	historyChars = 500_000
	historyPages = 400
	historyBytes = 256 << 20 // in all; what is older is left out
)

// read reads a transcript backwards until enough, which sees each page.
func (b *Bridge) read(ctx context.Context, key string, enough func([]entry) bool) (history, error) {
	var h history
	var pages [][]entry // the newest first
	size := 0
	p := historyParams{SessionKey: key, Limit: historyPage, MaxChars: historyChars}
	for range historyPages {
		raw, err := b.gw.call(ctx, "chat.history", p)
		if err != nil {
			return h, err
		}
		f := fieldsOf(raw)
		var page []entry
		for e := range jsonrpc.Elements(f["messages"]) {
			page = append(page, entryOf(e))
		}
		if p.Offset == 0 {
			info := f.in("sessionInfo")
			h.running = f.in("inFlightRun").text("runId")
			h.active, h.busy = info.strings("activeRunIds"), info.flag("hasActiveRun")
		}
		pages = append(pages, page)
		next := int(f.number("nextOffset"))
		if !f.flag("hasMore") || next <= p.Offset || enough(page) {
			break
		}
		if size += len(raw); size > historyBytes {
			b.cfg.Log("the transcript of %s is longer than %d bytes: what is older is left out", key, historyBytes)
			break
		}
		p.Offset = next
	}
	slices.Reverse(pages)
	h.entries = slices.Concat(pages...)
	return h, nil
}

// runs reports whether a run goes on.
func (h history) runs(run string) bool { return h.running == run || slices.Contains(h.active, run) }

// of are the entries of one run, its prompt left out, in order. Results are
// found by their calls.
func (h history) of(run string) []entry {
	var out []entry
	calls := map[string]bool{}
	for _, e := range h.entries {
		switch {
		case e.role == "user":
		case e.run == run:
			out = append(out, e)
			for _, id := range e.calls() {
				calls[id] = true
			}
		case e.call != "" && calls[e.call] && e.run == "":
			out = append(out, e)
		}
	}
	return out
}

// behind is the run of the last message behind the prompt of a run that is
// not of that run, "" for none.
func (h history) behind(prompt, run string) string {
	last, seen := "", false
	for _, e := range h.entries {
		seen = seen || e.prompt == prompt
		if seen && e.role == "assistant" && e.run != run && e.run != "" {
			last = e.run
		}
	}
	return last
}

// began reports whether the prompt of a run, or of its answer something, is in
// the transcript.
func (h history) began(prompt, run string) bool {
	return slices.ContainsFunc(h.entries, func(e entry) bool { return e.prompt == prompt || e.run == run })
}

// untilPrompt stops reading at a prompt.
func untilPrompt(prompt string) func([]entry) bool {
	return func(page []entry) bool {
		return slices.ContainsFunc(page, func(e entry) bool { return e.prompt == prompt })
	}
}
