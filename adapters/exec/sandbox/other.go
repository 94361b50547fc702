//go:build !linux && !darwin

package sandbox

import (
	"context"
	"os"
	"strconv"

	"github.com/berth-dev/berth/core/domain"
)

// Main is the helper, which nobody starts on this system.
func Main() { os.Exit(2) }

func (s *Sandbox) choose(context.Context) (domain.Posture, backend) {
	if s.cfg.Mode == None {
		return domain.Posture{Word: domain.PostureOff, Lacks: everything()}, None
	}
	return domain.Posture{
		Word: domain.PostureNone, Lacks: everything(),
		Reason: "there is no sandbox " + strconv.Quote(s.cfg.Mode) + " on this system; run berth on Linux or macOS, or set sandbox to none",
	}, None
}

func (s *Sandbox) confine(_ backend, spec *Spec) ([]string, error) { return spec.Argv, nil }
