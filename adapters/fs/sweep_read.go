package fs

import (
	"errors"
	"io"
)

// headBytes is how much of a file is judged before the rest is read.
const headBytes = 64 << 10

// fill reads a file of which i tells the size. It is a snapshot: what is
// appended meanwhile is left out.
func fill(buf []byte, i info, judge func(i info, head []byte) error, read func([]byte) (int, error)) ([]byte, error) {
	if err := judge(i, nil); err != nil || i.size == 0 {
		return buf[:0], err
	}
	size := int(i.size)
	if cap(buf) < size {
		buf = make([]byte, 0, max(size+size/4, headBytes))
	}
	buf = buf[:0]
	head := min(size, headBytes)
	for len(buf) < size {
		end := size
		if len(buf) < head {
			end = head
		}
		n, err := read(buf[len(buf):end])
		was := len(buf)
		buf = buf[:was+n]
		if was < head && (len(buf) >= head || n == 0 || err != nil) {
			if jerr := judge(i, buf); jerr != nil {
				return buf[:0], jerr
			}
		}
		switch {
		case errors.Is(err, io.EOF), err == nil && n == 0:
			return buf, nil // it has become shorter
		case err != nil:
			return buf[:0], err
		}
	}
	return buf, nil
}
