package fs

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// maxWhole is the largest file that is taken as a whole, in bytes. Larger
// ones can be read in parts, not changed, and never go through the client.
const maxWhole = 10 << 20

// content is what a file holds as of one moment.
type content struct {
	raw    []byte
	exists bool
	// editor is set when the client's buffer is the truth about the file, for
	// reading and for writing alike.
	editor bool
}

// editor returns the client's buffers if they are the truth about the target:
// the client offers both directions and named the directory the file lies in.
// With one direction alone reads and writes would speak of different texts.
func (w *workspace) editor(t *target) ports.Files {
	if w.client == nil || t.root == nil || !t.root.editor {
		return nil
	}
	if i := w.client.Info(); !i.ReadFiles || !i.WriteFiles {
		return nil
	}
	files, ok := w.client.Files()
	if !ok {
		return nil
	}
	return files
}

// load returns the content of a target: from the client's buffers where they
// are the truth, else from file, which is nil when there is none on disk.
// TooLarge when it exceeds maxWhole.
//
// Bytes that are not text have no form a buffer could hand over unharmed, so
// such files are the disk's alone. When the client cannot tell, the disk is
// the truth for this call, in both directions.
func (w *workspace) load(ctx context.Context, t *target, file *os.File) (content, error) {
	c := content{exists: file != nil}
	if file != nil {
		var err error
		if c.raw, err = readWhole(file, t.info.size); err != nil {
			return c, err
		}
		if notText(c.raw, false) != "" {
			return c, nil
		}
	}
	files := w.editor(t)
	if files == nil {
		return c, nil
	}
	text, err := files.ReadText(ctx, w.session.ID, t.show)
	switch {
	case err == nil && len(text) > maxWhole:
		return c, errLarge(int64(len(text)))
	case err == nil:
		return content{raw: []byte(text), exists: true, editor: true}, nil
	case ctx.Err() != nil:
		return c, context.Cause(ctx)
	case refused(err):
		return c, clientSays(err)
	case domain.HasCode(err, domain.NotFound) && !c.exists:
		c.editor = true // a new file is the client's to create
	}
	return c, nil
}

// readWhole reads a file that was size bytes long when it was opened.
func readWhole(f *os.File, size int64) ([]byte, error) {
	if size > maxWhole {
		return nil, errLarge(size)
	}
	buf := make([]byte, size+1)
	n := 0
	for {
		got, err := f.ReadAt(buf[n:], int64(n))
		n += got
		switch {
		case errors.Is(err, io.EOF):
			return buf[:n:n], nil
		case err != nil:
			return nil, err
		case n > maxWhole:
			return nil, errLarge(int64(n))
		case n == len(buf): // it has grown since
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}

var errNoFile = domain.Errorf(domain.NotFound, "there is no such file")

func errLarge(size int64) error {
	return domain.Errorf(domain.TooLarge, "it is %s long; files of more than %s cannot be changed with this tool", bytesWords(size), bytesWords(maxWhole))
}

// refused reports whether a client's error is its decision and not a lack.
func refused(err error) bool {
	return domain.HasCode(err, domain.Denied) || domain.HasCode(err, domain.InvalidArgument)
}

// clientSays makes the client's refusal an answer for the model.
func clientSays(err error) error {
	if errors.Is(err, domain.Disconnected) {
		return domain.WrapError(domain.Unavailable, err,
			"the client went away before it answered, and it is not known whether the file was written: read it again before you change it")
	}
	var e *domain.Error
	if errors.As(err, &e) {
		return domain.WrapError(domain.Denied, err, "the client refused: "+e.Msg)
	}
	return err
}
