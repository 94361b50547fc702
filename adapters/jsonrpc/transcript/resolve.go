package transcript

import "fmt"

// resolve finds out which request each answer is about, so that a label that
// does not exist is a mistake of the script and not a failure of the agent.
// Lines inside any count in the order in which they are written.
func (s *Script) resolve() error {
	r := resolver{clients: map[string]*openRequests{}}
	r.use(firstClient)
	return r.lines(s.Lines)
}

// openRequests are the requests of one connection that have no answer yet, by
// ref: ours and the agent's share their labels.
type openRequests struct {
	ours, theirs []string
	labels       map[string]bool // ever used
}

type resolver struct {
	clients map[string]*openRequests
	now     *openRequests
	made    int
}

func (r *resolver) use(client string) {
	if r.clients[client] == nil {
		r.clients[client] = &openRequests{labels: map[string]bool{}}
	}
	r.now = r.clients[client]
}

func (r *resolver) lines(lines []Line) error {
	for i := range lines {
		if err := r.line(&lines[i]); err != nil {
			return &Error{lines[i].N, err.Error()}
		}
		if err := r.lines(lines[i].Body); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) line(l *Line) (err error) {
	switch l.Op {
	case Client:
		r.use(l.Text)
	case Restart, Reconnect, Kill, Drop:
		r.now.ours, r.now.theirs = nil, nil
	case Request:
		return r.open(l, &r.now.ours)
	case Ask:
		return r.open(l, &r.now.theirs)
	case Response:
		return r.settle(l, &r.now.ours, "request")
	case Answer:
		return r.settle(l, &r.now.theirs, `"<?"`)
	}
	return nil
}

// open enters a request. One whose id is given with "#" is answered with "#".
func (r *resolver) open(l *Line, list *[]string) error {
	if l.ID != nil {
		if l.Op == Ask {
			return fmt.Errorf("the agent chooses its ids; use a label")
		}
		l.ref = "#" + string(l.ID)
		return nil
	}
	if l.ref = l.Label; l.ref == "" {
		r.made++
		l.ref = fmt.Sprintf("#request %d", r.made)
	} else if has(r.now.ours, l.ref) || has(r.now.theirs, l.ref) {
		return fmt.Errorf("the label @%s is still in use", l.ref)
	}
	r.now.labels[l.ref] = true
	*list = append(*list, l.ref)
	return nil
}

// settle finds the request an answer is about and takes it off the list.
func (r *resolver) settle(l *Line, list *[]string, what string) error {
	if l.ID != nil {
		l.ref = "#" + string(l.ID)
		return nil
	}
	l.ref = l.Label
	if l.Label == "" {
		for _, ref := range *list {
			if ref[0] != '#' {
				continue
			}
			if l.ref != "" {
				return fmt.Errorf("more than one unlabelled %s is open; label them", what)
			}
			l.ref = ref
		}
		if l.ref == "" {
			return fmt.Errorf("no unlabelled %s is open", what)
		}
	}
	for i, ref := range *list {
		if ref == l.ref {
			*list = append((*list)[:i:i], (*list)[i+1:]...)
			return nil
		}
	}
	if l.Op == Answer && r.now.labels[l.ref] {
		return nil // answering twice is something a client may do
	}
	return fmt.Errorf("no open %s has the label @%s", what, l.Label)
}

func has(list []string, ref string) bool {
	for _, r := range list {
		if r == ref {
			return true
		}
	}
	return false
}
