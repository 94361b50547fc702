package conformance

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// brokenEnv makes this test binary an agent whose model misbehaves in ways a
// script cannot: it prints and it panics. Everything around it is what the
// real binary is made of.
const brokenEnv = "BERTH_CONFORMANCE_BROKEN"

// serveBroken is that agent. Its command line is the binary's.
func serveBroken() int {
	out, err := bootstrap.TakeStdout()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Unsetenv(brokenEnv) // it names no setting
	var dirs bootstrap.LoadOptions
	for i, arg := range os.Args[:len(os.Args)-1] {
		switch arg {
		case "--config-dir":
			dirs.ConfigDir = os.Args[i+1]
		case "--data-dir":
			dirs.DataDir = os.Args[i+1]
		}
	}
	cfg, err := bootstrap.LoadConfig(dirs)
	if err == nil {
		err = bootstrap.RunSubprocess(cfg, out, bootstrap.WithModels(brokenModels{}))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// broken is how to start it.
func broken() launch {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return launch{program: self, env: []string{brokenEnv + "=1"}}
}

type brokenModels struct{}

func (brokenModels) Open(context.Context, domain.ModelRef) (ports.Model, error) {
	return brokenModel{}, nil
}

func (brokenModels) Catalog(context.Context) ([]domain.ModelInfo, error) { return nil, nil }

type brokenModel struct{}

func (brokenModel) Info() domain.ModelInfo { return domain.ModelInfo{Tools: true} }

// Stream does what the newest message says: "print" writes to standard output
// like a careless library, "panic" panics, anything else is answered.
func (brokenModel) Stream(_ context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	said := ""
	for _, m := range req.Messages {
		if in, ok := m.(domain.UserInput); ok {
			said = fmt.Sprint(in.Blocks)
		}
	}
	return func(yield func(domain.ModelEvent, error) bool) {
		if strings.Contains(said, "print") {
			fmt.Println("a library prints")
			_, _ = os.NewFile(1, "descriptor 1").WriteString("and does so by the descriptor\n")
			println("or to standard error")
		}
		if strings.Contains(said, "panic") {
			panic("the model breaks")
		}
		if yield(domain.TextDelta{Text: "Fine."}, nil) {
			yield(domain.Finish{Reason: domain.FinishStop}, nil)
		}
	}
}
