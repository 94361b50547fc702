package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for p, want := range map[float64]float64{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
}

func TestSlope(t *testing.T) {
	if got := slope([]float64{0, 1, 2, 3}, []float64{10, 12, 14, 16}); got != 2 {
		t.Errorf("slope %v, want 2", got)
	}
	if got := slope([]float64{0, 1, 2, 3}, []float64{5, 7, 7, 5}); got != 0 {
		t.Errorf("slope of what comes back %v, want 0", got)
	}
}

func TestWish(t *testing.T) {
	w := wish{key: "k.1", delay: 20 * time.Millisecond, chunks: 30, every: time.Millisecond, tools: []string{"shell", "read_file"}}
	got := parseWish("[The previous turn was cancelled.]\n\n" + w.String())
	if got.String() != w.String() {
		t.Errorf("read %s, want %s", got, w)
	}
	for _, content := range []string{`"key=k.1 chunks=3"`, `[{"type":"text","text":"key=k.1"},{"type":"text","text":"chunks=3"}]`} {
		if got := parseWish(plain([]byte(content))); got.key != "k.1" || got.chunks != 3 {
			t.Errorf("%s: read %s", content, got)
		}
	}
}

func TestPage_Sum(t *testing.T) {
	p := page{`a{x="1",y="2"}`: 3, `a{x="1",y="3"}`: 4, `ab{x="1"}`: 100, `a`: 1}
	if got := p.sum("a", `x="1"`); got != 7 {
		t.Errorf("sum of some series %v, want 7", got)
	}
	if got := p.sum("a"); got != 8 {
		t.Errorf("sum of all series %v, want 8", got)
	}
}

// TestDaemon runs every stage in small, so that the harness itself is known to
// work: what it measures so briefly says nothing, but what went wrong counts.
func TestDaemon(t *testing.T) {
	if _, err := usageOf(os.Getpid()); err != nil {
		t.Skip(err)
	}
	var out, log bytes.Buffer
	err := runDaemon(t.Context(), daemonOptions{
		idle: 10, settle: 10 * time.Millisecond, calm: 2, turns: 20, length: 2 * time.Second, workers: 6, streamed: 200,
	}, &out, &log)
	if err != nil && !errors.Is(err, errAims) {
		t.Fatalf("%v\n%s", err, &log)
	}
	for _, must := range []string{"faults | 0 |", "protocol errors and other faults | 0 |", "unanswered requests | 0 |"} {
		if !strings.Contains(out.String(), must) {
			t.Errorf("the table does not say %q:\n%s", must, &out)
		}
	}
}
