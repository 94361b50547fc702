package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// demoScript writes as it goes on, so that output is seen to arrive while it
// runs, and leaves a file.
const demoScript = `for hour in 6 7 8; do
  echo "harbour open at $hour"
  sleep 0.2
done
echo closed > log.txt
`

// confinement is how the agent says that the session's commands are confined.
type confinement struct {
	Posture string   `json:"posture"`
	Backend string   `json:"backend"`
	Lacks   []string `json:"lacks"`
	Reason  string   `json:"reason"`
}

// String says it in a sentence.
func (c confinement) String() string {
	var s string
	switch c.Posture {
	case "strong":
		s = "commands run in a strong sandbox (" + c.Backend + ")"
	case "partial":
		s = "commands run in a partial sandbox (" + c.Backend + ")"
	case "off":
		s = "commands run without a sandbox, as configured"
	default:
		s = "commands run without a sandbox, so each one asks"
	}
	if len(c.Lacks) > 0 {
		s += "; open stays: " + strings.Join(c.Lacks, ", ")
	}
	if c.Reason != "" {
		s += "; " + c.Reason
	}
	return s
}

// counted runs a command that asks nothing where commands are confined.
func (d *demo) counted(ctx context.Context) error {
	ran, err := d.command(ctx, "wc -l notes.md")
	switch {
	case err != nil || !ran:
		return err
	case d.asked.Load() == 0:
		d.view.note("nothing was asked")
	default:
		d.view.note("even this was asked for, because nothing confines commands here")
	}
	return nil
}

// script runs a command whose effect nobody can tell beforehand.
func (d *demo) script(ctx context.Context) error {
	ran, err := d.command(ctx, "sh tides.sh")
	if err != nil || !ran {
		return err
	}
	if d.asked.Load() == 0 {
		return errors.New("the command was run without asking")
	}
	data, err := os.ReadFile(filepath.Join(d.files, "log.txt"))
	if err != nil {
		return fmt.Errorf("the command left no file: %w", err)
	}
	d.view.note("on disk, log.txt: " + strings.TrimSpace(string(data)))
	return nil
}

// command lets the agent run a command. A machine on which that is not
// possible is no failure of the story: it is said, and the story goes on.
func (d *demo) command(ctx context.Context, line string) (ran bool, err error) {
	if err := d.prompt("run " + line)(ctx); err != nil {
		return false, err
	}
	switch {
	case d.calls.Load() == 0:
		d.view.note("this session cannot run commands")
	case d.fails.Load() > 0:
		d.view.note("the command failed; \"berth doctor\" says what this machine lacks")
	default:
		return true, nil
	}
	return false, nil
}
