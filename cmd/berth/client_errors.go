package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// explain replaces the error of a connection that ended by what that means.
func (r *client) explain(err error) error {
	if err == nil {
		return nil
	}
	var answer *jsonrpc.RemoteError
	if errors.As(err, &answer) { // whether or not the agent has ended since
		return inItsWords(err, answer)
	}
	ended := errors.Is(err, domain.Disconnected) // which may be known a little before the connection has ended
	select {
	case <-r.proc.Done():
		ended = true
	default:
	}
	if !ended {
		return err
	}
	r.proc.Stop() // when it has exited, all it said is here
	switch said := r.log.take(); {
	case said != "":
		return fmt.Errorf("the agent ended before it answered; it said:\n%s", said)
	case r.log.shown:
		return errors.New("the agent ended before it answered; if it said why, that is above")
	}
	return errors.New("the agent ended before it answered, and said nothing")
}

// inItsWords is an error with the message of an agent's answer in the place of
// what was asked and the codes.
func inItsWords(err error, answer *jsonrpc.RemoteError) error {
	if answer.Message == "" {
		return err
	}
	before, after, _ := strings.Cut(err.Error(), answer.Error())
	if i := strings.LastIndex(before, "call "); i >= 0 {
		before = before[:i]
	}
	return errors.New(before + answer.Message + after)
}

// errorData is what Berth's errors say beside their words; of another agent's
// error it is zero.
type errorData struct {
	Reason string `json:"reason"`
	Key    string `json:"key"` // missing, refused; "" when it is not about a key
}

func dataOf(err error) (d errorData) {
	var answer *jsonrpc.RemoteError
	if !errors.As(err, &answer) || json.Unmarshal(answer.Data, &d) != nil {
		return errorData{}
	}
	return d
}

// costLimit reports whether an error says that the agent may not cost more.
func costLimit(err error) bool { return dataOf(err).Reason == "COST_LIMIT_REACHED" }
