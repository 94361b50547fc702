package main

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.5: "0.50", 12.34: "12.3", 345.6: "346", 71234: "71,234", 1234567: "1,234,567", -0.2: "-0.20"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{5, 1, 3}); got != 3 {
		t.Errorf("median of three %v", got)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median of four %v", got)
	}
}

func TestWanted(t *testing.T) {
	chunks, every := wanted(`"chunks=7 every=3ms"`)
	if chunks != 7 || every != 3*time.Millisecond {
		t.Errorf("wanted %d every %s", chunks, every)
	}
	if chunks, _ := wanted(`[{"type":"text","text":"chunks=7"}]`); chunks != 7 {
		t.Errorf("parts of content: wanted %d", chunks)
	}
}

func TestProvider_StreamsWhatIsWanted(t *testing.T) {
	p, err := serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/chat/completions", strings.NewReader(`{"messages":[{"role":"user","content":"chunks=3"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	words, ended := 0, false
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if strings.Contains(in.Text(), word) {
			words++
		}
		ended = ended || in.Text() == "data: [DONE]"
	}
	if words != 3 || !ended {
		t.Errorf("%d words, ended %t; want 3, true", words, ended)
	}
}

// TestMeasures takes one small sample of every figure from the echo agent, so
// that the harness itself is known to work.
func TestMeasures(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "echo.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./echo")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p, err := serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	echo := &program{name: "echo", dir: run, command: func(dir string) []string { return []string{bin, "-url", p.url, "-dir", dir} }}
	b := &bench{provider: p, sessions: 3, turns: 5, chunks: 50, loads: map[string]string{}}
	for _, m := range b.measures(1) {
		t.Run(m.key, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			v, err := m.run(ctx, b, echo)
			if err != nil {
				t.Fatal(err)
			}
			// Differences may be nothing on so small a sample.
			if v <= 0 && m.key != "session" && m.key != "first" {
				t.Errorf("measured %v %s", v, m.unit)
			}
		})
	}
}
