package bootstrap

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// TestHelper_None: why there is no sandbox is what is the case: nobody named a
// program that builds one, or this one is not found, as without /proc.
func TestHelper_None(t *testing.T) {
	for _, tt := range []struct {
		name   string
		helper Helper
		want   string
	}{
		{"not given", Helper{}, "bootstrap.WithHelper"},
		{"not found", ownHelper("", errors.New("readlink /proc/self/exe: not there")), "cannot find its own file: readlink /proc/self/exe"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := written{t, t.TempDir()}
			app := w.start("[agents.a]\nmodel = \"offline/offline\"\n", WithLog(&safeBuffer{}), WithHelper(tt.helper))
			p := app.p.Sandbox.Posture(t.Context(), "a")
			if p.Word != domain.PostureNone || !strings.Contains(p.Reason, tt.want) {
				t.Errorf("the posture is %+v", p)
			}
			if err := app.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	if h := ownHelper("/bin/x", errors.New("no matter")); h != HelperAt("/bin/x") {
		t.Errorf("it is %+v", h)
	}
}
