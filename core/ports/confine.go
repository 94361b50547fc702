package ports

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
)

// Sandbox reports how commands are confined. Running them is the business of
// the tools that do.
type Sandbox interface {
	// Posture returns what confines the commands of an agent, as trying it
	// showed. The first call may take a moment; when the context ends before
	// it is known, the posture is PostureNone with the reason.
	Posture(ctx context.Context, agent string) domain.Posture
	// Known returns the posture as far as it is known without trying, and
	// whether it is: what this process found out, or an earlier one whose
	// finding still counts. It starts nothing and waits for nobody.
	Known(agent string) (domain.Posture, bool)
}

// Instructions reads what a session's model is told besides the conversation.
type Instructions interface {
	// Read returns the instructions of a session as they are now: those of the
	// agent's workspace, then those of each root in order, then the skills by
	// name. Missing files are left out; what cannot be read, or is too long, is
	// cut or left out and said in Text. It never fails: a session works without.
	Read(ctx context.Context, s domain.Session, a domain.Agent) []domain.Instruction
}
