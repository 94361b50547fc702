package shellpolicy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxLine is the longest line in bytes: as much as one argument of a
	// program may be on Linux.
	maxLine = 128 << 10
	// parseTime is how long parsing may take: the time for deep nesting grows
	// with the square of it. The parser is fed in small pieces, so that it
	// ends soon after.
	parseTime = 2 * time.Second
)

// gate refuses lines that the parser and the shell would read differently, or
// that are none. It returns the reason for the model; "" lets the line pass.
func gate(line string) string {
	switch {
	case strings.Trim(line, " \t\n") == "":
		return "the command is empty"
	case len(line) > maxLine:
		return fmt.Sprintf("the command is longer than %d bytes; put the data into a file", maxLine)
	case !utf8.ValidString(line):
		return "the command is not valid UTF-8"
	}
	for i := range len(line) {
		if c := line[i]; c < ' ' && c != '\t' && c != '\n' || c == 0x7f {
			return fmt.Sprintf("the command contains the control character 0x%02x; write it as an escape, such as printf '\\%03o'", c, c)
		}
	}
	return ""
}

// parse makes the syntax tree of a line.
func parse(ctx context.Context, line string, d Dialect) (*syntax.File, error) {
	variant := syntax.LangBash
	if d == Posix {
		variant = syntax.LangPOSIX
	}
	ctx, stop := context.WithTimeout(ctx, parseTime)
	defer stop()
	file, err := syntax.NewParser(syntax.Variant(variant)).Parse(&feed{ctx: ctx, line: line}, "")
	var lang syntax.LangError
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("the command takes too long to read; write it as several commands")
	case errors.As(err, &lang):
		return nil, fmt.Errorf("the shell here does not know that syntax: %s", lang.Feature)
	case err != nil:
		return nil, fmt.Errorf("the command cannot be parsed: %w", err)
	}
	return file, nil
}

// feed gives the parser a line in small pieces, until its context ends.
type feed struct {
	ctx  context.Context
	line string
}

func (f *feed) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	if f.line == "" {
		return 0, io.EOF
	}
	n := copy(p, f.line)
	f.line = f.line[n:]
	return n, nil
}
