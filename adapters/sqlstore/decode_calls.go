package sqlstore

import "github.com/berth-dev/berth/core/domain"

func readCallBegan(r *reader) (v domain.CallBegan) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "call":
			v.Call = readCall(r)
		case "update":
			v.Update = readCallOpened(r)
		default:
			r.skip()
		}
	}
	return v
}

func readCallOpened(r *reader) (v domain.CallOpened) {
	for key := range r.object {
		switch key {
		case "id":
			v.ID = domain.CallID(r.text())
		case "name":
			v.Name = r.text()
		case "title":
			v.Title = r.text()
		case "kind":
			v.Kind = domain.ToolKind(r.text())
		case "status":
			v.Status = domain.CallStatus(r.text())
		case "content":
			v.Content = listOf(r, readContent)
		case "locations":
			v.Locations = listOf(r, readLocation)
		case "raw_input":
			v.RawInput = r.bytes()
		default:
			r.skip()
		}
	}
	return v
}

func readCallFinished(r *reader) (v domain.CallFinished) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "call":
			v.Call = domain.CallID(r.text())
		case "failed":
			v.Failed = r.flag()
		case "interrupted":
			v.Interrupted = r.flag()
		case "text":
			v.Text = r.text()
		case "limit":
			v.Limit = r.number()
		case "content":
			v.Content = listOf(r, readContent)
		case "locations":
			v.Locations = listOf(r, readLocation)
		case "raw_output":
			v.RawOutput = r.bytes()
		default:
			r.skip()
		}
	}
	return v
}

func readLocation(r *reader) (v domain.Location) {
	for key := range r.object {
		switch key {
		case "path":
			v.Path = r.text()
		case "line":
			v.Line = int(r.number())
		default:
			r.skip()
		}
	}
	return v
}

func readPermissionGiven(r *reader) (v domain.PermissionGiven) {
	for key := range r.object {
		switch key {
		case "turn":
			v.Turn = domain.TurnID(r.text())
		case "call":
			v.Call = domain.CallID(r.text())
		case "outcome":
			v.Outcome = domain.Outcome(r.named(outcomeNumber))
		case "option":
			v.Option = r.text()
		case "rules":
			v.Rules = listOf(r, readRule)
		case "rule": // of a journal written before a question could be about several commands
			v.Rules = append(v.Rules, readRule(r))
		default:
			r.skip()
		}
	}
	return v
}

func readRule(r *reader) (v domain.Rule) {
	for key := range r.object {
		switch key {
		case "allow":
			v.Allow = r.flag()
		case "tool":
			v.Tool = r.text()
		case "scope":
			v.Scope = r.text()
		case "words":
			v.Words = listOf(r, (*reader).text)
		case "exact":
			v.Exact = r.flag()
		default:
			r.skip()
		}
	}
	return v
}
