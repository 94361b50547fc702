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
	if err := d.prompt("run wc -l notes.md")(ctx); err != nil {
		return err
	}
	if d.calls.Load() == 0 {
		d.view.note("this session cannot run commands")
		return nil
	}
	if d.asked.Load() == 0 {
		d.view.note("nothing was asked")
	} else {
		d.view.note("it was asked for, because nothing confines it here")
	}
	return nil
}

// script runs a command whose effect nobody can tell beforehand.
func (d *demo) script(ctx context.Context) error {
	if err := d.prompt("run sh tides.sh")(ctx); err != nil {
		return err
	}
	if d.calls.Load() == 0 {
		d.view.note("this session cannot run commands")
		return nil
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
