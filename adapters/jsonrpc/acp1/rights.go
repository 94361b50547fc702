package acp1

import (
	"context"
	"encoding/json"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// Rights are what a client may do. What concerns sessions is for the services
// to enforce, which find the rights in the client's Info; what concerns
// methods is done here.
type Rights = domain.Rights

// onlyObserves reports whether the client may look and do nothing.
func (c *connection) onlyObserves() bool { return c.p.Rights != nil && c.p.Rights.Observe }

// observes reports whether a method is one of those that only look.
func observes(name string) bool {
	switch name {
	case "initialize", "authenticate", methodList, methodObserve, methodUnobserve:
		return true
	}
	return false
}

// beyondRights refuses a method to a client that may only observe.
func beyondRights(name string) jsonrpc.Admit {
	return func(context.Context, json.RawMessage) (jsonrpc.Task, error) {
		return nil, domain.Errorf(domain.Denied, "%s is not for this client, which may list and observe sessions only", name).With("method", name)
	}
}
