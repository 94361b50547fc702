package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMemoryLimit: what a command may allocate. The race detector needs more
// than any such limit for itself.
func TestMemoryLimit(t *testing.T) {
	withoutRace(t)
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if mode != None {
				w.needs()
			}
			t.Run("memory", func(t *testing.T) {
				// tail keeps what it may have to print.
				spec := w.spec(`for n in 10000000 1000000000; do head -c $n /dev/zero | tail -c $n 2>&1 | wc -c; done`)
				spec.Limits.MemoryBytes = 256 << 20
				if _, out := w.mustRun(spec); !strings.Contains(out, "10000000\n") || strings.Contains(out, "1000000000\n") {
					t.Errorf("said %.300q", out)
				}
			})
			t.Run("temporary files count as memory", func(t *testing.T) {
				if mode == Landlock || mode == None {
					t.Skip("temporary files are on disk")
				}
				spec := w.spec(`head -c 100000000 /dev/zero > /tmp/big; stat -c %s /tmp/big`)
				spec.Limits.MemoryBytes = 16 << 20
				if _, out := w.mustRun(spec); !strings.Contains(out, "16777216") {
					t.Errorf("said %q", out)
				}
			})
		})
	}
}

func TestLimits(t *testing.T) {
	withoutRace(t)
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if mode != None {
				w.needs()
			}
			t.Run("file size", func(t *testing.T) {
				spec := w.spec(`head -c 10000000 /dev/zero > big; stat -c %s big`)
				spec.Limits.FileBytes = 1 << 20
				if _, out := w.mustRun(spec); !strings.Contains(out, "1048576\n") {
					t.Errorf("said %q", out)
				}
			})
			t.Run("sparse file", func(t *testing.T) {
				spec := w.spec(`truncate -s 1T sparse; stat -c %s sparse`)
				spec.Limits.FileBytes = 1 << 20
				if _, out := w.mustRun(spec); strings.Contains(out, "1099511627776") {
					t.Errorf("said %q", out)
				}
			})
			t.Run("open files", func(t *testing.T) {
				spec := w.spec(`ulimit -n; ulimit -Hn`)
				spec.Limits.OpenFiles = 64
				if _, out := w.mustRun(spec); out != "64\n64\n" {
					t.Errorf("said %q", out)
				}
			})
			t.Run("processor time", func(t *testing.T) {
				spec := w.spec(`while :; do :; done`)
				spec.Limits.CPUSeconds = 1
				if res, _ := w.mustRun(spec); res.Signal != syscall.SIGKILL && res.Signal != syscall.SIGXCPU {
					t.Errorf("%+v", res)
				}
			})
			t.Run("no core files", func(t *testing.T) {
				if _, out := w.mustRun(w.spec(`ulimit -Hc`)); out != "0\n" && mode != None {
					t.Errorf("said %q", out)
				}
			})
			t.Run("processes", func(t *testing.T) {
				if slices.Contains(w.box.Posture(t.Context()).Lacks, lackCount) || mode == None && os.Getuid() == 0 {
					t.Skip("the posture says that the number cannot be held")
				}
				spec := w.spec(`exec "$ME" act forks 1000`)
				spec.Limits.Processes = 60
				_, out := w.mustRun(spec)
				// As root the kernel counts in another way, with room for 300 more.
				if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n < 20 || n > 60+301 {
					t.Errorf("%d processes ran: %.200q", n, out)
				}
			})
		})
	}
}

// TestForkBomb is a bomb under a limit: it is stopped at once, and others are
// not disturbed meanwhile.
func TestForkBomb(t *testing.T) {
	w := newWorld(t, Namespaces).needs()
	if slices.Contains(w.box.Posture(t.Context()).Lacks, lackCount) {
		t.Skip("the posture says that the number of processes cannot be held")
	}
	spec := w.spec(`echo > up; b() { b | b & }; b; exec sleep 300`)
	spec.Limits.Processes = 64
	p, err := w.box.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := os.Stat(filepath.Join(w.root, "up")); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the bomb did not start")
		}
		time.Sleep(time.Millisecond)
	}
	other := newWorld(t, Namespaces)
	if _, out := other.mustRun(other.spec(`echo fine`)); out != "fine\n" {
		t.Errorf("another command said %q", out)
	}
	began := time.Now()
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("ending the bomb took %v", took)
	}
}
