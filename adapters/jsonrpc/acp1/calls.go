package acp1

import (
	"math"
	"strconv"

	"github.com/berth-dev/berth/core/domain"
)

// call appends the members of an announced call.
func (e *encoder) call(u domain.CallOpened) {
	e.raw(`"toolCallId":`)
	e.string(string(u.ID))
	title := u.Title
	if title == "" {
		title = u.Name
	}
	e.raw(`,"title":`)
	e.string(title)
	e.member("name", u.Name)
	e.raw(`,"kind":`)
	e.string(string(toolKind(u.Kind)))
	e.raw(`,"status":`)
	if e.string(string(u.Status)); u.Status == "" {
		e.buf = append(e.buf[:len(e.buf)-len(`""`)], `"pending"`...)
	}
	e.contents(u.Content)
	e.locations(u.Locations)
	e.json("rawInput", u.RawInput)
}

// change appends the members of a changed call. What is left out stays as it
// is on the client's side.
func (e *encoder) change(u domain.CallChanged) {
	e.raw(`"toolCallId":`)
	e.string(string(u.ID))
	e.member("title", u.Title)
	e.member("status", string(u.Status))
	e.contents(u.Content)
	e.locations(u.Locations)
	if e.zeroclaw && u.Status.Final() {
		e.body(u)
		return
	}
	e.json("rawOutput", u.RawOutput)
}

// bodyLimit bounds the text that ZeroClaw's clients get a second time.
const bodyLimit = 64 << 10

// body appends what ZeroClaw's clients read of a call that has ended: the
// text of its content as the strings rawOutput and body.
func (e *encoder) body(u domain.CallChanged) {
	var text string
	for _, c := range u.Content {
		if b, ok := c.(domain.ContentBlock); ok {
			if t, ok := b.Block.(domain.Text); ok && len(text) <= bodyLimit {
				text += t.Text
			}
		}
	}
	text = cut(text, bodyLimit)
	if u.RawOutput != nil {
		e.json("rawOutput", u.RawOutput)
	} else {
		e.member("rawOutput", text)
	}
	e.member("body", text)
}

// toolKind keeps the closed list closed.
func toolKind(k domain.ToolKind) domain.ToolKind {
	switch k {
	case domain.KindRead, domain.KindEdit, domain.KindDelete, domain.KindMove, domain.KindSearch, domain.KindExecute,
		domain.KindThink, domain.KindFetch, domain.KindSwitchMode, domain.KindOther:
		return k
	}
	return domain.KindOther
}

// contents appends the content of a call; nil leaves it out.
func (e *encoder) contents(list []domain.CallContent) {
	if list == nil {
		return
	}
	e.raw(`,"content":[`)
	for i, c := range list {
		if i > 0 {
			e.raw(`,`)
		}
		if i == e.items() {
			e.raw(`{"type":"content","content":`)
			e.block(domain.Text{Text: "[… " + strconv.Itoa(len(list)-i) + " more left out here]"})
			e.raw(`}`)
			break
		}
		switch c := c.(type) {
		case domain.ContentBlock:
			e.raw(`{"type":"content","content":`)
			e.block(c.Block)
		case domain.Diff:
			e.diff(c)
		case domain.FileContent:
			e.raw(`{"type":"content","content":`)
			e.file(c)
		}
		e.raw(`}`)
	}
	e.raw(`]`)
}

// diff appends a diff without its closing brace. A new file has no old text at
// all, which is not the same as an empty one.
func (e *encoder) diff(d domain.Diff) {
	e.raw(`{"type":"diff","path":`)
	e.string(d.Path)
	if d.Created {
		e.raw(`,"oldText":null`)
	} else {
		e.raw(`,"oldText":`)
		e.string(d.OldText)
	}
	e.raw(`,"newText":`)
	e.string(d.NewText)
}

func (e *encoder) locations(list []domain.Location) {
	if list == nil {
		return
	}
	e.raw(`,"locations":[`)
	for i, l := range list[:min(len(list), e.items())] {
		if i > 0 {
			e.raw(`,`)
		}
		e.raw(`{"path":`)
		e.string(l.Path)
		if l.Line > 0 && l.Line <= math.MaxInt32 {
			e.raw(`,"line":`)
			e.int(int64(l.Line))
		}
		e.raw(`}`)
	}
	e.raw(`]`)
}
