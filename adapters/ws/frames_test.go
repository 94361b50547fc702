package ws_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/ws"
)

// The kinds of frames.
const (
	opMore  = 0
	opText  = 1
	opBin   = 2
	opClose = 8
	opPing  = 9
	opPong  = 10
	fin     = 0x80
)

// wire is a WebSocket of which every byte is the test's own.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

// raw opens one.
func (g *gate) raw(t *testing.T) *wire {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", g.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, handshake{}.text(g.addr())); err != nil {
		t.Fatal(err)
	}
	w := &wire{t, conn, bufio.NewReader(conn)}
	if answer, err := http.ReadResponse(w.r, nil); err != nil || answer.StatusCode != 101 {
		t.Fatalf("the upgrade: %v %v", answer, err)
	}
	return w
}

// frame is one frame of a client.
func frame(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...) // masked with nothing
}

func (w *wire) send(frames ...[]byte) {
	w.t.Helper()
	for _, f := range frames {
		if _, err := w.conn.Write(f); err != nil {
			w.t.Logf("write: %v", err) // the other end may have closed by now
			return
		}
	}
}

// next reads one frame of the server.
func (w *wire) next() (op byte, payload string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(w.r, head[:]); err != nil {
		return 0, "", err
	}
	if head[1]&0x80 != 0 || head[0]&0x70 != 0 {
		w.t.Errorf("the frame begins with %x", head)
	}
	n := uint64(head[1] & 0x7f)
	switch n {
	case 126:
		var b [2]byte
		_, err = io.ReadFull(w.r, b[:])
		n = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		_, err = io.ReadFull(w.r, b[:])
		n = binary.BigEndian.Uint64(b[:])
	}
	if err != nil {
		return 0, "", err
	}
	body := make([]byte, n)
	_, err = io.ReadFull(w.r, body)
	return head[0] & 0x0f, string(body), err
}

// story reads what comes until the end, such as "text hello", "close 1002".
func (w *wire) story() []string {
	var list []string
	for {
		op, payload, err := w.next()
		switch {
		case err != nil:
			if !errors.Is(err, io.EOF) {
				list = append(list, "broken")
			}
			return list
		case op == opClose && len(payload) >= 2:
			list = append(list, fmt.Sprintf("close %d", binary.BigEndian.Uint16([]byte(payload))))
		case op == opClose:
			list = append(list, "close")
		case op == opText:
			list = append(list, "text "+payload)
		default:
			list = append(list, fmt.Sprintf("%d %s", op, payload))
		}
	}
}

func closing(code uint16) []byte {
	return frame(fin|opClose, string(binary.BigEndian.AppendUint16(nil, code)))
}

