package acp1

import "github.com/berth-dev/berth/core/domain"

// compaction appends where a compaction stands. A summary belongs to a success
// alone, and an error to a failure.
func (e *encoder) compaction(u domain.CompactionChanged) {
	e.raw(`{"sessionUpdate":"compaction_update","compactionId":`)
	e.string(string(u.ID))
	e.raw(`,"status":`)
	e.string(string(u.Status))
	switch {
	case u.Status == domain.CompactionDone && u.Summary != "":
		e.raw(`,"summary":[`)
		e.block(domain.Text{Text: u.Summary})
		e.raw(`]`)
	case u.Status == domain.CompactionFailed:
		e.member("error", u.Error)
	}
	e.raw(`}`)
}

// summary appends a piece of a summary that is being written.
func (e *encoder) summary(u domain.CompactionText) {
	e.raw(`{"sessionUpdate":"compaction_summary_chunk","compactionId":`)
	e.string(string(u.ID))
	e.raw(`,"content":`)
	e.block(domain.Text{Text: u.Text})
	e.raw(`}`)
}
