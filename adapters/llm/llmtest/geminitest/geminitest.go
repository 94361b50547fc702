// Package geminitest is a fake Gemini API. It refuses what the real one would,
// looks for the signatures it gave, and plays replies in the forms that the
// API, older models and proxies send.
package geminitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/gemini"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

const path = "/v1beta"

// Shape is how a server writes. The zero value is the real API as a model of
// the third generation answers.
type Shape struct {
	Model    string // "" is "gemini-3-flash"
	LF       bool   // lines end with LF, not CRLF
	List     bool   // a JSON list in place of events, as without alt=sse
	Lines    bool   // bare chunks, one a line
	Extra    bool   // fields that nobody asked for, and comments
	Counting bool   // counts with every chunk
	SignAll  bool   // a signature with every part
	SplitEnd bool   // the finish reason in a chunk of its own, then the counts
	Indented bool   // chunks over several lines
}

// Dialect is the real API.
func Dialect() llmtest.Dialect { return Shape{}.Dialect() }

// Dialect is the API in a shape.
func (s Shape) Dialect() llmtest.Dialect {
	return llmtest.Dialect{Name: "Gemini", Type: "gemini", Path: path, Model: s.model(), New: s.server, Opener: gemini.Opener()}
}

func (s Shape) model() string {
	if s.Model == "" {
		return "gemini-3-flash"
	}
	return s.Model
}

// strict reports whether the model wants signatures, and levels of thinking.
func (s Shape) strict() bool { return strings.Contains(s.model(), "gemini-3") }

func (s Shape) server() *llmtest.Server {
	var m memory
	return &llmtest.Server{
		Check: s.check,
		Look:  func(body []byte) []string { return m.look(body, s.strict()) },
		Play: func(w *llmtest.Writer, r porttest.Reply, _ []byte) {
			p := &player{Shape: s, w: w, signed: r.Signed, usage: r.Usage}
			p.play(r)
			if r.Signed {
				m.keep(p.sent)
			}
		},
		Probe: s.probe,
	}
}

// player writes one answer.
type player struct {
	Shape
	w      *llmtest.Writer
	signed bool
	usage  domain.Usage
	begun  bool   // a chunk was sent
	sent   []part // all parts
	called bool
}

func (p *player) play(r porttest.Reply) {
	if r.Refusal != nil {
		p.w.Refuse(*r.Refusal, js(map[string]any{"error": errorObject(*r.Refusal)}))
		return
	}
	kind := "text/event-stream"
	if p.List || p.Lines {
		kind = "application/json; charset=UTF-8"
	}
	p.w.Begin(kind)
	for _, part := range r.Parts {
		if !p.part(part, r.End) {
			p.stop(r)
			return
		}
	}
	p.end(r)
}

// part writes a part. It reports false for a call that breaks off.
func (p *player) part(sent porttest.ReplyPart, end porttest.ReplyEnd) bool {
	switch sent := sent.(type) {
	case porttest.SendText:
		p.parts(p.sign(part{Text: ptr(string(sent))}, false))
	case porttest.SendThought:
		p.parts(p.sign(part{Text: ptr(string(sent)), Thought: true}, false))
	case porttest.Wait:
		p.w.Wait(sent)
	case porttest.SendCall:
		return p.call(sent, end)
	}
	return true
}

// call writes a call, which this wire sends whole. Arguments that are no JSON
// are written as they stand where a model would do so, and where a reply
// breaks off they are as far as it came.
func (p *player) call(c porttest.SendCall, end porttest.ReplyEnd) bool {
	head := `{"functionCall":{"name":` + js(c.Name)
	if c.ID != "" {
		head = `{"functionCall":{"id":` + js(c.ID) + `,"name":` + js(c.Name)
	}
	if c.Args != "" {
		head += `,"args":` + c.Args
	}
	if c.Args == "" || json.Valid([]byte(c.Args)) {
		out := p.sign(part{Call: &call{ID: c.ID, Name: c.Name, Args: json.RawMessage(c.Args)}}, !p.called)
		if out.Sign != "" {
			p.raw(head+`},"thoughtSignature":`+js(out.Sign)+`}`, "")
		} else {
			p.raw(head+`}}`, "")
		}
		if out.Call.Args == nil {
			out.Call.Args = json.RawMessage("{}")
		}
		p.called, p.sent = true, append(p.sent, out)
		return true
	}
	switch end {
	case porttest.EndLength, porttest.EndRefusal: // a model that is cut here sends no call
	case porttest.EndComplete:
		p.raw(head+`}}`, "")
	default:
		p.w.Send(p.lead() + `{"candidates":[{"content":{"parts":[` + head)
		return false
	}
	return true
}

// sign gives a part its signature: every part, or only the first call.
func (p *player) sign(out part, first bool) part {
	if p.signed && (p.SignAll || first) {
		sum := crc32.ChecksumIEEE([]byte(js(out)))
		out.Sign = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "<%08x sign?> %d >>", sum, len(p.sent)))
	}
	return out
}

// parts writes parts that are no calls in one chunk.
func (p *player) parts(parts ...part) {
	var out []string
	for _, one := range parts {
		out = append(out, js(one))
	}
	p.sent = append(p.sent, parts...)
	p.raw(strings.Join(out, ","), "")
}

// raw writes a chunk with parts and a finish reason, "" for none.
func (p *player) raw(parts, finish string) {
	body := `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}`
	if parts == "" {
		body = `{"candidates":[{"content":{"role":"model"}`
	}
	if finish != "" {
		body += `,"finishReason":` + js(finish)
	}
	if p.Extra {
		body += `,"index":0,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"NEGLIGIBLE"}],"groundingMetadata":{"a":[1]}}]` +
			`,"modelVersion":"x","responseId":"abc","createTime":"2026-01-01T00:00:00Z"`
	} else {
		body += `,"index":0}]`
	}
	if finish != "" && !p.SplitEnd || p.Counting {
		body += p.counts()
	}
	p.chunk(body + `}`)
}