// TestConn_Frames: what an echo answers to frames as they are on the wire.
func TestConn_Frames(t *testing.T) {
	text := func(s string) []byte { return frame(fin|opText, s) }
	for _, tt := range []struct {
		name string
		send [][]byte
		want []string
	}{
		{"a message", [][]byte{text(`{"a":1}`), closing(1000)}, []string{`text {"a":1}`, "close 1000"}},
		{"newlines inside one", [][]byte{text("{\n\"a\":1\n}"), closing(1000)}, []string{"text {\n\"a\":1\n}", "close 1000"}},
		{"fragments", [][]byte{frame(opText, "he"), frame(opMore, "ll"), frame(fin|opMore, "o"), closing(1000)}, []string{"text hello", "close 1000"}},
		{"a ping between fragments", [][]byte{frame(opText, "he"), frame(fin|opPing, "now"), frame(fin|opMore, "llo"), closing(1000)}, []string{"10 now", "text hello", "close 1000"}},
		{"a letter cut in two", [][]byte{frame(opText, "\xc3"), frame(fin|opMore, "\xa4"), closing(1000)}, []string{"text ä", "close 1000"}},
		{"a pong that nobody asked for", [][]byte{frame(fin|opPong, "x"), text("a"), closing(1000)}, []string{"text a", "close 1000"}},
		{"binary is passed over", [][]byte{frame(fin|opBin, "{}"), text("a"), closing(1000)}, []string{"text a", "close 1000"}},
		{"binary in fragments is passed over", [][]byte{frame(opBin, "{"), frame(fin|opMore, "}"), text("a"), closing(1000)}, []string{"text a", "close 1000"}},
		{"text that is not UTF-8", [][]byte{text("\"\xff\"")}, []string{"close 1007"}},
		{"text that is not UTF-8, in a message that goes on", [][]byte{frame(opText, "a\xff")}, []string{"close 1007"}},
		{"the beginning of a letter that there is not, in a message that goes on", [][]byte{frame(opText, "a\xf4"), frame(opMore, "\x90")}, []string{"close 1007"}},
		{"half a letter at the end", [][]byte{frame(opText, "a\xe2"), frame(fin|opMore, "\x82")}, []string{"close 1007"}},
		{"a letter in as many pieces as it has", [][]byte{frame(opText, "\xf0"), frame(opMore, "\x9f"), frame(opMore, ""), frame(opMore, "\x98"), frame(fin|opMore, "\x80"), closing(1000)}, []string{"text 😀", "close 1000"}},
		{"a letter behind half of one", [][]byte{frame(opText, "\xc3"), frame(fin|opMore, "a")}, []string{"close 1007"}},
		{"half a surrogate", [][]byte{text("\xed\xa0\x80")}, []string{"close 1007"}},
		{"a message over the limit", [][]byte{text(strings.Repeat("x", 1001))}, []string{"close 1009"}},
		{"fragments over the limit", [][]byte{frame(opText, strings.Repeat("x", 600)), frame(fin|opMore, strings.Repeat("x", 600))}, []string{"close 1009"}},
		{"a binary message over the limit", [][]byte{frame(fin|opBin, strings.Repeat("x", 1001))}, []string{"close 1009"}},
		{"a length that nobody has", [][]byte{{fin | opText, 0x80 | 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}}, []string{"close 1009"}},
		{"the limit exactly", [][]byte{text(strings.Repeat("x", 1000)), closing(1000)}, []string{"text " + strings.Repeat("x", 1000), "close 1000"}},
		{"no mask", [][]byte{{fin | opText, 2, '{', '}'}}, []string{"close 1002"}},
		{"a reserved bit", [][]byte{frame(fin|0x40|opText, "{}")}, []string{"close 1002"}},
		{"a kind that there is not", [][]byte{frame(fin|3, "{}")}, []string{"close 1002"}},
		{"a control frame in fragments", [][]byte{frame(opPing, "x")}, []string{"close 1002"}},
		{"a control frame that is too long", [][]byte{frame(fin|opPing, strings.Repeat("x", 126))}, []string{"close 1002"}},
		{"more of nothing", [][]byte{frame(fin|opMore, "x")}, []string{"close 1002"}},
		{"a message inside another", [][]byte{frame(opText, "a"), text("b")}, []string{"close 1002"}},
		{"a close code that there is not", [][]byte{closing(1005)}, []string{"close 1002"}},
		{"a close code of an application", [][]byte{closing(4001)}, []string{"close 4001"}},
		{"a close without a code", [][]byte{frame(fin|opClose, "")}, []string{"close"}},
		{"a message behind the close", [][]byte{closing(1000), text("late")}, []string{"close 1000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, nil, ws.Config{MaxBytes: 1000})
			w := g.raw(t)
			w.send(tt.send...)
			if got := w.story(); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("it answered %q, want %q", got, tt.want)
			}
		})
	}
}

