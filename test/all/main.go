// Command all runs every test this machine can run:
//
//	go run ./test/all
//
// It needs Go and nothing else. Where a C compiler is it adds the race
// detector, where Node is it adds the console's logic and the interoperability
// tests, and it ends by naming what was left out and why. With -strict whatever
// was left out is a failure, which is how continuous integration keeps itself
// honest.
//
// Other stages are named with -stages, as the Makefile does: fmt, tidy, vet,
// lint, test, console, interop, browser, cross and fuzz.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options is what the command line asked for.
type options struct {
	strict   bool
	short    bool
	stages   []string
	packages []string
	fuzzTime time.Duration
	fuzzMax  time.Duration
}

func main() {
	os.Exit(realMain(os.Args[1:], os.Stdout, os.Stderr))
}

// realMain parses the arguments, runs the stages and returns the exit status:
// 0 when all passed, 1 when something failed, 2 for wrong usage.
func realMain(args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, stderr)
	if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := moduleRoot(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "test/all:", err)
		return 2
	}
	r := &runner{opts: opts, root: root, out: stdout, err: stderr}
	r.run(ctx)
	return r.summary(stdout)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("test/all", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: go run ./test/all [flags] [packages]\n\nstages: %s\n\n", strings.Join(stageNames(), ", "))
		flags.PrintDefaults()
	}
	stages := flags.String("stages", "vet,test,console,interop", "comma-separated list of what to run")
	flags.BoolVar(&o.strict, "strict", false, "fail when anything is left out")
	flags.BoolVar(&o.short, "short", false, "pass -short to go test")
	flags.DurationVar(&o.fuzzTime, "fuzztime", 5*time.Second, "how long each fuzz target runs")
	flags.DurationVar(&o.fuzzMax, "fuzzmax", 3*time.Minute, "how long all fuzz targets run together; each gets less when there are many")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.packages = flags.Args()
	if len(o.packages) == 0 {
		o.packages = []string{"./..."}
	}
	for name := range strings.SplitSeq(*stages, ",") {
		name = strings.TrimSpace(name)
		if _, ok := stageByName(name); !ok {
			err := fmt.Errorf("no stage %q; there are %s", name, strings.Join(stageNames(), ", "))
			fmt.Fprintln(stderr, "test/all:", err)
			return o, err
		}
		o.stages = append(o.stages, name)
	}
	return o, nil
}

// moduleRoot finds the directory of the main module's go.mod, so that the
// command works from any directory of the repository.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("run it inside the repository: there is no go.mod here or above")
	}
	return filepath.Dir(mod), nil
}
