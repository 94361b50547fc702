package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/berth-dev/berth/core/domain"
)

const (
	// chunk is how much of a large file is looked at in one step.
	chunk = 256 << 10
	// maxSkip bounds how far into a large file a line is looked for.
	maxSkip = 512 << 20
)

// readPart reads a window of a file too large to be held, in chunks. The
// whole number of lines is not known then.
func readPart(ctx context.Context, f *os.File, win window) (page, error) {
	st, err := f.Stat()
	if err != nil {
		return page{}, err
	}
	r := &parts{ctx: ctx, f: f, base: make([]byte, 0, chunk)}
	p := page{size: st.Size(), first: win.offset, last: win.offset - 1}
	if err := r.skip(win.offset - 1); err != nil {
		return page{}, err
	}
	for p.last-p.first+1 < min(win.limit, maxReadLines) {
		line, ended, err := r.line()
		if err != nil {
			return page{}, err
		}
		if len(line) == 0 && !ended {
			break
		}
		if !p.add(line, ended) {
			return p, r.more(&p)
		}
	}
	if p.last < p.first {
		return page{}, domain.Errorf(domain.InvalidArgument, "it has %s; there is no line %d", plural(win.offset-1, "line"), win.offset)
	}
	return p, r.more(&p)
}

// parts reads a file forwards.
type parts struct {
	ctx  context.Context //nolint:containedctx // parts is one running read
	f    *os.File
	at   int64  // of the next chunk
	buf  []byte // read and not consumed
	base []byte // room for a chunk, used again
}

// fill reads the next chunk behind what is buffered; io.EOF when there is none.
func (r *parts) fill() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.at > maxSkip {
		return domain.Errorf(domain.TooLarge, "lines beyond the first %s of a file cannot be reached with this tool", bytesWords(maxSkip))
	}
	had := len(r.buf)
	if had == 0 {
		r.buf = r.base[:0]
	}
	r.buf = append(r.buf, make([]byte, chunk)...)
	n, err := r.f.ReadAt(r.buf[had:], r.at)
	r.buf = r.buf[:had+n]
	first := r.at == 0
	r.at += int64(n)
	switch {
	case n > 0 && first:
		if why := notText(r.buf, true); why != "" {
			return errNotText(why)
		}
		r.buf = bytes.TrimPrefix(r.buf, bom)
		return nil
	case n > 0:
		return nil
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

// skip goes past lines.
func (r *parts) skip(lines int) error {
	for skipped := 0; skipped < lines; {
		i := bytes.IndexByte(r.buf, '\n')
		if i >= 0 {
			r.buf, skipped = r.buf[i+1:], skipped+1
			continue
		}
		r.buf = r.buf[:0]
		switch err := r.fill(); {
		case errors.Is(err, io.EOF):
			return domain.Errorf(domain.InvalidArgument, "it has fewer than %s", plural(lines+1, "line"))
		case err != nil:
			return err
		}
	}
	return nil
}

// line takes the next line without its end. Of a line longer than the longest
// one shown, the rest is passed over.
func (r *parts) line() (line []byte, ended bool, err error) {
	i := bytes.IndexByte(r.buf, '\n')
	for i < 0 && len(r.buf) <= chunk {
		had := len(r.buf)
		if err := r.fill(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, false, err
		}
		if i = bytes.IndexByte(r.buf[had:], '\n'); i >= 0 {
			i += had
		}
	}
	if i >= 0 {
		line, r.buf, ended = r.buf[:i], r.buf[i+1:], true
	} else {
		line, r.buf = r.buf, nil
	}
	if ended {
		line = bytes.TrimSuffix(line, []byte{'\r'})
	}
	if why := notText(line, !ended); why != "" {
		return nil, false, errNotText(why)
	}
	if !ended && len(line) > chunk {
		// The line goes on: its end is looked for, its bytes are dropped.
		line = append([]byte(nil), line...)
		if err := r.skip(1); domain.HasCode(err, domain.InvalidArgument) {
			return line, false, nil
		} else if err != nil {
			return nil, false, err
		}
		ended = true
	}
	return line, ended, nil
}

// more finds out whether lines follow.
func (r *parts) more(p *page) error {
	if len(r.buf) == 0 {
		if err := r.fill(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	p.more = len(r.buf) > 0
	return nil
}
