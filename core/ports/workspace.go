package ports

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
)

// Roots turns the directories a client names into canonical ones.
type Roots interface {
	// Resolve checks and canonicalises what a client asked for and creates
	// the agent's workspace if it is missing. InvalidArgument when a
	// directory is relative, missing, a file, forbidden, or the data or
	// configuration directory; the message says which and why. Only the
	// directory fields of the session are set.
	Resolve(context.Context, domain.Agent, domain.Directories) (domain.Session, error)
	// Canonical returns the canonical form of a directory for comparing, also
	// when it does not exist any more.
	Canonical(path string) string
}

// Blobs keeps the blobs of prompts as files of the session, and reads again
// what clients are shown of files.
type Blobs interface {
	// Store writes all blobs below <cwd>/uploads, all checked before the
	// first is written, named by content, never through a link. The result
	// has one attachment for each resource, in order.
	Store(context.Context, domain.Session, []domain.Resource) ([]domain.Attachment, error)
	// Read returns the bytes of a file that was stored, delivered or shown
	// before, if it holds them still. NotFound when it is gone, Conflict when it
	// holds something else, Denied when the session's rules keep it from being
	// read now.
	Read(context.Context, domain.Session, domain.Attachment) ([]byte, error)
	// Remove deletes attachments of a session that is deleted. Missing files
	// are no error.
	Remove(context.Context, domain.Session, []domain.Attachment) error
}

// Agents is the configured agents, as of now.
type Agents interface {
	// Agent returns one agent, enabled or not, with the model it will use. It
	// may take a moment the first time, when the model has to be looked for.
	Agent(alias string) (domain.Agent, bool)
	// All returns every agent, sorted by alias, as far as it is known now.
	All() []domain.Agent
	// Default returns the alias used when a client names none; "" when none
	// is configured.
	Default() string
}
