package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/berth-dev/berth/adapters/llm"
)

// receive reads one answer in whatever form it comes: events, the list of
// chunks that servers send which do not know alt=sse, or bare chunks.
func (m *Model) receive(x *llm.Exchange, emit llm.Emit) error {
	defer x.Close()
	r := newReply(m, x, emit)
	err := r.read()
	if err != nil {
		r.costs()
	}
	return err
}

func (r *reply) read() error {
	body, first, err := begin(r.x)
	if err != nil {
		return r.x.Cut(err)
	}
	switch first {
	case '<':
		return r.x.NotAnAPI("a web page")
	case '[', '{':
		return r.values(body, first == '[')
	}
	return r.events(body)
}

// begin reads up to the first byte that is no white space. The reader it
// returns gives that byte and all that follow.
func begin(r io.Reader) (io.Reader, byte, error) {
	const bom = "\xEF\xBB\xBF"
	buf := make([]byte, 0, 512)
	for {
		rest := bytes.TrimLeft(buf, " \t\r\n")
		if after, ok := bytes.CutPrefix(rest, []byte(bom)); ok {
			rest = bytes.TrimLeft(after, " \t\r\n")
		}
		if len(rest) > 0 && (len(rest) >= len(bom) || rest[0] != bom[0]) {
			return io.MultiReader(bytes.NewReader(rest), r), rest[0], nil
		}
		buf = rest
		if cap(buf)-len(buf) < 512 {
			buf = append(make([]byte, 0, 1024), rest...)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil && n == 0 {
			if len(rest) > 0 {
				return bytes.NewReader(rest), rest[0], nil
			}
			return nil, 0, err
		}
	}
}

// alive notes a sign of life. After a finish reason nothing is waited for as
// long as for text, unless the server gives one with every chunk.
func (r *reply) alive() {
	if r.finish == "" || r.early {
		r.x.Alive()
	}
}

// events reads a stream of server-sent events.
func (r *reply) events(body io.Reader) error {
	events := llm.NewEvents(body, r.alive)
	for {
		ev, err := events.Next()
		if err != nil {
			return r.end(err)
		}
		if string(bytes.TrimSpace(ev.Data)) == "[DONE]" { // no mark of this wire, but proxies add it
			return r.over()
		}
		if string(ev.Name) == "error" {
			return r.x.Refused(refusalOf(ev.Data))
		}
		if err := r.take(ev.Data); err != nil {
			return err
		}
	}
}

// refusalOf reads an error event, whatever is in it.
func refusalOf(data []byte) llm.Refusal {
	if refusal, ok := llm.ParseRefusal(data); ok {
		return refusal
	}
	return llm.Refusal{Message: string(data), After: -1}
}

// values reads chunks that are JSON values: the elements of a list, or one
// after the other.
func (r *reply) values(body io.Reader, list bool) error {
	in := &bounded{r: body, left: llm.MaxEvent}
	dec := json.NewDecoder(in)
	failed := func(err error) error {
		switch {
		case in.err != nil && !errors.Is(in.err, io.EOF):
			return r.end(in.err)
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return r.end(io.EOF)
		}
		return r.x.Broken("it is no JSON of the expected form")
	}
	if list {
		if _, err := dec.Token(); err != nil {
			return failed(err)
		}
	}
	for !list || dec.More() {
		var data json.RawMessage
		if err := dec.Decode(&data); err != nil {
			return failed(err)
		}
		in.left = llm.MaxEvent
		r.alive()
		if err := r.take(data); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return failed(err)
	}
	return r.over()
}

// over ends the reply at a mark that nothing follows. The connection of one
// that is complete can be used again.
func (r *reply) over() error {
	if r.finish != "" {
		r.x.Drain()
	}
	return r.end(nil)
}

// bounded limits how much is read for one value, and keeps the error of the
// reader apart from those of the decoder.
type bounded struct {
	r    io.Reader
	left int
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.err = llm.ErrTooLong
		return 0, b.err
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil {
		b.err = err
	}
	return n, err
}

// take takes in one chunk.
func (r *reply) take(data []byte) error {
	if p, ok := scan(data); ok {
		return r.piece(p)
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if refusal, ok := llm.ParseRefusal(data); ok {
			return r.x.Refused(refusal)
		}
		return r.x.Broken("it holds an event that is no JSON of the expected form")
	}
	if llm.Present(c.Error) {
		return r.x.Refused(refusalOf(data))
	}
	if !c.says() {
		if refusal, ok := llm.ParseRefusal(data); ok {
			return r.x.Refused(refusal)
		}
	}
	return r.chunk(&c)
}
