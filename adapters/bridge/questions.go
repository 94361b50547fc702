package bridge

import (
	"slices"
	"strconv"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// question is a request of the gateway's that the editor has not answered.
type question struct {
	asked  jsonrpc.ID // by the gateway
	known  jsonrpc.ID // to the editor
	orphan bool       // nobody waits for the answer any more
}

// ask notes a question of the gateway's and returns the id that the editor is
// to know it by: another one when the editor still holds a question by that id
// that nobody waits for.
func (k *book) ask(id jsonrpc.ID) jsonrpc.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := id
	for k.questions[known.Key()] != nil {
		k.aliases++
		known = jsonrpc.ID(`"again-` + strconv.Itoa(k.aliases) + `"`)
	}
	k.questions[known.Key()] = &question{asked: id, known: known}
	return known
}

// answer takes the question off the book that the editor has answered; nil
// when there is none.
func (k *book) answer(known jsonrpc.ID) *question {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.questions[known.Key()]
	delete(k.questions, known.Key())
	return q
}

// knownAs is the id by which the editor knows a question that somebody waits
// for.
func (k *book) knownAs(asked jsonrpc.ID) (jsonrpc.ID, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, q := range k.questions {
		if q.asked.Key() == asked.Key() && !q.orphan {
			return q.known, true
		}
	}
	return "", false
}

// orphans gives up the questions whose asker is lost, and returns them.
func (k *book) orphans() []jsonrpc.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []jsonrpc.ID
	for _, q := range k.questions {
		if !q.orphan {
			q.orphan = true
			list = append(list, q.known)
		}
	}
	slices.Sort(list)
	return list
}
