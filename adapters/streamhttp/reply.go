package streamhttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// maxID is the longest id in a header or a request, in bytes.
const maxID = 1024

// answerTime is how long an answer that is no stream may wait for its client.
const answerTime = 30 * time.Second

// bound bounds the writing of an answer, where the transport can.
func bound(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
}

// refusal is an answer that says why a request got nowhere.
type refusal struct {
	status int
	text   string
}

func (b *refusal) write(w http.ResponseWriter) { refuse(w, b.status, b.text) }

func refuse(w http.ResponseWriter, status int, text string) {
	bound(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

func noConnection() *refusal {
	return &refusal{http.StatusBadRequest, "Acp-Connection-Id is missing; POST initialize without it to open a connection."}
}

func unknownConnection() *refusal {
	return &refusal{http.StatusNotFound, "This Acp-Connection-Id is unknown here; POST initialize to open a connection, then load the session."}
}

// refuseMessage answers a body that is no message the way a peer on a pipe
// would be answered.
func refuseMessage(w http.ResponseWriter, status int, e *jsonrpc.Error, id jsonrpc.ID) {
	if id == "" {
		id = jsonrpc.NullID
	}
	body := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	body = append(body, `,"error":`...)
	body = append(e.AppendJSON(body), '}')
	writeJSON(w, status, body)
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	bound(w)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// accepted answers that a message or the end was taken.
func accepted(w http.ResponseWriter) {
	bound(w)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusAccepted)
}

// header returns the value of an id header, which may come once.
func header(r *http.Request, name string) (string, *refusal) {
	values := r.Header[name]
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", &refusal{http.StatusBadRequest, name + " was sent more than once."}
	case len(values[0]) > maxID:
		return "", &refusal{http.StatusBadRequest, name + " is longer than " + strconv.Itoa(maxID) + " bytes."}
	}
	return values[0], nil
}
