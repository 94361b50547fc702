package openclaw

// event takes what the Gateway tells. It is called by one goroutine.
func (t *turn) event(e runEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = false // it goes on itself
	if t.holding > 0 {
		t.keep(e)
		return
	}
	t.take(e)
}

// The bounds of what is kept while something is made up for.
const (
	mostHeld     = 4096
	mostHeldSize = 16 << 20
)

// keep holds an event. What is too much is left out and made up for later; how
// the run ended is kept, once.
func (t *turn) keep(e runEvent) {
	full := len(t.held) >= mostHeld || t.heldSize+e.size > mostHeldSize
	if full && (!e.ends() || t.heldEnd) {
		t.said.doubt()
		return
	}
	t.held, t.heldSize, t.heldEnd = append(t.held, e), t.heldSize+e.size, t.heldEnd || e.ends()
}

// hold keeps what the Gateway tells until release, which is called as often.
func (t *turn) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holding++
	t.said.doubt()
}

func (t *turn) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holding--; t.holding > 0 {
		return
	}
	held := t.held
	t.held, t.heldSize, t.heldEnd = nil, 0, false
	t.said.doubts++ // what was made up for may be what is held, too
	for _, e := range held {
		if t.holding > 0 {
			t.keep(e)
			continue
		}
		t.take(e)
	}
}
