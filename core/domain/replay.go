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
// Updates, plus the conversation itself, plus a mark where a turn failed or
// was interrupted; minus what only makes sense as of now (usage, title),
// which Conversation gives once at the end.
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
		if mark := turnMark(r); mark != "" {
			return []Update{AgentText{ID: MessageID(string(r.Turn) + "-end"), Text: mark}}
		}
		return nil
	case TitleSet, Streamed:
		return nil
	case Compacted:
		return Updates(r)[:1]
	case CallBegan, CallFinished, PlanSet, PermissionGiven, ClientEvent, Unknown:
		return Updates(r)
	}
	return nil
}

// turnMark is the line that tells a reader of the history that a turn did
// not end by itself. A cancelled turn needs none: the person did it.
func turnMark(r TurnFinished) string {
	switch {
	case r.Interrupted:
		return "[Interrupted: the agent stopped before this turn ended.]"
	case r.Failure != nil:
		return "[This turn failed: " + r.Failure.Msg + "]"
	}
	return ""
}

// status is how the compaction ended.
func (r Compacted) status() CompactionStatus {
	if r.Cancelled {
		return CompactionCancelled
	}
	return CompactionDone
}
