package config

import (
	"slices"
	"sync"
)

// revealed remembers the secrets that were read from elsewhere and handed out,
// for the filters that keep them out of logs. The values sit inside functions,
// as in Secret.
type revealed struct {
	note func(value string)
	all  func() []string // never shrinks; not to be changed
}

func newRevealed() revealed {
	var mu sync.Mutex
	var values []string
	return revealed{
		note: func(v string) {
			mu.Lock()
			defer mu.Unlock()
			if v != "" && !slices.Contains(values, v) {
				values = append(values, v)
			}
		},
		all: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return values[:len(values):len(values)]
		},
	}
}
