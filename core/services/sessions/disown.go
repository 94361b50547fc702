package sessions

// Disown says that a client of that name will not come back: the sessions of
// those that were lost are closed, and their turns end, with a domain cause. It
// does not block.
func (s *Service) Disown(name string, cause error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	for _, sl := range s.reg.slots {
		if sl.client == nil && sl.next == nil && sl.state == ready && sl.live.att.was(name) {
			sl.stopGrace()
			s.shut(sl, cause, "disconnect")
			s.leave(sl)
		}
	}
}

// was reports whether the one who was attached last has that name.
func (a *Attachment) was(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.principal == name
}
