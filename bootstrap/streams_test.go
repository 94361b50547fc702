package bootstrap

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestStreams drives a session over POST and server-sent events, on each
// version of HTTP, and stops the daemon under an open stream.
func TestStreams(t *testing.T) {
	for name, choose := range map[string]func(*http.Protocols){
		"HTTP 1":               func(p *http.Protocols) { p.SetHTTP1(true) },
		"HTTP 2 in clear text": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		t.Run(name, func(t *testing.T) {
			w := written{t, t.TempDir()}
			d, _ := w.daemonOf("auth = \"token\"\n")
			transport := &http.Transport{Protocols: new(http.Protocols)}
			choose(transport.Protocols)
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			ask := func(method, body string, headers ...string) *http.Response {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+d.Info().Address+"/acp", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+w.token())
				r.Header.Set("Content-Type", "application/json")
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				res, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = res.Body.Close() })
				return res
			}
			next := func(stream *bufio.Reader) string {
				t.Helper()
				for {
					line, err := stream.ReadString('\n')
					if data, ok := strings.CutPrefix(line, "data: "); ok {
						return data
					}
					if err != nil {
						t.Fatalf("the stream ended: %v", err)
					}
				}
			}

			opened := ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
			id := opened.Header.Get("Acp-Connection-Id")
			if body, _ := io.ReadAll(opened.Body); opened.StatusCode != http.StatusOK || id == "" || !strings.Contains(string(body), `"name":"berth"`) {
				t.Fatalf("initialize: %s %s", opened.Status, body)
			}
			main := bufio.NewReader(ask(http.MethodGet, "", "Accept", "text/event-stream", "Acp-Connection-Id", id).Body)
			if res := ask(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`, "Acp-Connection-Id", id); res.StatusCode != http.StatusAccepted {
				t.Fatalf("session/list: %s", res.Status)
			}
			if got := next(main); !strings.Contains(got, `"id":2`) || !strings.Contains(got, `"sessions"`) {
				t.Errorf("session/list: %s", got)
			}
			if res := ask(http.MethodPost, `{}`, "Acp-Connection-Id", id, "Origin", "https://evil.example"); res.StatusCode != http.StatusForbidden {
				t.Errorf("a foreign page: %s", res.Status)
			}
			if err := d.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
			if _, err := io.ReadAll(main); err != nil {
				t.Errorf("the stream broke: %v", err)
			}
		})
	}
}

// TestStreams_ShortFrames: nobody has the server keep a long buffer for a
// network connection by a long frame of HTTP/2.
func TestStreams_ShortFrames(t *testing.T) {
	const data, goAway, tooLong = 0, 7, 6
	d, _ := written{t, t.TempDir()}.daemonOf("auth = \"token\"\n")
	c, err := net.Dial("tcp", d.Info().Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	hello := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, 4, 0, 0, 0, 0, 0) // and no settings
	long := binary.BigEndian.AppendUint32(nil, (maxFrame+1)<<8|data)
	long = binary.BigEndian.AppendUint32(append(long, 0), 1)
	if _, err := c.Write(append(append(hello, long...), make([]byte, maxFrame+1)...)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for {
		var head [9]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			t.Fatalf("the connection ended without a word: %v", err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:])>>8)
		if _, err := io.ReadFull(in, body); err != nil {
			t.Fatal(err)
		}
		if head[3] != goAway {
			continue
		}
		if code := binary.BigEndian.Uint32(body[4:]); code != tooLong {
			t.Errorf("a frame of %d bytes: error %d, want %d", maxFrame+1, code, tooLong)
		}
		return
	}
}
