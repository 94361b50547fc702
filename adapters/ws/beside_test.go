package ws

// Beside begins work beside the reader and the writer of a connection, as an
// answer to a ping is; ok is false when the connection is over.
func Beside(c *Conn) (done func(), ok bool) { return c.side.Done, c.enter() }
