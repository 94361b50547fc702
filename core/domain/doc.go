// Package domain is the vocabulary of Berth: plain values and pure functions,
// with no clock, no environment, no wire format and no storage format.
//
// A *session* is a conversation with one agent over one set of root
// directories. It outlives the connections and processes that serve it.
//
// A *turn* starts when a prompt is admitted and ends with exactly one Stop or
// one Error. Inside it the engine alternates *steps*: one model reply, then
// the *tool calls* that reply asked for. Work is cancelled with a Cause, and
// StopFor alone turns causes into stops.
//
// What happens is written down as a Record before its effect is relied upon.
// The journal of a session is its list of records, and any prefix of it is a
// valid session: Replay turns records into the Updates a client sees, Context
// turns them into the messages a model sees. Live and replayed updates come
// from the same mapping, so they cannot differ.
//
// Unions (Block, Update, Record, ModelEvent, Event, ...) are sealed
// interfaces: only types of this package are members, and a switch over one
// lists them all.
//
// Read next: core/ports/doc.go.
package domain
