package openclawtest

import (
	"errors"
	"io"
	"sync"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// Pipe makes two connected ends in memory. Each holds up to pipeFrames frames
// that were not read.
func Pipe() (a, b jsonrpc.Frames) {
	over := make(chan struct{})
	ab, ba := make(chan []byte, pipeFrames), make(chan []byte, pipeFrames)
	var once sync.Once
	end := func() { once.Do(func() { close(over) }) }
	return &pipe{ba, ab, over, end}, &pipe{ab, ba, over, end}
}

const pipeFrames = 4096

type pipe struct {
	in, out chan []byte
	over    chan struct{}
	end     func()
}

var errPipe = errors.New("the connection was cut")

// Read returns the next frame; io.EOF once the other end was closed and all
// was read.
func (p *pipe) Read() ([]byte, error) {
	select {
	case f := <-p.in:
		return f, nil
	default:
	}
	select {
	case f := <-p.in:
		return f, nil
	case <-p.over:
		select {
		case f := <-p.in:
			return f, nil
		default:
			return nil, io.EOF
		}
	}
}

// Write sends a frame.
func (p *pipe) Write(frame []byte) error {
	select {
	case <-p.over:
		return errPipe
	default:
	}
	select {
	case p.out <- append([]byte(nil), frame...):
		return nil
	case <-p.over:
		return errPipe
	}
}

// Close ends both directions.
func (p *pipe) Close() error {
	p.end()
	return nil
}
