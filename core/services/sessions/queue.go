package sessions

import "github.com/berth-dev/berth/core/domain"

// admitted returns the turn that runs and those that wait. The caller holds the
// registry's mutex.
func (sl *slot) admitted() domain.QueueChanged {
	var q domain.QueueChanged
	for i, t := range sl.queue {
		if i == 0 {
			q.Running = t.adm.Turn
			continue
		}
		q.Queued = append(q.Queued, domain.QueuedTurn{Turn: t.adm.Turn, Blocks: t.adm.Blocks})
	}
	return q
}

// showQueue tells observers which turns are admitted.
func (sl *slot) showQueue() { sl.live.att.show(sl.admitted()) }

// showEnd tells observers which turns are admitted after the end of one.
func (sl *slot) showEnd(e ended) {
	q := sl.admitted()
	if e.turn != "" {
		q.Ended = &domain.TurnEnded{Turn: e.turn, Stop: e.outcome.Stop}
		if e.err != nil {
			q.Ended.Stop, q.Ended.Why = 0, domain.FailureOf(e.err).Msg
		}
	}
	sl.live.att.show(q)
}
