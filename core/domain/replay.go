package domain

// Updates returns what a client is told live when r is appended. Text and
// thought are not among them: they were streamed before the record existed.
// What the session has cost is not known here; who tells it adds it.
func Updates(r Record) []Update {
	switch r := r.(type) {
	case CallBegan:
		return []Update{r.Update}
	case CallFinished:
		status := CallCompleted
		if r.Failed || r.Interrupted {
			status = CallFailed
		}
		return []Update{CallChanged{
			ID: r.Call, Status: status, Title: deliveryTitle(r.Content),
			Content: callContent(r), Locations: r.Locations, RawOutput: r.RawOutput,
		}}
	case PlanSet:
		return []Update{PlanChanged{Entries: r.Entries}}
	case TitleSet:
		return []Update{InfoChanged{Title: r.Title}}
	case AssistantSaid:
		if r.Usage == (Usage{}) || r.Window == 0 {
			return nil
		}
		return []Update{UsageChanged{Used: r.Usage.Context(), Size: r.Window}}
	case Compacted:
		ups := []Update{CompactionChanged{ID: r.ID, Status: r.status(), Summary: r.Summary}}
		if r.Window > 0 && !r.Cancelled {
			ups = append(ups, UsageChanged{Used: r.After, Size: r.Window})
		}
		return ups
	case UserSaid, Streamed, PermissionGiven, ClientEvent, TurnFinished, Unknown:
		return nil
	}
	return nil
}

// callContent is what a finished call displays: its own content, else its text.
func callContent(r CallFinished) []CallContent {
	if r.Content != nil || r.Text == "" {
		return r.Content
	}
	return []CallContent{ContentBlock{Block: Text{Text: r.Text}}}
}

// deliveryTitle is what a call is called once it has delivered a file; "" for
// every other.
func deliveryTitle(list []CallContent) string {
	for _, c := range list {
		if f, ok := c.(FileContent); ok && f.Delivered {
			return f.Title
		}
	}
	return ""
}

// Replay returns what a client is told when r is read back by load. It is
// Updates, plus the conversation itself, plus how a turn ended that did not end
// by itself, in words too where it failed or was interrupted; minus what only
// makes sense as of now (usage, title), which Conversation gives once at the
// end.
func Replay(r Record) []Update {
	switch r := r.(type) {
	case UserSaid:
		ups := make([]Update, len(r.Blocks))
		for i, b := range r.Blocks {
			ups[i] = UserMessage{ID: r.ID, Block: b}
		}
		return ups
	case AssistantSaid:
		ups := make([]Update, 0, len(r.Parts))
		for _, p := range r.Parts {
			if p.Thought {
				ups = append(ups, AgentThought{ID: p.ID, Text: p.Text})
			} else {
				ups = append(ups, AgentText{ID: p.ID, Text: p.Text})
			}
		}
		return ups
	case TurnFinished:
		return endOf(r)
	case TitleSet, Streamed:
		return nil
	case Compacted:
		return Updates(r)[:1]
	case CallBegan, CallFinished, PlanSet, PermissionGiven, ClientEvent, Unknown:
		return Updates(r)
	}
	return nil
}

// endOf tells a reader of the history that a turn did not end by itself. What
// every client shows is a line of text, and only where something went wrong: a
// person who cancelled a turn knows.
func endOf(r TurnFinished) []Update {
	end := TurnEnded{Turn: r.Turn, Stop: r.Stop, Past: true}
	mark := ""
	switch {
	case r.Interrupted:
		end.Why = "Interrupted: the agent stopped before this turn ended."
		mark = "[" + end.Why + "]"
	case r.Failure != nil:
		end.Why = r.Failure.Msg
		mark = "[This turn failed: " + end.Why + "]"
	case r.Stop == StopEndTurn, r.Stop == 0:
		return nil
	default:
		return []Update{end}
	}
	return []Update{AgentText{ID: MessageID(string(r.Turn) + "-end"), Text: mark}, end}
}

// status is how the compaction ended.
func (r Compacted) status() CompactionStatus {
	if r.Cancelled {
		return CompactionCancelled
	}
	return CompactionDone
}
