package sandbox

import "sync"

// index remembers the directories of the roots, so that a root is read once
// and then only where it changed. It is safe for several goroutines.
type index struct {
	mu    sync.Mutex
	roots map[string]map[string]listing // root, directory in it
}

// indexed bounds the roots that are remembered.
const indexed = 16

// of returns what is known of a root; nobody changes it.
func (x *index) of(root string) map[string]listing {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.roots[root]
}

func (x *index) set(root string, dirs map[string]listing) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.roots == nil || len(x.roots) >= indexed && x.roots[root] == nil {
		x.roots = map[string]map[string]listing{}
	}
	x.roots[root] = dirs
}
