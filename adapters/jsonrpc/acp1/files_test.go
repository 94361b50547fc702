package acp1

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func TestFiles(t *testing.T) {
	porttest.Files(porttest.Bubble(t), porttest.FilesHarness{Open: openEditor})
}

// editor is a client that serves its buffers.
type editor struct {
	*farEnd
	mu      sync.Mutex
	buffers map[string]string
	refuses bool
	hangs   bool
}

// openEditor connects an editor. Its goroutine ends with the connection, which
// the harness of the client ends with the case.
func openEditor(t porttest.TB) porttest.FilesFixture {
	c, peer := connector(`"protocolVersion":1,`)(t, domain.ClientInfo{ReadFiles: true, WriteFiles: true})
	e := &editor{farEnd: peer.(*farEnd), buffers: map[string]string{}}
	go e.serve()
	files, ok := c.Files()
	if !ok {
		t.Fatalf("the client offers no files")
	}
	return porttest.FilesFixture{
		Files: files, Session: "s1",
		Path: func(name string) string { return "/proj/" + name },
		Put: func(path, text string) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.buffers[path] = text
		},
		Got: func(path string) (string, bool) {
			e.mu.Lock()
			defer e.mu.Unlock()
			text, ok := e.buffers[path]
			return text, ok
		},
		Refuse: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.refuses = true
		},
		Hang: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.hangs = true
		},
	}
}

func (e *editor) serve() {
	for {
		select {
		case f := <-e.wire.out:
			if err := e.check.Agent(f); err != nil {
				e.t.Errorf("frame %.300s: %v", f, err)
			}
			if m, err := jsonrpc.Parse(f); err == nil && m.Kind == jsonrpc.Request {
				if answer := e.answer(m.Method, objectOf(m.Params)); answer != "" {
					e.send(`"id":` + string(m.ID) + `,` + answer)
				}
			}
		case <-e.wire.closed:
			return
		}
	}
}

// answer is what the editor says to a request; "" when it hangs.
func (e *editor) answer(method string, params object) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	path := params.text("path")
	text, ok := e.buffers[path]
	switch {
	case e.hangs:
		return ""
	case method == methodReadFile && !ok:
		return `"error":{"code":-32002,"message":"Resource not found"}`
	case method == methodReadFile:
		content, err := json.Marshal(text)
		if err != nil {
			return `"error":{"code":-32603,"message":"no JSON"}`
		}
		return `"result":{"content":` + string(content) + `}`
	case e.refuses:
		return `"error":{"code":-32603,"message":"the file is read-only"}`
	}
	e.buffers[path] = params.text("content")
	return `"result":{}`
}
