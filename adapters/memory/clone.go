package memory

import (
	"slices"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// cloner copies stored values deeply and, as it passes every text on the
// way, notices what a store must refuse.
type cloner struct{ err error }

func cloneSession(s domain.Session) (domain.Session, error) {
	var c cloner
	for _, t := range append([]string{
		string(s.ID), s.Key, s.Label, s.Agent, s.Cwd, s.CwdGiven, s.Workspace, s.Title, string(s.Parent), s.Client,
	}, s.Additional...) {
		text(&c, t)
	}
	return copySession(s), c.err
}

func copySession(s domain.Session) domain.Session {
	s.Additional = slices.Clone(s.Additional)
	s.CreatedAt, s.UpdatedAt = stamp(s.CreatedAt), stamp(s.UpdatedAt)
	return s
}

func cloneRecords(recs []domain.Record) ([]domain.Record, error) {
	var c cloner
	return list(recs, c.record), c.err
}

func copyRecord(r domain.Record) domain.Record {
	var c cloner
	return c.record(r)
}

// text passes a text through unless it is not UTF-8.
func text[S ~string](c *cloner, s S) S {
	if c.err == nil && !utf8.ValidString(string(s)) {
		c.err = domain.Errorf(domain.InvalidArgument, "A text to be stored is not valid UTF-8")
	}
	return s
}

func (c *cloner) refuse(v any) {
	if c.err == nil {
		c.err = domain.Errorf(domain.InvalidArgument, "A %T cannot be stored", v)
	}
}

// list copies a list one by one; nil stays nil and empty stays empty.
func list[T any](in []T, one func(T) T) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i, v := range in {
		out[i] = one(v)
	}
	return out
}

func pointer[T any](in *T, one func(T) T) *T {
	if in == nil {
		return nil
	}
	out := one(*in)
	return &out
}

func (c *cloner) record(r domain.Record) domain.Record {
	switch r := r.(type) {
	case domain.UserSaid:
		text(c, r.Turn)
		text(c, r.ID)
		text(c, r.Command)
		r.Blocks = list(r.Blocks, c.block)
		return r
	case domain.Streamed:
		for _, s := range []string{string(r.Turn), r.Agent, r.Model.Provider, r.Model.Model} {
			text(c, s)
		}
		r.Parts = list(r.Parts, c.part)
		return r
	case domain.AssistantSaid:
		return c.assistantSaid(r)
	case domain.CallBegan:
		text(c, r.Turn)
		r.Call = c.call(r.Call)
		r.Update = c.callOpened(r.Update)
		return r
	case domain.PermissionGiven:
		text(c, r.Turn)
		text(c, r.Call)
		text(c, r.Option)
		r.Rules = list(r.Rules, c.rule)
		return r
	case domain.CallFinished:
		return c.callFinished(r)
	case domain.PlanSet:
		text(c, r.Turn)
		r.Entries = list(r.Entries, c.planEntry)
		return r
	case domain.TitleSet:
		text(c, r.Title)
		return r
	case domain.ClientEvent:
		text(c, r.Type)
		r.Payload = slices.Clone(r.Payload)
		return r
	case domain.Compacted:
		return c.compacted(r)
	case domain.TurnFinished:
		text(c, r.Turn)
		r.Failure = pointer(r.Failure, c.failure)
		return r
	case domain.Unknown:
		text(c, r.Kind)
		r.Payload = slices.Clone(r.Payload)
		return r
	}
	c.refuse(r)
	return r
}

func (c *cloner) assistantSaid(r domain.AssistantSaid) domain.AssistantSaid {
	text(c, r.Turn)
	text(c, r.Agent)
	text(c, r.Model.Provider)
	text(c, r.Model.Model)
	text(c, r.Finish)
	r.Parts = list(r.Parts, c.part)
	r.Calls = list(r.Calls, c.call)
	r.Opaque = pointer(r.Opaque, c.opaque)
	r.Cost = pointer(r.Cost, sameCost)
	return r
}

