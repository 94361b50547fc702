package fs

// advance takes the results that are next in order. The caller holds order.
func (s *sweep) advance() {
	for len(s.front) > 0 && !s.stopped.Load() {
		at := &s.front[len(s.front)-1]
		if !at.node.listed {
			return
		}
		s.tally.add(at.node.tally)
		at.node.tally = tally{}
		if at.next == len(at.node.items) {
			s.front = s.front[:len(s.front)-1]
			continue
		}
		it := &at.node.items[at.next]
		if it.sub == nil && !it.done {
			return
		}
		at.next++
		if sub := it.sub; sub != nil {
			*it = item{}
			s.front = append(s.front, cursor{sub, 0})
			continue
		}
		s.tally.add(it.tally)
		if it.result != nil && s.visitor.take(it.result) {
			s.stopped.Store(true)
		}
		*it = item{}
	}
}

// rest takes what was done out of order before a budget ran out.
func (s *sweep) rest() {
	if s.limit == "" {
		return
	}
	for n := len(s.front) - 1; n >= 0; n-- {
		s.tally.add(s.front[n].node.tally)
		if s.leftover(s.front[n].node.items[s.front[n].next:]) {
			return
		}
	}
}

func (s *sweep) leftover(items []item) (enough bool) {
	for i := range items {
		it := &items[i]
		switch {
		case it.sub != nil && it.sub.listed:
			s.tally.add(it.sub.tally)
			if s.leftover(it.sub.items) {
				return true
			}
		case it.done:
			s.tally.add(it.tally)
			if it.result != nil && s.visitor.take(it.result) {
				return true
			}
		}
	}
	return false
}
