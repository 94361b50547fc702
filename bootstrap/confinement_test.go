package bootstrap

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
)

// slowBox is a sandbox that is tried for as long as the test wants.
type slowBox struct {
	asked chan string
	found chan domain.Posture
}

func (s slowBox) Posture(ctx context.Context, agent string) domain.Posture {
	s.asked <- agent
	select {
	case p := <-s.found:
		return p
	case <-ctx.Done():
		return domain.Posture{Word: domain.PostureNone, Reason: "not tried to the end"}
	}
}

func (s slowBox) Known(string) (domain.Posture, bool) { return domain.Posture{}, false }

// TestDaemon_TriesConfinement: a daemon serves at once, finds out meanwhile how
// the commands of each agent are held, and tells where they are not.
func TestDaemon_TriesConfinement(t *testing.T) {
	w := written{t, t.TempDir()}
	w.set("[gateway]\nlisten = \"127.0.0.1:0\"\n[agents.a]\n[agents.b]\nprofile = \"open\"\n[agents.c]\nenabled = false\n[agents.d]\nprofile = \"open\"\n[profiles.open]\nsandbox = \"none\"\n")
	cfg, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	box, log := slowBox{make(chan string), make(chan domain.Posture)}, &safeBuffer{}
	d, err := StartDaemon(t.Context(), cfg, WithStore(keeping{memory.New(time.Now)}), WithLog(log), WithSandbox(box))
	if err != nil {
		t.Fatal(err)
	}
	if got := <-box.asked; got != "a" {
		t.Errorf("tried %q first", got)
	}
	box.found <- domain.Posture{Word: domain.PostureStrong, Backend: "namespaces"}
	if got := <-box.asked; got != "b" {
		t.Errorf("tried %q next", got)
	}
	if strings.Contains(log.String(), "sandbox of") {
		t.Errorf("what is as it should be is told:\n%s", log)
	}
	box.found <- domain.Posture{Word: domain.PostureOff, Reason: "the profile's sandbox is \"none\""}
	if got := <-box.asked; got != "d" {
		t.Errorf("tried %q at last", got)
	}
	box.found <- domain.Posture{Word: domain.PostureOff, Reason: "the profile's sandbox is \"none\""}
	if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if told := strings.Count(log.String(), `sandbox of profile open: off`); told != 1 {
		t.Errorf("told %d times, want once:\n%s", told, log)
	}
}

// A probe that hangs does not hold up the end.
func TestDaemon_StopsTrying(t *testing.T) {
	w := written{t, t.TempDir()}
	w.set("[gateway]\nlisten = \"127.0.0.1:0\"\n")
	cfg, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	box, log := slowBox{make(chan string), nil}, &safeBuffer{}
	d, err := StartDaemon(t.Context(), cfg, WithStore(keeping{memory.New(time.Now)}), WithLog(log), WithSandbox(box))
	if err != nil {
		t.Fatal(err)
	}
	<-box.asked
	if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String(), "sandbox of") {
		t.Errorf("what was not found out is told:\n%s", log)
	}
}
