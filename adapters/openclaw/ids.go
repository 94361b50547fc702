package openclaw

import (
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// A session that a bridge makes has the key agent:<agent>:acp-bridge:<uuid>,
// and the uuid is its id. Every other session has its key for an id. Either
// way the id alone leads to the session.
const bridgePart = "acp-bridge:"

// idOf is the id of the session with a canonical key.
func idOf(key string) domain.SessionID {
	if _, rest := splitKey(key); strings.HasPrefix(rest, bridgePart) && isUUID(rest[len(bridgePart):]) {
		return domain.SessionID(rest[len(bridgePart):])
	}
	return domain.SessionID(key)
}

// splitKey parts agent:<agent>:<rest>. A key of another form has no agent.
func splitKey(key string) (agent, rest string) {
	inner, ok := strings.CutPrefix(key, "agent:")
	if !ok {
		return "", key
	}
	agent, rest, ok = strings.Cut(inner, ":")
	if !ok {
		return "", key
	}
	return agent, rest
}

// keyOf is the key of a session of an agent; agent "" leaves that to the
// Gateway.
func keyOf(agent, rest string) string {
	if agent == "" {
		return rest
	}
	return "agent:" + agent + ":" + rest
}

// isUUID reports whether s has the form of a UUID in lower case.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