// TestConn_Floods: frames that carry nothing end a connection long before they
// cost anything.
func TestConn_Floods(t *testing.T) {
	for name, f := range map[string][]byte{
		"pings": frame(fin|opPing, "x"), "pongs": frame(fin|opPong, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGate(t, nil, ws.Config{}).raw(t)
			for range 200 {
				w.send(f)
			}
			story := w.story()
			if last := story[len(story)-1]; last != "close 1008" {
				t.Errorf("it ended with %q", last)
			}
		})
	}
	t.Run("fragments without content", func(t *testing.T) {
		t.Parallel()
		w := newGate(t, nil, ws.Config{}).raw(t)
		go func() { // ends when the other end closes
			_, _ = w.conn.Write(frame(opText, "a"))
			for range 1 << 20 {
				if _, err := w.conn.Write(frame(opMore, "")); err != nil {
					return
				}
			}
		}()
		if got := w.story(); len(got) == 0 || got[0] != "close 1008" {
			t.Errorf("it answered %q", got)
		}
		w.conn.Close()
	})
}

// accepted is a connection to a server of which the test has the end.
func accepted(t *testing.T, cfg ws.Config) (*wire, *ws.Conn) {
	t.Helper()
	conns := make(chan *ws.Conn, 1)
	g := newGateServing(t, cfg, func(_ context.Context, c *ws.Conn, _ ws.Peer) {
		conns <- c
		<-c.Gone()
	})
	w := g.raw(t)
	return w, <-conns
}

func TestConn_HowItEnded(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(w *wire)
		want string
		eof  bool
	}{
		{"closed with 1000", func(w *wire) { w.send(closing(1000)) }, "EOF", true},
		{"closed by a page that was left", func(w *wire) { w.send(closing(1001)) }, "code 1001", false},
		{"closed without a code", func(w *wire) { w.send(frame(fin|opClose, "")) }, "code 1005", false},
		{"closed with a reason", func(w *wire) {
			w.send(frame(fin|opClose, string(binary.BigEndian.AppendUint16(nil, 4000))+"bye\n"))
		}, `code 4000: "bye\n"`, false},
		{"the end of the stream", func(w *wire) { _ = w.conn.(*net.TCPConn).CloseWrite() }, "was lost", false},
		{"a reset", func(w *wire) {
			_ = w.conn.(*net.TCPConn).SetLinger(0)
			w.conn.Close()
		}, "was lost", false},
		{"the end in mid-frame", func(w *wire) {
			w.send([]byte{fin | opText, 0x85, 0, 0, 0, 0, 'h'})
			w.conn.Close()
		}, "was lost", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, c := accepted(t, ws.Config{})
			tt.end(w)
			_, err := c.Read()
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, io.EOF) != tt.eof {
				t.Errorf("Read: %v, want %q", err, tt.want)
			}
			if _, again := c.Read(); !errors.Is(again, err) && again.Error() != err.Error() {
				t.Errorf("another Read: %v", again)
			}
			if err := c.Write([]byte("{}")); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("Write: %v", err)
			}
			<-c.Gone()
		})
	}
}

// TestConn_Silence: a peer that does not answer pings is gone after two.
func TestConn_Silence(t *testing.T) {
	w, c := accepted(t, ws.Config{PingInterval: 30 * time.Millisecond})
	_, err := c.Read() // the peer reads nothing and so answers nothing
	if err == nil || !strings.Contains(err.Error(), "two pings") {
		t.Errorf("Read: %v", err)
	}
	if got := fmt.Sprint(w.story()); got != "[9  9  close 1008]" {
		t.Errorf("the peer saw %s", got)
	}
}

// TestConn_Pings: one that answers stays, however long it says nothing else.
func TestConn_Pings(t *testing.T) {
	w, c := accepted(t, ws.Config{PingInterval: 20 * time.Millisecond})
	read := make(chan error, 1)
	go func() { // ends with the connection
		_, err := c.Read()
		read <- err
	}()
	for range 10 {
		op, payload, err := w.next()
		if err != nil || op != opPing {
			t.Fatalf("%d %q %v", op, payload, err)
		}
		w.send(frame(fin|opPong, payload))
	}
	select {
	case err := <-read:
		t.Errorf("Read: %v", err)
	default:
	}
	_ = c.Close()
	<-read
}

