// Package ws carries a protocol's messages over WebSockets: a Guard that
// admits requests, a Handler that upgrades them, Dial for the other end, and
// Conn, which both ends have.
//
// The Guard judges every request before any work is done for it, in this
// order: room, method and path, Host, Origin, recent failures, credentials. It
// knows nothing of WebSockets and stands before every other handler of the
// gateway, too.
//
// A Conn has one reader and one writer, which are its user's; it starts no
// goroutine of its own while it rests. Compression is never negotiated.
//
// Read on in conn.go, leave.go (how a connection ends), link.go (deadlines and
// floods), guard.go, handler.go, dial.go.
package ws