// counts is what is added to a chunk that counts.
func (p *player) counts() string {
	u := p.usage
	if u == (domain.Usage{}) {
		return ""
	}
	return fmt.Sprintf(`,"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d,"cachedContentTokenCount":%d,`+
		`"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}],"thoughtsTokenCount":%d}`,
		u.Input, u.Output-u.Thought, u.Input+u.Output, u.CachedRead, u.Input, u.Thought)
}

func (p *player) newline() string {
	if p.LF {
		return "\n"
	}
	return "\r\n"
}

// lead is what stands before a chunk.
func (p *player) lead() string {
	begun := p.begun
	p.begun = true
	switch {
	case p.List && begun:
		return p.newline() + "," + p.newline()
	case p.List:
		return "["
	case p.Lines:
		return ""
	case p.Extra:
		return ": alive" + p.newline() + p.newline() + "event: message" + p.newline() + "id: 1" + p.newline() + "data: "
	}
	return "data: "
}

// chunk writes one chunk.
func (p *player) chunk(body string) {
	tail := p.newline() + p.newline()
	switch {
	case p.List:
		tail = ""
	case p.Lines:
		tail = p.newline()
	}
	if p.Indented && !p.Lines {
		before := "\n"
		if !p.List {
			before = p.newline() + "data: "
		}
		body = strings.Replace(body, `{"candidates":[`, `{`+before+`  "candidates": [`+before, 1)
	}
	p.w.Send(p.lead() + body + tail)
}

func (p *player) end(r porttest.Reply) {
	switch r.End {
	case porttest.EndComplete:
		p.finish("STOP")
	case porttest.EndLength:
		p.finish("MAX_TOKENS")
	case porttest.EndRefusal:
		p.finish("SAFETY")
	default:
		p.stop(r)
		return
	}
	if p.List {
		p.w.Send("]")
	}
}

// finish writes the last chunk. A signed reply without calls has its
// signature in an empty text.
func (p *player) finish(reason string) {
	last := ""
	if p.signed && (!p.called || p.SignAll) {
		end := p.sign(part{Text: ptr("")}, true)
		p.sent = append(p.sent, end)
		last = js(end)
	}
	p.raw(last, reason)
	if p.SplitEnd && p.usage != (domain.Usage{}) {
		p.chunk("{" + strings.TrimPrefix(p.counts(), ",") + "}")
	}
}

// stop ends an answer that is not complete.
func (p *player) stop(r porttest.Reply) {
	switch r.End {
	case porttest.EndCut:
		if p.List && !p.begun {
			p.w.Send("[]")
		}
	case porttest.EndBroken:
		p.w.Flush()
		p.w.Break()
	case porttest.EndSilent:
		p.w.Hang()
	case porttest.EndMalformed:
		p.chunk(`{"candidates":[{"content":{"parts":[{"text":"lost]}`)
	case porttest.EndError:
		p.chunk(js(map[string]any{"error": errorObject(r.Fault)}))
	case porttest.EndComplete, porttest.EndLength, porttest.EndRefusal:
	}
}

func ptr(s string) *string { return &s }

func js(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	return string(data)
}

// errorObject is an error in the form of Google's services.
func errorObject(r porttest.Refusal) map[string]any {
	status := map[porttest.RefusalKind]string{
		porttest.KeyRefused: "UNAUTHENTICATED", porttest.Forbidden: "PERMISSION_DENIED", porttest.BadRequest: "INVALID_ARGUMENT",
		porttest.NoSuchModel: "NOT_FOUND", porttest.TooLong: "INVALID_ARGUMENT", porttest.TooManyTokens: "INVALID_ARGUMENT",
		porttest.LimitedRate: "RESOURCE_EXHAUSTED", porttest.SpentQuota: "RESOURCE_EXHAUSTED", porttest.ServerError: "INTERNAL",
		porttest.GatewayTimeout: "DEADLINE_EXCEEDED",
	}[r.Kind]
	if status == "" {
		status = "UNAVAILABLE"
	}
	words := r.Words
	quota := func(id string) []any {
		return []any{
			map[string]any{"@type": "type.googleapis.com/google.rpc.Help", "links": []any{}},
			map[string]any{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{map[string]any{"quotaId": id}}},
		}
	}
	object := map[string]any{"code": r.Kind.Status(), "status": status}
	switch r.Kind {
	case porttest.TooLong:
		words = "The input token count exceeds the maximum number of tokens allowed (1048576). " + words
	case porttest.LimitedRate:
		words = "Resource has been exhausted. " + words
		object["details"] = quota("GenerateRequestsPerMinutePerProjectPerModel")
	case porttest.SpentQuota:
		object["details"] = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")
	}
	object["message"] = words
	return object
}

// probe answers the list of models, in two pages.
func (s Shape) probe(w http.ResponseWriter, req *http.Request) bool {
	if req.Method != http.MethodGet || req.URL.Path != path+"/models" {
		return false
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	query := req.URL.Query()
	switch {
	case req.Header.Get("X-Goog-Api-Key") != llmtest.Canary || query.Has("key"):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`)
	case query.Get("pageSize") == "":
		w.WriteHeader(http.StatusTeapot)
	case query.Get("pageToken") == "":
		_, _ = fmt.Fprint(w, `{"models":[{"name":"models/embedding-1","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"two"}`)
	default:
		_, _ = fmt.Fprintf(w, `{"models":[{"name":"models/%s","displayName":"x","supportedGenerationMethods":["generateContent","countTokens"]}]}`, s.model())
	}
	return true
}