// TestConn_SlowPeer: a peer that takes nothing is given up, its reader told at
// once; when it wakes up soon it finds a whole message and then why.
func TestConn_SlowPeer(t *testing.T) {
	w, c := accepted(t, ws.Config{WriteTimeout: 100 * time.Millisecond})
	read := make(chan error, 1)
	go func() { // ends with the connection
		_, err := c.Read()
		read <- err
	}()
	message := []byte(strings.Repeat("x", 16<<20)) // more than any socket holds
	wrote := make(chan error, 1)
	go func() { wrote <- c.Write(message) }()
	if err := <-read; err == nil || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("Read: %v", err)
	}
	op, payload, err := w.next()
	if err != nil || op != opText || len(payload) != len(message) {
		t.Fatalf("the peer read %d, %d bytes, %v", op, len(payload), err)
	}
	if got := fmt.Sprint(w.story()); got != "[close 1008]" {
		t.Errorf("and then %s", got)
	}
	<-wrote
	if err := c.Write([]byte("{}")); err == nil {
		t.Error("another message was taken")
	}
}

// TestConn_StuckPeer: one that never wakes up costs its connection and nothing
// else.
func TestConn_StuckPeer(t *testing.T) {
	_, c := accepted(t, ws.Config{WriteTimeout: 50 * time.Millisecond})
	if err := c.Write([]byte(strings.Repeat("x", 64<<20))); err == nil {
		t.Error("64 MiB went nowhere and were taken")
	}
	if _, err := c.Read(); err == nil {
		t.Error("Read found a message")
	}
	<-c.Gone()
}

// TestConn_PingWhileStuck: a reader does not wait for a writer that is stuck.
func TestConn_PingWhileStuck(t *testing.T) {
	w, c := accepted(t, ws.Config{WriteTimeout: time.Minute})
	wrote := make(chan error, 1)
	go func() { wrote <- c.Write([]byte(strings.Repeat("x", 64<<20))) }()
	if _, err := w.r.Peek(1); err != nil { // the message has begun
		t.Fatal(err)
	}
	w.send(frame(fin|opPing, "x"), frame(fin|opText, "cancel"))
	if m, err := c.Read(); string(m) != "cancel" || err != nil {
		t.Errorf("Read: %q %v", m, err)
	}
	_ = c.Close()
	<-c.Gone()
	<-wrote
}

// TestConn_First: a message that may not come first closes with 1002.
func TestConn_First(t *testing.T) {
	first := func(m []byte) (bool, error) {
		if string(m) == "skip" {
			return true, nil
		}
		if string(m) != "hello" {
			return false, errors.New("say hello first")
		}
		return false, nil
	}
	for _, tt := range []struct {
		name string
		send []string
		want string
	}{
		{"the right one", []string{"hello", "x"}, "[text hello text x close 1000]"},
		{"a wrong one", []string{"x", "hello"}, "[close 1002]"},
		{"one that does not count", []string{"skip", "hello", "x"}, "[text skip text hello text x close 1000]"},
		{"a wrong one behind one that does not count", []string{"skip", "x"}, "[text skip close 1002]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newGate(t, nil, ws.Config{First: first}).raw(t)
			for _, m := range tt.send {
				w.send(frame(fin|opText, m))
			}
			w.send(closing(1000))
			if got := fmt.Sprint(w.story()); got != tt.want {
				t.Errorf("it answered %s, want %s", got, tt.want)
			}
		})
	}
}

// TestConn_Leave: what Close tells the peer.
func TestConn_Leave(t *testing.T) {
	w, c := accepted(t, ws.Config{})
	c.Leave(ws.CloseRestart, strings.Repeat("ä", 100))
	if err := c.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if got := fmt.Sprint(w.story()); got != "[text last close 1012]" {
		t.Errorf("the peer saw %s", got)
	}
}
