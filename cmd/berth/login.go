package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
)

// loginFlags are the flags of login.
type loginFlags struct {
	stdin bool
	file  bool
	agent string // whose provider is proposed; only where it runs below acp
}

// newLogin stores the key of a provider.
func newLogin(c *common) *cobra.Command { return loginCommand(c, &loginFlags{}) }

// newACPLogin is login as clients start it: with the arguments of the agent
// before it.
func newACPLogin(c *common) *cobra.Command {
	var f loginFlags
	var given acpFlags
	cmd := loginCommand(c, &f)
	given.register(cmd)
	for _, name := range given.names() {
		_ = cmd.Flags().MarkHidden(name) // it was registered just now
	}
	cmd.PreRun = func(*cobra.Command, []string) { f.agent = given.agent }
	return cmd
}

func loginCommand(c *common, f *loginFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login [PROVIDER [-]]",
		Short: "Store the key of a model provider",
		Long: `Asks for the key of a model provider, which is not shown, checks it with the
provider, and stores it: in the system's keyring where there is one, else in a
file of the data directory that only you can read. An agent that is running uses
it at its next request; nothing has to be restarted.

A key is never an argument: what stands on the command line is seen by other
users and kept in the shell's history. A script gives it on standard input,
with "-" or --key-stdin.`,
		Example: `  berth login
  berth login anthropic
  berth login openai - < key.txt
  pass show openai | berth login openai --key-stdin`,
		Args: loginArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := bootstrap.OpenKeys(c.options(nil))
			if err != nil {
				return failed(err)
			}
			defer func() { _ = keys.Close() }() // it has nothing to save
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			l := login{cmd: cmd, keys: keys, flags: *f}
			l.flags.stdin = f.stdin || len(args) == 2
			return l.run(cmd.Context(), name)
		},
	}
	cmd.Flags().BoolVar(&f.stdin, "key-stdin", false, "read the key from standard input, one line")
	cmd.Flags().BoolVar(&f.file, "file", false, "store in the file even where a keyring works")
	return cmd
}

// loginArgs refuses what is not a provider's name and perhaps "-". It repeats
// nothing that could be a key.
func loginArgs(cmd *cobra.Command, args []string) error {
	for i, a := range args {
		if i < 2 && !looksLikeKey(a) && (i == 0) == (a != "-") {
			continue
		}
		if looksLikeKey(a) {
			return usage("a key is never an argument: other users and the shell's history can see it, so replace this one. Run \"%s PROVIDER\" and type the key, or give it on standard input with -", cmd.CommandPath())
		}
		return usage("wrong arguments; the command is: %s", cmd.UseLine())
	}
	return nil
}

// looksLikeKey reports whether an argument is more likely a key than the name
// of a provider, which has small letters, digits and single underscores.
func looksLikeKey(s string) bool {
	if s == "-" {
		return false
	}
	return len(s) > 30 || strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_')
	})
}

// login is one run of the command.
type login struct {
	cmd   *cobra.Command
	keys  *bootstrap.Keys
	flags loginFlags
}

// attempts is how many keys a person may try before the command gives up.
const attempts = 3

// errNothingChanged ends a command that was broken off.
var errNothingChanged = errors.New("nothing was changed")

func (l *login) run(ctx context.Context, name string) error {
	in, ask := l.cmd.InOrStdin(), l.cmd.ErrOrStderr()
	f, isFile := in.(*os.File)
	terminal := isFile && term.IsTerminal(int(f.Fd()))
	if !l.flags.stdin && !terminal {
		return usage("standard input is no terminal, so the key cannot be asked for; pipe it into: %s PROVIDER -", l.cmd.CommandPath())
	}
	if name == "" && l.flags.stdin {
		return usage("with a key on standard input the provider must be named: %s PROVIDER -", l.cmd.CommandPath())
	}
	var provider bootstrap.KeyHolder
	var err error
	if name == "" {
		provider, err = l.choose(f)
	} else {
		provider, err = l.keys.Provider(name)
	}
	if err != nil {
		return failed(err)
	}
	if provider.Source != "" && !provider.Stored {
		fmt.Fprintf(ask, "Note: %s has its key from %s here. Where that is set it goes before the stored one.\n", provider.Name, provider.Source)
	}
	key, err := l.key(ctx, provider, in, terminal && !l.flags.stdin)
	if err != nil {
		return failed(err)
	}
	where, err := l.keys.Store(provider.Name, key, l.flags.file)
	if err != nil {
		return failed(err)
	}
	return failed(l.done(provider.Name, where))
}

