package jsonrpc

import "fmt"

// Frames is the transport a Conn needs: whole messages, in order. Stdio lines
// (NewStdio), WebSocket messages and test pipes satisfy it; framestest is its
// suite.
//
// Read is called by one goroutine, Write by one other; Close by anyone, also
// while the others run.
type Frames interface {
	// Read returns the next frame, which is the caller's to keep. It returns
	// io.EOF after the last frame when the peer ended its side in an orderly
	// way, and a *TooLongError for a frame over the limit, after which the next
	// Read goes on with the frame behind it. Every other error is final.
	Read() ([]byte, error)
	// Write sends one frame, whole or not at all. It does not keep the slice.
	Write(frame []byte) error
	// Close ends both directions and unblocks a Read and a Write in progress
	// as far as the system allows. It is idempotent.
	Close() error
}

// BatchWriter is what a newline-framed transport offers in addition: several
// frames, each already ended by a newline, in one write.
type BatchWriter interface {
	WriteBatch(lines []byte) error
}

// CloseWriter is what a transport offers that can end its outgoing direction
// alone. The peer reads what was sent and then io.EOF.
type CloseWriter interface {
	CloseWrite() error
}

// TooLongError says that an inbound frame passed the limit and was skipped.
type TooLongError struct {
	Limit int // bytes
}

// Error names the limit.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("message is longer than %d bytes", e.Limit)
}
