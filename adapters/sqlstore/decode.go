package sqlstore

import (
	"fmt"

	"github.com/berth-dev/berth/core/domain"
)

// known reports whether decode understands the kind in that version.
func known(kind string, version int) bool {
	if version != payloadVersion {
		return false
	}
	switch kind {
	case kindUserSaid, kindStreamed, kindAssistantSaid, kindCallBegan, kindPermissionGiven, kindCallFinished,
		kindPlanSet, kindTitleSet, kindClientEvent, kindCompacted, kindTurnFinished:
		return true
	}
	return false
}

// decode is the inverse of encode. Texts of the record are parts of body.
func decode(kind string, version int, body string) (domain.Record, error) {
	if !known(kind, version) {
		return domain.Unknown{Kind: kind, Version: version, Payload: []byte(body)}, nil
	}
	r := &reader{s: body}
	rec := r.record(kind)
	r.end()
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w", kind, r.err)
	}
	return rec, nil
}

func (r *reader) record(kind string) domain.Record {
	switch kind {
	case kindUserSaid:
		return readUserSaid(r)
	case kindStreamed:
		return readStreamed(r)
	case kindAssistantSaid:
		return readAssistantSaid(r)
	case kindCallBegan:
		return readCallBegan(r)
	case kindPermissionGiven:
		return readPermissionGiven(r)
	case kindCallFinished:
		return readCallFinished(r)
	case kindPlanSet:
		return readPlanSet(r)
	case kindTitleSet:
		return readTitleSet(r)
	case kindClientEvent:
		return readClientEvent(r)
	case kindCompacted:
		return readCompacted(r)
	case kindTurnFinished:
		return readTurnFinished(r)
	}
	r.fail("the unknown kind " + kind)
	return nil
}

func readUserSaid(r *reader) (v domain.UserSaid) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "id":
			v.ID = domain.MessageID(r.text())
		case "blocks":
			v.Blocks = listOf(r, readBlock)
		case "command":
			v.Command = r.text()
		default:
			r.skip()
		}
	}
	return v
}

func readStreamed(r *reader) (v domain.Streamed) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "agent":
			v.Agent = r.text()
		case "provider":
			v.Model.Provider = r.text()
		case "model":
			v.Model.Model = r.text()
		case "parts":
			v.Parts = listOf(r, readPart)
		default:
			r.skip()
		}
	}
	return v
}

func readAssistantSaid(r *reader) (v domain.AssistantSaid) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "agent":
			v.Agent = r.text()
		case "provider":
			v.Model.Provider = r.text()
		case "model":
			v.Model.Model = r.text()
		case "parts":
			v.Parts = listOf(r, readPart)
		case "calls":
			v.Calls = listOf(r, readCall)
		case "opaque":
			v.Opaque = ref(r, readOpaque)
		case "finish":
			v.Finish = domain.FinishReason(r.text())
		case "truncated":
			v.Truncated = r.flag()
		case "usage":
			v.Usage = readUsage(r)
		case "cost":
			v.Cost = ref(r, readCost)
		case "window":
			v.Window = r.number()
		case "estimate":
			v.Estimate = r.number()
		default:
			r.skip()
		}
	}
	return v
}

func readPart(r *reader) (v domain.MessagePart) {
	for key := range r.object {
		switch key {
		case "id":
			v.ID = domain.MessageID(r.text())
		case "thought":
			v.Thought = r.flag()
		case "text":
			v.Text = r.text()
		default:
			r.skip()
		}
	}
	return v
}

func readCall(r *reader) (v domain.ModelCall) {
	for key := range r.object {
		switch key {
		case "id":
			v.ID = domain.CallID(r.text())
		case "provider_id":
			v.ProviderID = r.text()
		case "name":
			v.Name = r.text()
		case "args":
			v.Args = r.bytes()
		default:
			r.skip()
		}
	}
	return v
}

func readOpaque(r *reader) (v domain.Opaque) {
	for key := range r.object {
		switch key {
		case "provider":
			v.Provider = r.text()
		case "data":
			v.Data = r.bytes()
		default:
			r.skip()
		}
	}
	return v
}

func readUsage(r *reader) (v domain.Usage) {
	for key := range r.object {
		switch key {
		case "input":
			v.Input = r.number()
		case "output":
			v.Output = r.number()
		case "thought":
			v.Thought = r.number()
		case "cached_read":
			v.CachedRead = r.number()
		case "cached_write":
			v.CachedWrite = r.number()
		default:
			r.skip()
		}
	}
	return v
}

func readPlanSet(r *reader) (v domain.PlanSet) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "entries":
			v.Entries = listOf(r, readPlanEntry)
		default:
			r.skip()
		}
	}
	return v
}

func readPlanEntry(r *reader) (v domain.PlanEntry) {
	for key := range r.object {
		switch key {
		case "content":
			v.Content = r.text()
		case "priority":
			v.Priority = r.text()
		case "status":
			v.Status = r.text()
		default:
			r.skip()
		}
	}
	return v
}

func readTitleSet(r *reader) (v domain.TitleSet) {
	for key := range r.object {
		switch key {
		case "title":
			v.Title = r.text()
		default:
			r.skip()
		}
	}
	return v
}

func readClientEvent(r *reader) (v domain.ClientEvent) {
	for key := range r.object {
		switch key {
		case "type":
			v.Type = r.text()
		case "payload":
			v.Payload = r.bytes()
		case "for_model":
			v.ForModel = r.flag()
		default:
			r.skip()
		}
	}
	return v
}

func readTurnFinished(r *reader) (v domain.TurnFinished) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "stop":
			v.Stop = domain.Stop(r.named(stopNumber))
		case "failure":
			v.Failure = ref(r, readFailure)
		case "interrupted":
			v.Interrupted = r.flag()
		case "usage":
			v.Usage = readUsage(r)
		default:
			r.skip()
		}
	}
	return v
}

func readFailure(r *reader) (v domain.Failure) {
	for key := range r.object {
		switch key {
		case "code":
			v.Code = domain.Code(r.named(codeNumber))
		case "msg":
			v.Msg = r.text()
		default:
			r.skip()
		}
	}
	return v
}
