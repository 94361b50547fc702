package link

import "sync"

// Registry is a server's links by the id of their connection. The zero value
// is empty.
type Registry struct {
	mu    sync.Mutex
	links map[string]owned
}

// owned is a link with whoever may take it up again.
type owned struct {
	link  *Link
	owner string
}

// Add makes a link known until it is removed. Only the owner, a name for the
// principal that was admitted, finds it.
func (r *Registry) Add(connection, owner string, l *Link) (remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links == nil {
		r.links = map[string]owned{}
	}
	r.links[connection] = owned{l, owner}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.links, connection)
	}
}

// Find returns an owner's link; nil when there is none.
func (r *Registry) Find(connection, owner string) *Link {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := r.links[connection]; ok && o.owner == owner {
		return o.link
	}
	return nil
}
