package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/berth-dev/berth/bootstrap"
)

// socketCase is a case of the corpus for a WebSocket or its handshake.
type socketCase struct {
	ID, Description string
	Input           struct {
		Transport string
		Request   struct {
			Query   string
			Headers map[string]string
		}
		Send []struct {
			Text       *string
			B64        []byte
			BinaryText *string `json:"binary_text"`
			WSRaw      string  `json:"ws_raw"`
			Gen        *struct {
				Repeat, Suffix string
				Times          int
			}
		}
	}
	Expected struct {
		Replies      []map[string]json.RawMessage
		Alive        bool
		CloseCodeIn  []int    `json:"close_code_in"`
		HTTPStatusIn []int    `json:"http_status_in"`
		AlsoOK       []string `json:"also_ok"`
		Assert       []string
	}
}

// TestCorpus_WebSocket plays every case for WebSockets and their handshakes
// against a daemon of the built binary.
func TestCorpus_WebSocket(t *testing.T) {
	data, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for line := range bytes.Lines(data) {
		var c socketCase
		if err := json.Unmarshal(line, &c); err != nil {
			continue // a case for stdio, of another shape
		}
		play := map[string]func(*testing.T, *socketCase){"ws": playSocket, "ws-handshake": playHandshake}[c.Input.Transport]
		if play == nil {
			continue
		}
		ran[c.Input.Transport]++
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			play(t, &c)
		})
	}
	if want := map[string]int{"ws": 6, "ws-handshake": 10}; fmt.Sprint(ran) != fmt.Sprint(want) {
		t.Errorf("%v cases ran, want %v", ran, want)
	}
}

// socketDaemon is a daemon of the built binary with one stored token.
type socketDaemon struct {
	info  bootstrap.DaemonInfo
	token string
	log   *logBuffer
	world world
}

// startSocketDaemon starts one, with further arguments.
func startSocketDaemon(t *testing.T, args ...string) *socketDaemon {
	t.Helper()
	return startSocketDaemonIn(t, (&scenario{}).prepare(t), args...)
}

// startSocketDaemonIn starts one in a world that is prepared.
func startSocketDaemonIn(t *testing.T, w world, args ...string) *socketDaemon {
	t.Helper()
	d := &socketDaemon{log: &logBuffer{}, world: w}
	dirs := []string{"--config-dir", w.config, "--data-dir", w.data}
	create := exec.Command(binary, append([]string{"token", "create", "--name", "test"}, dirs...)...)
	create.Env = cleanEnv(w)
	out, err := create.Output()
	if err != nil {
		t.Fatalf("berth token create: %v", err)
	}
	d.token = strings.TrimSpace(string(out))
	cmd := exec.Command(binary, slices.Concat([]string{"daemon", "--listen", "127.0.0.1:0", "--log-level", "trace"}, dirs, args)...)
	cmd.Env, cmd.Stderr = append(cleanEnv(w), "BERTH_store__required=true"), d.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := whenEnded(cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the daemon does not end")
			_ = cmd.Process.Kill()
			<-ended
		}
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the daemon ended with code %d:\n%s", code, d.log)
		}
	})
	for limit := time.Now().Add(patience); ; {
		info, running, err := bootstrap.FindDaemon(w.data)
		if err == nil && running {
			d.info = info
			return d
		}
		select {
		case <-ended:
			t.Fatalf("the daemon ended:\n%s", d.log)
		case <-time.After(5 * time.Millisecond): // its file appears
		}
		if time.Now().After(limit) {
			t.Fatalf("the daemon does not listen:\n%s", d.log)
		}
	}
}

// whenEnded is closed when a command has ended.
func whenEnded(cmd *exec.Cmd) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the state tells
	}()
	return done
}

const corpusProtocol = "acp.v1"

func (d *socketDaemon) fill(s string) string {
	_, port, _ := net.SplitHostPort(d.info.Address)
	return strings.NewReplacer("{{TOKEN}}", d.token, "{{TOKEN_PREFIX}}", d.token[:len(d.token)/2], "{{PROTO}}", corpusProtocol, "{{PORT}}", port).Replace(s)
}

