package observe

import (
	"bytes"
	"io"
	"testing"

	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func TestLogger_Conformance(t *testing.T) {
	for name, json := range map[string]bool{"json": true, "console": false} {
		t.Run(name, func(t *testing.T) {
			logger := func(t porttest.TB, out io.Writer) *Logger {
				l, err := New(Config{Out: out, Level: "trace", JSON: json})
				if err != nil {
					t.Fatalf("%v", err)
				}
				t.Cleanup(func() { _ = l.Close() })
				return l
			}
			porttest.Observer(porttest.T(t), porttest.ObserverHarness{
				Open: func(t porttest.TB) (ports.Observer, func() string) {
					var out bytes.Buffer // read after Close, which joins its writer
					l := logger(t, &out)
					return l, func() string { _ = l.Close(); return out.String() }
				},
				Stuck: func(t porttest.TB) ports.Observer {
					r, w := io.Pipe() // nobody reads
					t.Cleanup(func() { _ = r.Close() })
					return logger(t, w)
				},
			})
		})
	}
}
