// Command bench measures Berth beside the smallest honest agent of the
// standard library (echo), on this machine, against a model endpoint in this
// process:
//
//	go run ./test/bench
//
// and, with -daemon, `berth daemon` under load, its table with the aim beside
// each figure (daemon.go):
//
//	go run ./test/bench -daemon
//
// Both programs take turns, round by round, so that whatever else the machine
// does hits both; figures are medians. It prints a Markdown table, the one of
// docs/performance.md. Nothing is sent to the network.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

type options struct {
	rounds   int
	sessions int
	turns    int
	chunks   int
	only     string
	berth    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "test/bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 20, "samples of each figure; slow figures take a quarter")
	flags.IntVar(&o.sessions, "sessions", 1000, "idle sessions of the memory figure")
	flags.IntVar(&o.turns, "turns", 1000, "turns of the session that is loaded")
	flags.IntVar(&o.chunks, "chunks", 5000, "chunks of the streamed reply")
	flags.StringVar(&o.only, "only", "", "comma-separated figures: start, fresh, memory, session, stream, first, cancel, load; with -daemon: idle, turns, stream, mixed")
	flags.StringVar(&o.berth, "berth", "", "measure this binary instead of building one")
	daemon := flags.Bool("daemon", false, "measure `berth daemon` under load instead; the flags below are for that")
	var d daemonOptions
	flags.IntVar(&d.idle, "idle", 1000, "idle connections")
	flags.DurationVar(&d.settle, "settle", 275*time.Second, "rest before memory is read: streams keep what they sent for 2 minutes, and a collection comes 2 minutes later at most")
	flags.IntVar(&d.calm, "calm", 90, "seconds that what is left behind may take to end; a resting connection lasts 60")
	flags.IntVar(&d.turns, "latency-turns", 2000, "turns of the latency figures, for each transport")
	flags.DurationVar(&d.length, "length", 10*time.Minute, "length of the mixed load, a fifth of it warming up")
	flags.IntVar(&d.workers, "workers", 24, "clients of the mixed load that do something at any time")
	flags.IntVar(&d.streamed, "streamed", 50000, "chunks of each stream of the throughput figures")
	flags.BoolVar(&d.keep, "keep", false, "keep logs and data")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *daemon {
		d.only, d.berth = o.only, o.berth
		return runDaemon(ctx, d, stdout, stderr)
	}
	dir, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := serve(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	programs, err := build(ctx, dir, o.berth, p.url, o.sessions)
	if err != nil {
		return err
	}
	b := &bench{provider: p, sessions: o.sessions, turns: o.turns, chunks: o.chunks, loads: map[string]string{}}
	chosen, err := choose(b.measures(o.rounds), o.only)
	if err != nil {
		return err
	}
	rows, err := b.sample(ctx, stderr, programs, chosen)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s/%s, %d CPUs, %s, %s, medians of %d rounds (slow figures %d)\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), time.Now().Format(time.DateOnly), o.rounds, max(o.rounds/4, 3))
	table(stdout, rows)
	return nil
}

// compile builds a command of this module.
func compile(ctx context.Context, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, "github.com/berth-dev/berth/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// build compiles both programs and gives each a directory of its own.
func build(ctx context.Context, dir, berth, url string, sessions int) ([]*program, error) {
	bin := func(name string) string {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		return filepath.Join(dir, name)
	}
	err := compile(ctx, bin("echo"), "test/bench/echo")
	if berth == "" {
		berth = bin("berth")
		err = errors.Join(err, compile(ctx, berth, "cmd/berth"))
	}
	config := fmt.Sprintf(`version = 1

[acp]
max_sessions = %d

[providers.bench]
type = "openai-compatible"
base_url = %q
api_key = "unused"

[agents.main]
model = "bench/m"
`, sessions+100, url)
	settings := filepath.Join(dir, "config")
	err = errors.Join(err, os.Mkdir(settings, 0o700), os.WriteFile(filepath.Join(settings, "config.toml"), []byte(config), 0o600))
	programs := []*program{
		{name: "berth", dir: filepath.Join(dir, "run-berth"), command: func(dir string) []string {
			return []string{berth, "acp", "--config-dir", settings, "--data-dir", filepath.Join(dir, "data")}
		}},
		{name: "echo", dir: filepath.Join(dir, "run-echo"), command: func(dir string) []string {
			return []string{bin("echo"), "-url", url, "-dir", dir}
		}},
	}
	for _, p := range programs {
		err = errors.Join(err, os.Mkdir(p.dir, 0o700))
	}
	return programs, err
}

func choose(all []measure, only string) ([]measure, error) {
	if only == "" {
		return all, nil
	}
	var chosen []measure
	for key := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(m measure) bool { return m.key == strings.TrimSpace(key) })
		if i < 0 {
			return nil, fmt.Errorf("no figure %q", key)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// row is one figure with the samples of each program.
type row struct {
	measure
	samples map[string][]float64
}

// sample takes all samples, the programs in turn, the first one changing from
// round to round. One round more comes first and is not counted.
func (b *bench) sample(ctx context.Context, log io.Writer, programs []*program, chosen []measure) ([]row, error) {
	var rows []row
	for _, m := range chosen {
		fmt.Fprintf(log, "%s ", m.what)
		r := row{m, map[string][]float64{}}
		for round := range m.rounds + 1 {
			for i := range programs {
				p := programs[(i+round)%len(programs)]
				v, err := m.run(ctx, b, p)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", m.what, p.name, err)
				}
				if round > 0 {
					r.samples[p.name] = append(r.samples[p.name], v)
				}
			}
			fmt.Fprint(log, ".")
		}
		fmt.Fprintln(log)
		rows = append(rows, r)
	}
	return rows, nil
}

// table prints the figures as Markdown: medians, with the fastest and slowest
// sample, the ratio, and what is promised.
func table(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| figure | berth | echo | ratio | aim |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, r := range rows {
		ours, theirs := r.samples["berth"], r.samples["echo"]
		ratio := "–"
		if m := median(theirs); m > 0 && median(ours) > 0 {
			ratio = fmt.Sprintf("%.2f ×", median(ours)/m)
		}
		fmt.Fprintf(w, "| %s, %s | %s | %s | %s | %s |\n", r.what, r.unit, spread(ours), spread(theirs), ratio, r.aim)
	}
}

func spread(v []float64) string {
	return fmt.Sprintf("**%s** (%s–%s)", number(median(v)), number(slices.Min(v)), number(slices.Max(v)))
}

// number prints three digits that matter, with commas in large ones.
func number(v float64) string {
	switch {
	case v >= 1000 || v <= -1000:
		s := fmt.Sprintf("%.0f", v)
		for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
