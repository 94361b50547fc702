package streamhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/core/domain"
)

// post takes one message of the client.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, pass *ws.Pass) {
	if bad := acceptable(r); bad != nil {
		bad.write(w)
		return
	}
	var c *connection
	if len(r.Header[ws.HeaderConnection]) > 0 {
		var bad *refusal
		if c, bad = h.find(r, pass); bad != nil {
			bad.write(w)
			return
		}
		defer c.leave()
	}
	limit := h.opts.MaxMessageBytes
	if c == nil {
		limit = min(limit, maxOpening)
	} else if !c.takeLong(r) {
		unknownConnection().write(w)
		return
	} else {
		defer c.doneLong(r)
	}
	body, ok := h.read(w, r, limit)
	if !ok {
		return
	}
	m, err := jsonrpc.Parse(body)
	if err != nil && m.Kind != jsonrpc.Response {
		refuseGarbage(w, err)
		return
	}
	opens := m.Kind == jsonrpc.Request && m.Method == methodInitialize
	switch {
	case m.Kind == jsonrpc.Request && len(m.ID) > maxID:
		refuse(w, http.StatusBadRequest, "The id of the request is longer than 1024 bytes.")
	case opens && c != nil:
		refuse(w, http.StatusBadRequest, "initialize opens a connection; send it without Acp-Connection-Id.")
	case opens:
		h.initialize(w, r, pass, m.ID, body)
	case c == nil:
		noConnection().write(w)
	default:
		c.accept(w, r, m, body)
	}
}

// What many bodies that are on their way may take of memory: the first message
// of a connection is a short one, and of the long messages of a connection so
// many are read at a time. Short ones, such as a cancel, wait for none.
const (
	maxOpening = 1 << 20
	longBody   = 64 << 10
	longBodies = 2
)

// long reports whether a body is one, or may be.
func long(r *http.Request) bool { return r.ContentLength < 0 || r.ContentLength > longBody }

// takeLong waits until a body may be read. It reports false when the client or
// the connection has gone meanwhile.
func (c *connection) takeLong(r *http.Request) bool {
	if !long(r) {
		return true
	}
	select {
	case c.long <- struct{}{}:
		return true
	case <-c.over:
	case <-r.Context().Done():
	}
	return false
}

// doneLong ends what takeLong began.
func (c *connection) doneLong(r *http.Request) {
	if long(r) {
		<-c.long
	}
}

// acceptable judges what a body claims to be.
func acceptable(r *http.Request) *refusal {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(media), "application/json") {
		return &refusal{http.StatusUnsupportedMediaType, "The Content-Type of a message is application/json."}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return &refusal{http.StatusUnsupportedMediaType, "The body of a message is not encoded."}
	}
	return nil
}

// read reads a body. When it reports false, it has answered.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, most int) ([]byte, bool) {
	tooLong := func() {
		refuseMessage(w, http.StatusRequestEntityTooLarge, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Reason: "MESSAGE_TOO_LARGE", Message: "The message is too long.",
			Data: []domain.Detail{{Key: "limit", Value: most}},
		}, "")
	}
	limit := int64(most)
	if r.ContentLength > limit {
		tooLong()
		return nil, false
	}
	body := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0)+1, 1<<20)))
	rc := http.NewResponseController(w)
	_, err := io.Copy(body, &patient{http.MaxBytesReader(w, r.Body, limit), rc, h.opts.Stall})
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{})
		return bytes.TrimPrefix(body.Bytes(), []byte("\xEF\xBB\xBF")), true
	}
	// The deadline stays: nobody waits for the rest of the body.
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		tooLong()
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(w, http.StatusRequestTimeout, "The body did not arrive in time.")
	default:
		refuse(w, http.StatusBadRequest, "The body is not whole.")
	}
	return nil, false
}

// patient reads a body that keeps coming, however long it takes.
type patient struct {
	r    io.Reader
	rc   *http.ResponseController
	wait time.Duration
}

// Read waits for some bytes.
func (p *patient) Read(b []byte) (int, error) {
	_ = p.rc.SetReadDeadline(time.Now().Add(p.wait)) // where there is no deadline, the server has none
	return p.r.Read(b)
}

// refuseGarbage answers a body that is no message.
func refuseGarbage(w http.ResponseWriter, err error) {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Reason: "INVALID_REQUEST", Message: "Invalid request: " + err.Error()}
	var id jsonrpc.ID
	var bad *jsonrpc.MessageError
	if errors.As(err, &bad) {
		id = bad.ID
		if bad.Code == jsonrpc.CodeParse {
			e = &jsonrpc.Error{Code: jsonrpc.CodeParse, Reason: "PARSE_ERROR", Message: "Parse error: " + err.Error()}
		}
	}
	refuseMessage(w, http.StatusBadRequest, e, id)
}

// initialize opens a connection and answers with what its server says first.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, pass *ws.Pass, id jsonrpc.ID, body []byte) {
	if id == jsonrpc.NullID {
		refuse(w, http.StatusBadRequest, "The id of initialize must not be null.")
		return
	}
	c := h.open(w, r, pass)
	if c == nil {
		return
	}
	defer c.leave()
	_ = c.push(r.Context(), body) // fails with the client or the connection, which is seen to below
	var answer []byte
	select {
	case answer = <-c.first:
	case <-r.Context().Done():
		c.end() // nobody knows its id
		return
	case <-c.served:
		select {
		case answer = <-c.first:
		default:
			refuseMessage(w, http.StatusInternalServerError, &jsonrpc.Error{
				Code: jsonrpc.CodeInternal, Reason: "INTERNAL_ERROR", Message: "The connection ended before initialize was answered.",
			}, id)
			return
		}
	}
	w.Header().Set(ws.HeaderConnection, c.id)
	writeJSON(w, http.StatusOK, answer)
}

// accept hands a message on.
func (c *connection) accept(w http.ResponseWriter, r *http.Request, m jsonrpc.Message, body []byte) {
	session, bad := header(r, HeaderSession)
	if bad == nil {
		if m.Kind == jsonrpc.Response {
			bad = c.settle(m.ID, session)
		} else {
			bad = judgeSession(m, session)
		}
	}
	if bad != nil {
		bad.write(w)
		return
	}
	if m.Kind == jsonrpc.Request {
		c.note(m.ID, routeOf(m.Method, session))
	}
	if err := c.push(r.Context(), body); err != nil {
		if m.Kind == jsonrpc.Request {
			c.unnote(m.ID)
		}
		unknownConnection().write(w)
		return
	}
	accepted(w)
}

// judgeSession holds the session header against the message.
func judgeSession(m jsonrpc.Message, session string) *refusal {
	named, ok := sessionOf(m.Params)
	switch {
	case session == "" && (ok || sessionScoped(m.Method)):
		return &refusal{http.StatusBadRequest, "Acp-Session-Id is missing; " + m.Method + " belongs to a session."}
	case session != "" && ok && named != session:
		return &refusal{http.StatusBadRequest, "Acp-Session-Id is not the session that the message names."}
	}
	return nil
}
