package acp1

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// files is the client's editor buffers as ports.Files. Each direction is
// offered by a capability of its own.
type files struct {
	conn        *jsonrpc.Conn
	read, write bool
}

var _ ports.Files = files{}

// ReadText calls fs/read_text_file for the whole file.
func (f files) ReadText(ctx context.Context, id domain.SessionID, path string) (string, error) {
	if !f.read {
		return "", domain.Errorf(domain.Unsupported, "the client does not offer its editor's buffers for reading")
	}
	raw, err := f.call(ctx, methodReadFile, id, path, nil)
	if err != nil {
		return "", err
	}
	text, ok := stringOf(objectOf(raw)["content"])
	if !ok {
		return "", domain.Errorf(domain.Unavailable, "the client's answer has no content of %s", path)
	}
	return text, nil
}

// WriteText calls fs/write_text_file. Whatever result comes back is success:
// some clients answer null.
func (f files) WriteText(ctx context.Context, id domain.SessionID, path, text string) error {
	if !f.write {
		return domain.Errorf(domain.Unsupported, "the client does not take writes into its editor's buffers")
	}
	_, err := f.call(ctx, methodWriteFile, id, path, &text)
	return err
}

// call sends a request about a file and gives the client's refusal a code.
func (f files) call(ctx context.Context, method string, id domain.SessionID, path string, content *string) (
	json.RawMessage, error,
) {
	if !filepath.IsAbs(path) {
		return nil, domain.Errorf(domain.InvalidArgument, "path %q is not absolute", path)
	}
	params := jsonrpc.AppendString([]byte(`{"sessionId":`), string(id))
	params = jsonrpc.AppendString(append(params, `,"path":`...), path)
	if content != nil {
		params = jsonrpc.AppendString(append(params, `,"content":`...), *content)
	}
	if len(params) > maxLine {
		return nil, domain.Errorf(domain.TooLarge, "%s is too large to be written through the client", path)
	}
	raw, err := f.conn.Call(ctx, method, json.RawMessage(append(params, '}')))
	var remote *jsonrpc.RemoteError
	if !errors.As(err, &remote) {
		return raw, err
	}
	code, what := domain.Unavailable, "cannot serve "+path
	switch remote.Code {
	case jsonrpc.CodeNotFound:
		code, what = domain.NotFound, "has no file "+path
	case jsonrpc.CodeMethodNotFound:
		code, what = domain.Unsupported, "does not serve "+method
	}
	return nil, domain.WrapError(code, err, "the client "+what+": "+brief(remote.Message))
}
