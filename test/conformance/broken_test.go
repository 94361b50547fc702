package conformance

import (
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// brokenEnv makes this test binary an agent whose model misbehaves in ways a
// script cannot: it prints, it panics, and it talks on when it was cancelled.
// Everything around it is what the real binary is made of.
const brokenEnv = "BERTH_CONFORMANCE_BROKEN"

// serveBroken is that agent. Its command line is the binary's.
func serveBroken() int {
	out, err := bootstrap.TakeStdout()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Unsetenv(brokenEnv) // it names no setting
	models := brokenModels{brokenModel{descriptor: os.NewFile(1, "descriptor 1")}}
	dirs := bootstrap.LoadOptions{Env: os.Environ()}
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
		err = bootstrap.RunSubprocess(cfg, out, bootstrap.WithModels(models))
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

// lateEnds are the errors with which a model ends that is cancelled, by what
// it is told; one without an error just stops.
var lateEnds = map[string]error{
	"late error":   domain.Errorf(domain.Unavailable, "broke"),
	"late cut":     nil,
	"late sign-in": domain.Errorf(domain.AuthRequired, "who?"),
}

type brokenModels struct{ model brokenModel }

func (m brokenModels) Open(context.Context, domain.ModelRef) (ports.Model, error) {
	return m.model, nil
}

func (brokenModels) Describe(ref domain.ModelRef) domain.ModelInfo { return domain.ModelInfo{Ref: ref} }

func (brokenModels) Catalog(context.Context) ([]domain.ModelInfo, error) { return nil, nil }

// brokenModel keeps its file on descriptor 1, so that no collector closes it.
type brokenModel struct{ descriptor *os.File }

func (brokenModel) Info() domain.ModelInfo { return domain.ModelInfo{Tools: true} }

// Stream does what the newest message says: "print" writes to standard output
// like a careless library, when the process has run for so long that whatever
// nobody holds is collected; "panic" panics; "deaf" says "One" and goes on for
// half a minute, whatever its context says; a late end says "One" and ends in
// that way when it is cancelled; anything else is answered.
func (b brokenModel) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	said := ""
	for _, m := range req.Messages {
		if in, ok := m.(domain.UserInput); ok {
			said = fmt.Sprint(in.Blocks)
		}
	}
	return func(yield func(domain.ModelEvent, error) bool) {
		if strings.Contains(said, "print") {
			runtime.GC()
			runtime.GC() // the first one finds, the second one closes
			fmt.Println("a library prints")
			if _, err := b.descriptor.WriteString("and does so by the descriptor\n"); err != nil {
				println(err.Error())
			}
			println("or to standard error")
		}
		if strings.Contains(said, "panic") {
			panic("the model breaks")
		}
		if strings.Contains(said, "deaf") {
			for _, word := range strings.Fields("One" + strings.Repeat(" late", 250)) {
				if !yield(domain.TextDelta{Text: word}, nil) {
					return
				}
				time.Sleep(120 * time.Millisecond)
			}
		}
		for way, err := range lateEnds {
			if strings.Contains(said, way) {
				if yield(domain.TextDelta{Text: "One"}, nil) {
					<-ctx.Done()
				}
				if err != nil {
					yield(nil, err)
				}
				return
			}
		}
		if yield(domain.TextDelta{Text: "Fine."}, nil) {
			yield(domain.Finish{Reason: domain.FinishStop}, nil)
		}
	}
}
