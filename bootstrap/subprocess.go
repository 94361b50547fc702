package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// leaveLimit is when a process that was told to end does so whatever hangs.
const leaveLimit = 5 * time.Second

// TakeStdout keeps the real standard output for the protocol alone and points
// os.Stdout, and descriptor 1 with it, at standard error. Call it before
// anything else runs that could print.
func TakeStdout() (*os.File, error) { return takeStdout() }

// RunSubprocess serves the agent on standard input and the given output until
// the input ends or a signal comes, and returns when everything has been
// answered and stored. A second signal ends the process at once.
func RunSubprocess(cfg *Config, out io.Writer, opts ...Option) error {
	app, err := New(cfg, opts...)
	if err != nil {
		return err
	}
	if err := forgetVariables(cfg.SecretVariables()); err != nil {
		app.p.Observer.Observe(context.Background(), domain.Trouble{Where: keysVisible, Err: err})
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)
	if pipes := brokenPipes(); pipes != nil {
		ignored := make(chan os.Signal, 1) // not ignored by the kernel, so that commands still get theirs
		signal.Notify(ignored, pipes...)
		defer signal.Stop(ignored)
	}
	go func() { // ends with the process
		first := <-signals
		cancel(domain.ProcessEnding)
		awaitSecond(signals, first)
		os.Exit(1)
	}()
	err = app.Serve(ctx, jsonrpc.NewStdio(os.Stdin, out, int(cfg.ACP.MaxMessageBytes)))
	if serr := app.Stop(context.Background()); serr != nil {
		err = errors.Join(err, fmt.Errorf("stop: %w", serr))
	}
	var ended *domain.Cause
	if errors.Is(err, io.EOF) || errors.As(err, &ended) {
		return nil
	}
	return err
}