// choose asks the person which provider the key is for.
func (l *login) choose(in io.Reader) (bootstrap.KeyHolder, error) {
	ask, list := l.cmd.ErrOrStderr(), l.keys.Providers()
	usual, hasUsual := l.keys.Agent(l.flags.agent)
	fmt.Fprintln(ask, "Providers that take a key:")
	for i, p := range list {
		state := "no key"
		if p.Source != "" {
			state = "has a key: " + p.Source
		}
		fmt.Fprintf(ask, "%4d  %-14s %s\n", i+1, p.Name, state)
	}
	for {
		prompt := "Provider, by name or number: "
		if hasUsual {
			prompt = fmt.Sprintf("Provider, by name or number [%s]: ", usual.Name)
		}
		fmt.Fprint(ask, prompt)
		text, err := readLine(in)
		if err != nil {
			fmt.Fprintln(ask)
			return bootstrap.KeyHolder{}, errNothingChanged
		}
		text = strings.TrimSpace(text)
		if text == "" && hasUsual {
			return usual, nil
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(list) {
			return list[n-1], nil
		}
		p, err := l.keys.Provider(text)
		if err == nil {
			return p, nil
		}
		fmt.Fprintf(ask, "%v.\n", err)
	}
}

// readLine reads one line of a terminal and nothing behind it: what follows
// may be the key, which is read without being shown.
func readLine(in io.Reader) (string, error) {
	var line []byte
	var b [1]byte
	for {
		n, err := in.Read(b[:])
		switch {
		case n == 1 && b[0] == '\n':
			return string(line), nil
		case n == 1 && len(line) < maxValue:
			line = append(line, b[0])
		case err != nil:
			return "", err
		}
	}
}

// key reads a key that the provider takes. A person may try again.
func (l *login) key(ctx context.Context, p bootstrap.KeyHolder, in io.Reader, person bool) (string, error) {
	ask := l.cmd.ErrOrStderr()
	lines := newLineInput(in, ask)
	for try := 1; ; try++ {
		key, err := lines.read("Key for " + p.Name + " (it is not shown)")
		if key = strings.TrimSpace(key); key == "" {
			if err == nil || errors.Is(err, io.EOF) {
				return "", fmt.Errorf("no key came; %w", errNothingChanged)
			}
			return "", err
		}
		n, err := l.keys.Check(ctx, p.Name, key)
		switch {
		case err == nil && n > 0:
			fmt.Fprintf(ask, "%s accepts the key (%d models).\n", p.Name, n)
			return key, nil
		case err == nil:
			fmt.Fprintf(ask, "%s accepts the key.\n", p.Name)
			return key, nil
		case domain.HasCode(err, domain.Unsupported):
			fmt.Fprintf(ask, "The key was not checked: %v.\n", err)
			return key, nil
		case !domain.HasCode(err, domain.AuthRequired):
			fmt.Fprintf(ask, "The key could not be checked and is stored all the same: %v.\n", err)
			return key, nil
		case !person || try == attempts:
			return "", fmt.Errorf("%w; %w", refusal(p, err), errNothingChanged)
		}
		fmt.Fprintf(ask, "%v. Try again, or end with Ctrl-C.\n", refusal(p, err))
	}
}

// refusal says that a key was refused, without the advice to log in.
func refusal(p bootstrap.KeyHolder, err error) error {
	text, _, _ := strings.Cut(err.Error(), "; check the key: ")
	if text == "" {
		text = p.Name + " refuses the key"
	}
	return errors.New(text)
}

// done says what was done and what comes next.
func (l *login) done(name, where string) error {
	out := l.cmd.OutOrStdout()
	p, err := l.keys.Provider(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The key for %s is stored in %s.\n", name, where)
	if len(p.Agents) == 0 {
		_, err = fmt.Fprintf(out, "No agent uses %s yet. To choose it: berth config set agents.default.model %s/MODEL\n", name, name)
		return err
	}
	_, err = fmt.Fprintf(out, "Agents that use it: %s. Nothing has to be restarted: go back and try again.\n", strings.Join(p.Agents, ", "))
	return err
}
