package jsonrpc

// What follows is for code that passes frames on and writes some of its own,
// without a Conn.

// AppendRequest appends the frame of a request, or of a notification if id is
// empty. params goes out as Reply.Result does.
func AppendRequest(dst []byte, id ID, method string, params any) ([]byte, error) {
	return appendCall(dst, id, method, params)
}

// AppendResult appends the frame of a successful answer.
func AppendResult(dst []byte, id ID, result any) ([]byte, error) {
	return appendResult(dst, id, result)
}

// AppendFailure appends the frame of a failed answer.
func AppendFailure(dst []byte, id ID, e *Error) []byte { return appendFailure(dst, id, e) }

// Refusal is the answer to a frame that is no message; it goes to e.ID.
func Refusal(e *MessageError) *Error { return e.wire() }

// Key is equal for two ids exactly when they are the same JSON value.
func (id ID) Key() string { return id.key() }
