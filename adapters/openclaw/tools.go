package openclaw

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// toolCall is a tool call of a run.
type toolCall struct {
	opened domain.CallOpened
	args   json.RawMessage
	title  string // the Gateway's, before the call is told
	told   bool   // the editor knows it
	final  bool
}

// call finds a call of the run, or notes it.
func (t *turn) call(id string) *toolCall {
	c := t.tools[id]
	if c == nil {
		c = &toolCall{opened: domain.CallOpened{ID: t.session.callID(t.run, id)}}
		t.tools[id] = c
	}
	return c
}

// tool takes an event of the stream tool.
func (t *turn) tool(data fields) {
	id := data.text("toolCallId")
	if id == "" {
		return
	}
	c := t.call(id)
	switch data.text("phase") {
	case "start":
		t.open(c, data.text("name"), data["args"])
	case "update":
		t.open(c, data.text("name"), nil)
		t.progress(c, data["partialResult"])
	case "result":
		t.open(c, data.text("name"), nil)
		t.conclude(c, data["result"], data.flag("isError"))
	}
}

// item takes an event of the stream item: what the model says before it calls
// a tool, and the titles of calls. They are all that is told of a call to a
// connection that did not begin the run.
func (t *turn) item(data fields) {
	if data.text("kind") == "preamble" {
		t.speak(t.said.preamble(data.text("itemId"), data.text("progressText")))
		return
	}
	id := data.text("toolCallId")
	if id == "" || data.text("kind") != "tool" {
		return
	}
	c := t.call(id)
	c.title = brief(data.text("title"))
	if data.text("phase") != "end" || c.final {
		return
	}
	if c.told { // its result is on its way, or the end of the run says how it ended
		return
	}
	t.open(c, data.text("name"), nil)
	t.conclude(c, nil, data.text("status") == "failed" || data.text("status") == "error")
}

// open tells the editor of a call, once.
func (t *turn) open(c *toolCall, name string, args json.RawMessage) {
	if c.told {
		return
	}
	c.told, c.args = true, args
	t.said.calls++
	cwd, base := t.session.places()
	describe(&c.opened, shortened(name), c.title, args, or(base, cwd))
	c.opened.Status = domain.CallInProgress
	t.speak([]domain.Update{c.opened})
}

// progress tells what a call has brought so far.
func (t *turn) progress(c *toolCall, result json.RawMessage) {
	if c.final || len(result) == 0 {
		return
	}
	t.speak([]domain.Update{domain.CallChanged{
		ID: c.opened.ID, Status: domain.CallInProgress, Content: contentOf(result), RawOutput: result,
	}})
}

// conclude tells how a call ended, once.
func (t *turn) conclude(c *toolCall, result json.RawMessage, bad bool) {
	if c.final {
		return
	}
	c.final = true
	u := domain.CallChanged{ID: c.opened.ID, Status: domain.CallCompleted, RawOutput: result}
	if bad {
		u.Status = domain.CallFailed
	}
	u.Content = contentOf(result)
	if diffs := diffsOf(c.opened.Name, c.args, c.opened.Locations); len(diffs) > 0 && !bad {
		u.Content = append(diffs, u.Content...)
	}
	t.speak([]domain.Update{u})
}

// endTools ends what the Gateway left open: nothing more will be told of it.
func (t *turn) endTools(o outcome) {
	var ids []string
	for id, c := range t.tools {
		if c.told && !c.final {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		c := t.tools[id]
		c.final = true
		status := domain.CallFailed
		if o.err == nil && o.stop == stopEnd {
			status = domain.CallCompleted
		}
		t.speak([]domain.Update{domain.CallChanged{ID: c.opened.ID, Status: status}})
	}
}

// plan takes an event of the stream plan.
func (t *turn) plan(data fields) {
	list := data["steps"]
	if len(list) == 0 {
		list = data["plan"]
	}
	var entries []domain.PlanEntry
	for e := range jsonrpc.Elements(list) {
		f := fieldsOf(e)
		entry := domain.PlanEntry{Content: or(text(e), f.first("step", "content", "title", "text")), Priority: "medium", Status: "pending"}
		switch f.text("status") {
		case "in_progress", "completed":
			entry.Status = f.text("status")
		}
		if entry.Content != "" {
			entries = append(entries, entry)
		}
	}
	if entries != nil {
		t.speak([]domain.Update{domain.PlanChanged{Entries: entries}})
	}
}

// describe fills in what is told of a call. base is where the tools work; ""
// when that is unknown.
func describe(c *domain.CallOpened, name, title string, args json.RawMessage, base string) {
	f := fieldsOf(args)
	c.Name, c.Kind = name, kindOf(name)
	if string(args) != "null" {
		c.RawInput = args
	}
	c.Locations = locationsOf(f, base)
	c.Title = or(title, name)
	switch command := trimmed(f.text("command")); {
	case c.Kind == domain.KindExecute && command != "":
		c.Title = shortened(command)
	case title == "" && len(c.Locations) > 0:
		c.Title = name + " " + c.Locations[0].Path
	case title == "" && f.first("query", "pattern", "url") != "":
		c.Title = name + " " + shortened(f.first("query", "pattern", "url"))
	}
	if c.Title == "" {
		c.Title = "tool"
	}
}

// mostTitle bounds a title, in bytes.
const mostTitle = 300

func shortened(s string) string {
	s = brief(s)
	if len(s) > mostTitle {
		s = strings.ToValidUTF8(s[:mostTitle], "") + "…"
	}
	return s
}

// contentOf is what a result shows: its text, and its pictures.
func contentOf(result json.RawMessage) []domain.CallContent {
	if len(result) == 0 || string(result) == "null" {
		return nil
	}
	if result[0] == '"' {
		return shown(text(result))
	}
	f := fieldsOf(result)
	if result[0] == '[' {
		return blocksContent(result)
	}
	if content := f["content"]; len(content) > 0 && content[0] == '[' {
		return blocksContent(content)
	}
	for _, n := range []string{"text", "content", "message", "error", "output"} {
		if s := f.text(n); s != "" {
			return shown(s)
		}
	}
	return nil
}

func shown(s string) []domain.CallContent {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: s}}}
}

func blocksContent(list json.RawMessage) []domain.CallContent {
	var out []domain.CallContent
	for e := range jsonrpc.Elements(list) {
		f := fieldsOf(e)
		switch f.text("type") {
		case "text":
			out = append(out, shown(f.text("text"))...)
		case "image":
			if data, err := base64.StdEncoding.DecodeString(f.text("data")); err == nil && len(data) > 0 {
				out = append(out, domain.ContentBlock{Block: domain.Image{MIME: f.text("mimeType"), Data: data}})
			}
		}
	}
	return out
}

// diffsOf are the changes that an edit's arguments describe.
func diffsOf(name string, args json.RawMessage, at []domain.Location) []domain.CallContent {
	if kindOf(name) != domain.KindEdit || len(at) == 0 {
		return nil
	}
	f := fieldsOf(args)
	file := at[0].Path
	if f.has("content") && f["content"][0] == '"' {
		return []domain.CallContent{domain.Diff{Path: file, NewText: f.text("content"), Created: true}}
	}
	var out []domain.CallContent
	add := func(f fields) {
		before, after := f.exact("oldText", "old_string", "oldString"), f.exact("newText", "new_string", "newString")
		if before != "" || after != "" {
			out = append(out, domain.Diff{Path: file, OldText: before, NewText: after})
		}
	}
	add(f)
	for e := range jsonrpc.Elements(f["edits"]) {
		add(fieldsOf(e))
	}
	return out
}
