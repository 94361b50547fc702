package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/bootstrap"
)

// maxValue bounds a value read from standard input, in bytes.
const maxValue = 64 << 10

// newConfigSet changes settings of the file.
func newConfigSet(c *common) *cobra.Command {
	return &cobra.Command{
		Use: "set PATH VALUE [PATH VALUE]...", Short: "Change settings in the file, keeping its comments",
		Long: `Changes settings in the file, keeping its comments and order. All changes are
judged together and written at once: settings that need each other, such as
those of a new provider, belong into one command.

A VALUE of "-" is read from standard input, one line; at a terminal it is asked
for and not shown. That is the way for secrets: what stands on the command line
is seen by other users and kept in the shell's history. env:NAME and file:PATH
name a secret without holding it.`,
		Example: `  berth config set acp.max_sessions 20
  berth config set providers.local.type openai-compatible providers.local.base_url http://127.0.0.1:8000/v1
  berth config set providers.local.api_key env:LOCAL_KEY
  berth config set providers.local.api_key - < key.txt`,
		Args: pairs,
		RunE: func(cmd *cobra.Command, args []string) error {
			in := newLineInput(cmd.InOrStdin(), cmd.ErrOrStderr())
			var changes []bootstrap.ConfigChange
			for i := 0; i < len(args); i += 2 {
				path, value := args[i], args[i+1]
				switch {
				case value == "-":
					var err error
					if value, err = in.line(path); err != nil {
						return failed(fmt.Errorf("%s: %w", path, err))
					}
				case bootstrap.ConfigSpelledOut(path, value):
					fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s: its value stands on the command line, where other users and the shell's history can see it; for a secret, use env:NAME, file:PATH, or - to type it\n", path)
				}
				changes = append(changes, bootstrap.ConfigChange{Path: path, Value: value})
			}
			file, err := bootstrap.ConfigSet(c.options(nil), changes...)
			if err != nil {
				return failed(err)
			}
			for _, change := range changes {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s is set\n", file, change.Path); err != nil {
					return failed(err)
				}
			}
			return nil
		},
	}
}

// pairs refuses arguments that are not paths with a value each.
func pairs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return wants(2, 2)(cmd, args)
	case len(args)%2 != 0:
		path, _, sign := strings.Cut(args[len(args)-1], "=") // what follows may be a secret
		if sign {
			path += ": it stands behind a space, not behind ="
		}
		return usage("there is no value for %s; the command is: %s", path, cmd.UseLine())
	}
	return nil
}

// lineInput reads values from standard input, a line each.
type lineInput struct {
	tty *os.File      // asks the person there, without showing the answer
	in  *bufio.Reader // reads what is no terminal
	ask io.Writer
}

func newLineInput(in io.Reader, ask io.Writer) *lineInput {
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &lineInput{tty: f, ask: ask}
	}
	return &lineInput{in: bufio.NewReaderSize(in, maxValue+2)}
}

// line returns the next line without its end; path says what it is for. An
// empty line is an error: whoever wants to empty a setting writes "".
func (l *lineInput) line(path string) (string, error) {
	text, err := l.read(path)
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("the line on standard input is longer than %d bytes", maxValue)
	case err != nil && !errors.Is(err, io.EOF):
		return "", fmt.Errorf("read standard input: %w", err)
	case text == "" && err != nil:
		return "", errors.New("standard input ended where the value should be; nothing was written")
	case text == "":
		return "", errors.New(`an empty line came where the value should be; nothing was written (to empty a setting, write "" on the command line)`)
	}
	return text, nil
}

func (l *lineInput) read(path string) (string, error) {
	if l.tty == nil {
		text, err := l.in.ReadSlice('\n')
		return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), err
	}
	// Raw, so that Ctrl-C is a character here instead of the end of a process
	// that would leave the terminal without its echo.
	fd := int(l.tty.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, before) }()
	text, err := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{l.tty, l.ask}, "").ReadPassword(path + ": ")
	if err != nil {
		fmt.Fprint(l.ask, "\r\n") // what is said next begins a line
	}
	return text, err
}
