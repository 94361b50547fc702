package acp1

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// What translators between this protocol and another one share with the
// server: the shapes of messages, without its services.

// UpdateParams is the params of the session/update that shows u to a client,
// bounded as all messages of ours are. ok is false for what version 1 does not
// show a client that offers what info says.
func UpdateParams(id domain.SessionID, u domain.Update, info domain.ClientInfo) (params jsonrpc.Appender, ok bool) {
	u, ok = visible(u, info)
	return &sessionUpdate{id: id, update: u}, ok
}

// Pieces cuts text into what one chunk of a message carries, between
// characters. Clients put chunks together again.
func Pieces(text string) []string {
	var out []string
	for len(text) > pieceBytes {
		end := runeStart(text, pieceBytes)
		out = append(out, text[:end])
		text = text[end:]
	}
	return append(out, text)
}

// PermissionParams is the params of session/request_permission.
func PermissionParams(r domain.PermissionRequest) jsonrpc.Appender { return &permissionParams{r} }

// ReadDecision reads the answer to a permission request. Whatever is not
// clear is no answer.
func ReadDecision(raw json.RawMessage, offered []domain.PermissionOption) domain.Decision {
	return readDecision(raw, offered, false)
}

// ReadPrompt reads the member prompt of a session/prompt: all of it is
// checked, one bad part refuses the whole. maxBlobs bounds its blobs together,
// decoded, in bytes.
func ReadPrompt(raw json.RawMessage, images, audio bool, maxBlobs int) ([]domain.Block, error) {
	r := contentReader{images: images, audio: audio, maxBlobs: maxBlobs}
	return r.prompt(raw)
}

// ReadClient reads what the params of initialize say of the client.
func ReadClient(params json.RawMessage) domain.ClientInfo {
	return clientInfo(objectOf(params), false, nil)
}
