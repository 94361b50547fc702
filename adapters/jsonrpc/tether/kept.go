package tether

// What is received is confirmed at the latest after so many frames or bytes.
const (
	confirmFrames = 32
	confirmBytes  = 32 << 10
)

// unconfirmedBytes is what may stay unconfirmed for ever, when nothing follows:
// waiting for less to be held would be waiting for ever.
const unconfirmedBytes = 2 * confirmBytes

// kept are the frames of ours that the peer has not confirmed. Frames have no
// numbers on the wire: both ends count.
type kept struct {
	confirmed uint64   // frames of ours that the peer has
	frames    [][]byte // those behind, as they go out
	size      int      // bytes of frames
	next      int      // the first of frames that this socket has not had
}

// add keeps one more.
func (k *kept) add(frame []byte) {
	k.frames = append(k.frames, frame)
	k.size += len(frame)
}

// full reports whether a frame of so many bytes has to wait until the peer has
// confirmed more.
func (k *kept) full(bytes, hold int) bool { return k.size > unconfirmedBytes && k.size+bytes > hold }

// take returns the next frame for this socket; false when it has had all.
func (k *kept) take() ([]byte, bool) {
	if k.next == len(k.frames) {
		return nil, false
	}
	k.next++
	return k.frames[k.next-1], true
}

// possible reports whether a peer that has so many frames of ours can go on
// from what is kept.
func (k *kept) possible(received uint64) bool {
	return received >= k.confirmed && received-k.confirmed <= uint64(len(k.frames))
}

// trim drops what the peer has, and reports whether that is anything. A count
// that is not possible drops nothing.
func (k *kept) trim(received uint64) bool {
	if received == k.confirmed || !k.possible(received) {
		return false
	}
	n := int(received - k.confirmed)
	for i, frame := range k.frames[:n] {
		k.size -= len(frame)
		k.frames[i] = nil
	}
	k.frames = k.frames[n:]
	k.next = max(k.next-n, 0)
	k.confirmed = received
	return true
}

// forget drops everything.
func (k *kept) forget() { k.frames, k.size, k.next = nil, 0, 0 }

// arrived counts the peer's frames.
type arrived struct {
	all    uint64 // that Read took
	due    bool   // a confirmation is to be written
	frames int    // since the last one
	bytes  int
}

// add counts one, and reports whether a confirmation has become due.
func (a *arrived) add(bytes int) bool {
	a.all++
	a.frames++
	a.bytes += bytes
	if a.due || a.frames < confirmFrames && a.bytes < confirmBytes {
		return false
	}
	a.due = true
	return true
}

// told notes that the peer is told of all that has arrived.
func (a *arrived) told() { a.due, a.frames, a.bytes = false, 0, 0 }
