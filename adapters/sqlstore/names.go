package sqlstore

import (
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

// Enumerations are stored by name. A value the domain has no name for is
// stored by its number and comes back as it was.

// table gives the names of an enumeration by number.
type table []string

func (t table) name(n int64) string {
	if n < 0 || n >= int64(len(t)) {
		return ""
	}
	return t[n]
}

// outcomeNames are the names of domain.Outcome in its order.
var outcomeNames = table{
	domain.Unanswered: "unanswered",
	domain.Selected:   "selected",
	domain.Withdrawn:  "withdrawn",
}

func outcomeNumber(name string) (int64, bool) {
	n := slices.Index(outcomeNames, name)
	return int64(n), n >= 0
}

func stopNumber(name string) (int64, bool) {
	stop, ok := domain.ParseStop(name)
	return int64(stop), ok
}

// codeName returns the domain's name of a code, "" for a number out of range.
func codeName(c domain.Code) string {
	if c < 0 || int(c) >= len(domain.Codes()) {
		return ""
	}
	return c.String()
}

func codeNumber(name string) (int64, bool) {
	for _, c := range domain.Codes() {
		if c.String() == name {
			return int64(c), true
		}
	}
	return 0, false
}