// playHandshake sends one handshake over a socket of its own.
func playHandshake(t *testing.T, c *socketCase) {
	d := startSocketDaemon(t)
	conn, err := net.Dial("tcp", d.info.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	head := map[string]string{
		"Host": d.info.Address, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	}
	for name, value := range c.Input.Request.Headers {
		head[name] = d.fill(value)
	}
	request := "GET /acp"
	if q := c.Input.Request.Query; q != "" {
		request += "?" + d.fill(q)
	}
	request += " HTTP/1.1\r\n"
	for name, value := range head {
		request += name + ": " + value + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(c.Expected.HTTPStatusIn, answer.StatusCode) {
		t.Errorf("%s: answered %d, want %v", c.Description, answer.StatusCode, c.Expected.HTTPStatusIn)
	}
	for _, a := range c.Expected.Assert {
		switch a {
		case "the token appears in no log line of any level": // checked of every case
		case "response Sec-WebSocket-Protocol is {{PROTO}}":
			if got := answer.Header.Get("Sec-WebSocket-Protocol"); got != corpusProtocol {
				t.Errorf("it selected %q", got)
			}
		default:
			t.Errorf("nobody knows how to check %q", a)
		}
	}
	body := ""
	if answer.StatusCode != http.StatusSwitchingProtocols {
		b, _ := io.ReadAll(answer.Body)
		body = string(b)
	}
	for _, where := range []string{fmt.Sprint(answer.Header), body, d.log.String()} {
		if strings.Contains(where, d.token) || strings.Contains(where, "token=") {
			t.Errorf("the token is told in %q", where)
		}
	}
}

// playSocket sends what a case sends over an initialized WebSocket.
func playSocket(t *testing.T, c *socketCase) {
	d := startSocketDaemon(t)
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+d.info.Address+"/acp", http.Header{"Authorization": {"Bearer " + d.token}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	write := func(text string) {
		t.Helper()
		if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	if _, _, err := conn.ReadMessage(); err != nil {
		t.Fatal(err)
	}
	pongs, pongsFirst := 0, 0
	conn.SetPongHandler(func(string) error {
		pongs++
		return nil
	})
	for _, s := range c.Input.Send {
		var err error
		switch {
		case s.Text != nil:
			write(*s.Text)
		case s.B64 != nil:
			err = conn.WriteMessage(websocket.TextMessage, s.B64)
		case s.BinaryText != nil:
			err = conn.WriteMessage(websocket.BinaryMessage, []byte(*s.BinaryText))
		case s.Gen != nil:
			_ = conn.WriteMessage(websocket.TextMessage, []byte(strings.Repeat(s.Gen.Repeat, s.Gen.Times)+s.Gen.Suffix)) // it is not read to its end
		default:
			_, err = conn.NetConn().Write(rawFrames(t, s.WSRaw))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if c.Expected.Alive {
		write(`{"jsonrpc":"2.0","id":"probe","method":"_probe/none"}`)
	}
	var got []message
	code := 0
	for code == 0 {
		_, data, err := conn.ReadMessage()
		if err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) {
				t.Fatalf("it ended with %v", err)
			}
			code = closed.Code
			break
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if string(m.ID) == `"probe"` {
			break
		}
		if m.Method == "" {
			pongsFirst = pongs
			got = append(got, m)
		}
	}
	if alive := code == 0; alive != c.Expected.Alive || !alive && !slices.Contains(c.Expected.CloseCodeIn, code) {
		t.Errorf("%s: alive %v, close code %d; want %v, %v", c.Description, alive, code, c.Expected.Alive, c.Expected.CloseCodeIn)
	}
	if want := (&peerCase{Expected: struct {
		Replies []map[string]json.RawMessage
		Alive   bool
		AlsoOK  []string `json:"also_ok"`
		Assert  []string
	}{Replies: c.Expected.Replies, AlsoOK: c.Expected.AlsoOK}}); !want.matches(got) {
		t.Errorf("%s: got %s, want %s", c.Description, shownReplies(got), jsonOf(c.Expected.Replies))
	}
	for _, a := range c.Expected.Assert {
		if a != "pong received before the reply" {
			t.Errorf("nobody knows how to check %q", a)
		} else if pongsFirst != 1 {
			t.Errorf("%d pongs came before the reply", pongsFirst)
		}
	}
}

// rawFrames are the bytes that the corpus has a name for.
func rawFrames(t *testing.T, name string) []byte {
	t.Helper()
	const request = `{"jsonrpc":"2.0","id":1,"method":"_x/none"}`
	masked := func(first byte, payload string) []byte { // with a mask of zeros
		return append([]byte{first, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
	}
	switch name {
	case "unmasked_text":
		return append([]byte{0x81, byte(len(request))}, request...)
	case "fragment_ping_fragment":
		return slices.Concat(masked(0x01, request[:10]), masked(0x89, "in between"), masked(0x80, request[10:]))
	}
	t.Fatalf("nobody knows the frames %q", name)
	return nil
}
