package bootstrap

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
)

// noCommands is the sandbox of a version that runs no commands.
type noCommands struct{}

// Posture says that nothing is confined because nothing is run.
func (noCommands) Posture(context.Context, string) domain.Posture { return domain.Posture{} }
