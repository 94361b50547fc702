package fs

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// writeTool is write_file.
type writeTool struct{ w *workspace }

// Spec describes write_file.
func (t writeTool) Spec() domain.ToolSpec { return t.w.specs.write }

// Prepare works out what the file will be.
func (t writeTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("write_file", call.Args, "path (string)", "content (string)")
	path := a.text(true, "", "path")
	text := a.text(true, "", "content")
	if err := a.done(); err != nil {
		return nil, err
	}
	if len(text) > maxWhole {
		return nil, prefixed(brief(path), errLarge(int64(len(text))))
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, domain.Errorf(domain.InvalidArgument, "write_file: content holds a NUL character; this tool writes text only")
	}
	return t.w.prepare(ctx, "write_file", path, func(c content, show string) (made, error) {
		return wholeFile(c, show, text)
	})
}

// wholeFile puts text in the place of everything a file holds.
func wholeFile(c content, show, text string) (made, error) {
	lines := plural(lineCount([]byte(text)), "line")
	if !c.exists {
		return made{[]byte(text), fmt.Sprintf("Created %s (%s, %s).", show, lines, bytesWords(int64(len(text))))}, nil
	}
	if why := notText(c.raw, false); why != "" {
		return made{}, domain.Errorf(domain.Denied, "%s; writing text over it would destroy it", why)
	}
	m := made{raw: newDoc(c.raw).rewritten(text)}
	m.text = fmt.Sprintf("Wrote %s (%s, %s).", show, lines, bytesWords(int64(len(m.raw))))
	if string(m.raw) == string(c.raw) {
		m.text = show + " already has exactly this content; nothing was written."
	}
	return m, nil
}
