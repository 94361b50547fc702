package bootstrap

import (
	"context"
	"testing"

	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// Without a helper nothing is confined, and the app says so; the operator's
// own choice is told as such.
func TestSandbox_ConformanceWithoutAHelper(t *testing.T) {
	for _, mode := range []string{"auto", "none", "namespaces"} {
		t.Run(mode, func(t *testing.T) {
			cfg := load(t, "[store]\ndriver = \"memory\"\n[profiles.default]\nsandbox = \""+mode+"\"\n")
			porttest.Sandbox(porttest.T(t), porttest.SandboxHarness{
				Open: func(t porttest.TB) ports.Sandbox {
					app, err := New(cfg)
					if err != nil {
						t.Fatalf("%v", err)
					}
					t.Cleanup(func() { _ = app.Stop(context.Background()) })
					return app.p.Sandbox
				},
				Agents: []string{"default"},
			})
		})
	}
}
