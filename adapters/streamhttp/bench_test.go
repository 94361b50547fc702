package streamhttp_test

import (
	"net/http"
	"strings"
	"testing"
)

// BenchmarkUpdates streams updates of one session to a client that reads
// them, over loopback.
func BenchmarkUpdates(b *testing.B) {
	r := newRig(b)
	id, server := r.open()
	res, err := r.http.Do(r.request(http.MethodGet, "", "Accept", "text/event-stream", "Acp-Connection-Id", id, "Acp-Session-Id", "s1"))
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	frame := []byte(update("s1", strings.Repeat("word ", 40)))
	total := 0
	b.ReportAllocs()
	b.ResetTimer()
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 64<<10)
		for total < b.N*(len(frame)+len("id: 1\ndata: \n\n")) {
			n, err := res.Body.Read(buf)
			total += n
			if err != nil {
				return
			}
		}
	}()
	for range b.N {
		if err := server.frames.Write(frame); err != nil {
			b.Fatal(err)
		}
	}
	<-read
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkPost is a message of the client on its way to the server.
func BenchmarkPost(b *testing.B) {
	r := newRig(b)
	id, server := r.open()
	body := call("1", "session/prompt", `{"sessionId":"s1","prompt":[{"type":"text","text":"go on"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		r.post(id, "s1", body)
		if _, err := server.frames.Read(); err != nil {
			b.Fatal(err)
		}
		server.write(b, result("1", "{}"))
	}
}
