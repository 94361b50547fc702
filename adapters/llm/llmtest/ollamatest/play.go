package ollamatest

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// play writes an answer.
func (f *fake) play(w *llmtest.Writer, r porttest.Reply, _ []byte) {
	if r.Refusal != nil {
		w.Refuse(*r.Refusal, `{"error":`+quote(words(*r.Refusal))+`}`)
		return
	}
	if r.Signed {
		f.keep(r)
	}
	w.Begin("application/x-ndjson")
	calls, nth := "", 0
	for _, part := range r.Parts {
		switch part := part.(type) {
		case porttest.SendText:
			f.line(w, `{"role":"assistant","content":`+quote(string(part))+`}`)
		case porttest.SendThought:
			f.line(w, `{"role":"assistant","content":"","thinking":`+quote(string(part))+`}`)
		case porttest.Wait:
			w.Wait(part)
		case porttest.SendCall:
			call := f.call(part, nth)
			nth++
			if f.v.Late {
				calls = strings.TrimPrefix(calls+","+call, ",")
				continue
			}
			f.line(w, `{"role":"assistant","content":"","tool_calls":[`+call+`]}`)
		}
	}
	f.end(w, r, calls)
}

// keep notes what is wanted back.
func (f *fake) keep(r porttest.Reply) {
	thought, args := "", ""
	for _, part := range r.Parts {
		switch part := part.(type) {
		case porttest.SendThought:
			thought += string(part)
		case porttest.SendCall:
			if args == "" {
				args = part.Args
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own[thought] = true
	if args != "" {
		f.thoughts[args] = thought
	}
}

// call writes the n-th call. Calls are never cut into pieces. What is no JSON can only
// travel as a text.
func (f *fake) call(c porttest.SendCall, n int) string {
	args := c.Args
	switch {
	case args == "":
		args = "{}"
	case f.v.Strings || !json.Valid([]byte(args)):
		args = quote(args)
	}
	id := ""
	if c.ID != "" {
		id = `"id":` + quote(c.ID) + `,`
	}
	return `{` + id + `"function":{"index":` + strconv.Itoa(n) + `,"name":` + quote(c.Name) + `,"arguments":` + args + `}}`
}

func (f *fake) head() string {
	s := `{"model":"` + Model + `","created_at":"2026-01-02T03:04:05.678901234Z"`
	if f.v.Extra {
		s += `,"remote_model":"x","logprobs":[{"token":"a","logprob":-0.1,"top_logprobs":null}]`
	}
	return s
}

// line writes one line that is not the last.
func (f *fake) line(w *llmtest.Writer, message string) {
	f.send(w, f.head()+`,"message":`+message+`,"done":false}`, false)
}

func (f *fake) send(w *llmtest.Writer, line string, last bool) {
	end := "\n"
	if f.v.CRLF {
		end = "\r\n"
	}
	if f.v.Blank {
		line = end + line
	}
	if !last || !f.v.LastBare {
		line += end
	}
	w.Send(line)
}

func (f *fake) end(w *llmtest.Writer, r porttest.Reply, calls string) {
	switch r.End {
	case porttest.EndComplete:
		f.done(w, "stop", r, calls)
	case porttest.EndLength:
		f.done(w, "length", r, calls)
	case porttest.EndRefusal:
		f.done(w, "content_filter", r, calls)
	case porttest.EndCut:
	case porttest.EndBroken:
		w.Break()
	case porttest.EndSilent:
		w.Hang()
	case porttest.EndMalformed:
		f.send(w, f.head()+`,"message":{"role":"assistant","content":"lost`, false)
	case porttest.EndError:
		f.send(w, `{"error":`+quote(words(r.Fault))+`}`, true)
	}
}

// done writes the last line. Counts of 0 are left out.
func (f *fake) done(w *llmtest.Writer, reason string, r porttest.Reply, calls string) {
	message := `{"role":"assistant","content":""`
	if calls != "" {
		message += `,"tool_calls":[` + calls + `]`
	}
	s := f.head() + `,"message":` + message + `},"done_reason":"` + reason + `","done":true,"total_duration":5043500667,"load_duration":5025959`
	if r.Usage.Input > 0 {
		s += `,"prompt_eval_count":` + strconv.FormatInt(r.Usage.Input, 10) + `,"prompt_eval_duration":325953000`
	}
	if r.Usage.Output > 0 {
		s += `,"eval_count":` + strconv.FormatInt(r.Usage.Output, 10) + `,"eval_duration":4709213000`
	}
	f.send(w, s+`}`, true)
}

// words are a refusal's words with what Ollama itself says of its kind.
func words(r porttest.Refusal) string {
	switch r.Kind {
	case porttest.NoSuchModel:
		return `model "` + Model + `" not found, try pulling it first (` + r.Words + `)`
	case porttest.TooLong:
		return "the input length exceeds the context length (" + r.Words + ")"
	case porttest.SpentQuota:
		return "you have reached your weekly usage limit (" + r.Words + ")"
	}
	return r.Words
}

// quote writes a JSON string as a server written in Go does, with < and its
// like escaped.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a text always encodes
	}
	return string(b)
}
