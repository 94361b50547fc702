package tether

import (
	"bytes"
	"strconv"
)

// The signals begin like no JSON-RPC message does. A frame of the peer's that
// does is not one, and travels behind a space, which JSON does not see.
const (
	mark     = `{"link":`
	received = mark + `{"received":`
	eof      = mark + `{"eof":true}}`
)

// meaning is what a frame says to the link.
type meaning uint8

const (
	nothing  meaning = iota // it is the conversation's
	confirms                // so many frames have arrived
	ends                    // no frame follows
)

// signal tells what a frame says to the link.
func signal(frame []byte) (meaning, uint64) {
	if !bytes.HasPrefix(frame, []byte(mark)) {
		return nothing, 0
	}
	if string(frame) == eof {
		return ends, 0
	}
	rest, ok := bytes.CutPrefix(frame, []byte(received))
	if !ok {
		return nothing, 0
	}
	n, err := strconv.ParseUint(string(bytes.TrimSuffix(rest, []byte("}}"))), 10, 64)
	if err != nil {
		return nothing, 0
	}
	return confirms, n
}

// confirmation is the signal that so many frames have arrived.
func confirmation(n uint64) []byte {
	return append(strconv.AppendUint([]byte(received), n, 10), "}}"...)
}

// disguise returns a copy of a frame that is no signal.
func disguise(frame []byte) []byte {
	if bytes.HasPrefix(frame, []byte(mark)) {
		return append([]byte{' '}, frame...)
	}
	return bytes.Clone(frame)
}