func sameCost(m domain.MicroUSD) domain.MicroUSD { return m }

func (c *cloner) compacted(r domain.Compacted) domain.Compacted {
	text(c, r.Turn)
	text(c, r.ID)
	for _, s := range []string{r.Agent, r.Model.Provider, r.Model.Model, r.Summary} {
		text(c, s)
	}
	r.Plain = pointer(r.Plain, c.failure)
	r.Cost = pointer(r.Cost, sameCost)
	return r
}

func (c *cloner) callFinished(r domain.CallFinished) domain.CallFinished {
	text(c, r.Turn)
	text(c, r.Call)
	text(c, r.Text)
	r.Content = list(r.Content, c.content)
	r.Locations = list(r.Locations, c.location)
	r.RawOutput = slices.Clone(r.RawOutput)
	return r
}

func (c *cloner) callOpened(u domain.CallOpened) domain.CallOpened {
	text(c, u.ID)
	text(c, u.Name)
	text(c, u.Title)
	text(c, u.Kind)
	text(c, u.Status)
	u.Content = list(u.Content, c.content)
	u.Locations = list(u.Locations, c.location)
	u.RawInput = slices.Clone(u.RawInput)
	return u
}

func (c *cloner) block(b domain.Block) domain.Block {
	switch b := b.(type) {
	case domain.Text:
		text(c, b.Text)
		return b
	case domain.Image:
		text(c, b.MIME)
		text(c, b.URI)
		b.Data = slices.Clone(b.Data)
		return b
	case domain.Audio:
		text(c, b.MIME)
		b.Data = slices.Clone(b.Data)
		return b
	case domain.Resource:
		text(c, b.URI)
		text(c, b.MIME)
		text(c, b.Text)
		b.Blob = slices.Clone(b.Blob)
		return b
	case domain.Link:
		for _, s := range []string{b.URI, b.Name, b.Title, b.Description, b.MIME} {
			text(c, s)
		}
		return b
	case domain.Attachment:
		for _, s := range []string{b.Path, b.SHA256, b.MIME, b.Name, b.URI} {
			text(c, s)
		}
		return b
	}
	c.refuse(b)
	return b
}

func (c *cloner) content(v domain.CallContent) domain.CallContent {
	switch v := v.(type) {
	case domain.ContentBlock:
		v.Block = c.block(v.Block)
		return v
	case domain.Diff:
		text(c, v.Path)
		text(c, v.OldText)
		text(c, v.NewText)
		return v
	case domain.FileContent:
		c.block(v.File)
		text(c, v.Title)
		v.Data = nil
		return v
	}
	c.refuse(v)
	return v
}

func (c *cloner) part(p domain.MessagePart) domain.MessagePart {
	text(c, p.ID)
	text(c, p.Text)
	return p
}

func (c *cloner) call(v domain.ModelCall) domain.ModelCall {
	text(c, v.ID)
	text(c, v.ProviderID)
	text(c, v.Name)
	v.Args = slices.Clone(v.Args)
	return v
}

func (c *cloner) opaque(o domain.Opaque) domain.Opaque {
	text(c, o.Provider)
	o.Data = slices.Clone(o.Data)
	return o
}

func (c *cloner) location(l domain.Location) domain.Location {
	text(c, l.Path)
	return l
}

func (c *cloner) rule(r domain.Rule) domain.Rule {
	text(c, r.Tool)
	text(c, r.Scope)
	r.Words = list(r.Words, func(w string) string { return text(c, w) })
	return r
}

func (c *cloner) failure(f domain.Failure) domain.Failure {
	text(c, f.Msg)
	return f
}

func (c *cloner) planEntry(e domain.PlanEntry) domain.PlanEntry {
	text(c, e.Content)
	text(c, e.Priority)
	text(c, e.Status)
	return e
}
