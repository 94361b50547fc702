package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// daemonOptions are the flags of the daemon's figures.
type daemonOptions struct {
	only     string
	berth    string
	idle     int           // connections of the memory figure
	settle   time.Duration // before memory is read
	calm     int           // seconds until all that ends by itself has ended
	turns    int           // of the latency figure, for each transport
	length   time.Duration // of the mixed load
	workers  int           // of the mixed load
	streamed int           // chunks of each stream of the throughput figure
	keep     bool
}

// figure is one line of the table.
type figure struct {
	what, value, aim string
	met              string // "yes", "no", or "" without an aim
}

// report are the figures of a run so far.
type report struct {
	log     io.Writer
	figures []figure
	failed  bool
}

// add takes down a figure without an aim.
func (r *report) add(what, format string, args ...any) {
	r.put(figure{what: what, value: fmt.Sprintf(format, args...)})
}

// hold takes down a figure with one.
func (r *report) hold(what, aim string, met bool, format string, args ...any) {
	f := figure{what, fmt.Sprintf(format, args...), aim, "yes"}
	if !met {
		f.met, r.failed = "**no**", true
	}
	r.put(f)
}

func (r *report) put(f figure) {
	r.figures = append(r.figures, f)
	fmt.Fprintf(r.log, "  %s: %s (aim: %s) %s\n", f.what, f.value, f.aim, f.met)
}

func (r *report) print(w io.Writer) {
	fmt.Fprintln(w, "| figure | measured | aim | met |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, f := range r.figures {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", f.what, f.value, cmpOr(f.aim, "–"), cmpOr(f.met, "–"))
	}
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// stage is one group of figures.
type stage struct {
	key string
	run func(context.Context, *daemonBench, *report) error
}

// daemonBench is what the stages share.
type daemonBench struct {
	daemonOptions
	dir      string
	endpoint *endpoint
	log      io.Writer
}

func daemonStages() []stage {
	return []stage{{"idle", idleStage}, {"turns", turnsStage}, {"stream", streamStage}, {"mixed", mixedStage}}
}

// errAims ends a run whose figures are all there and not all met.
var errAims = errors.New("an aim was not met")

// runDaemon measures `berth daemon` and prints the table.
func runDaemon(ctx context.Context, o daemonOptions, stdout, stderr io.Writer) (err error) {
	if _, err := usageOf(os.Getpid()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "berth-bench-")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(stderr, "everything is kept in", dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if o.berth == "" {
		o.berth = filepath.Join(dir, "berth")
		if err := compile(ctx, o.berth, "cmd/berth"); err != nil {
			return err
		}
	}
	e, err := newEndpoint(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	b, r := &daemonBench{o, dir, e, stderr}, &report{log: stderr}
	var heads []string
	for _, s := range daemonStages() {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), s.key) {
			continue
		}
		before := machineLoad()
		fmt.Fprintf(stderr, "%s (load %s)\n", s.key, before)
		if err := s.run(ctx, b, r); err != nil {
			return fmt.Errorf("%s: %w", s.key, err)
		}
		heads = append(heads, fmt.Sprintf("%s %s → %s", s.key, before, machineLoad()))
	}
	fmt.Fprintf(stdout, "%s/%s, %d CPUs, %s, %s; clients and model endpoint run on the same machine.\nLoad averages (1, 5, 15 min) before and after: %s\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), time.Now().Format(time.DateOnly), strings.Join(heads, "; "))
	r.print(stdout)
	if r.failed {
		return errAims
	}
	return nil
}

// host starts a daemon for a stage.
func (b *daemonBench) host(ctx context.Context, name string, l limits) (*host, error) {
	l.endpoint = b.endpoint.url
	return startHost(ctx, b.berth, filepath.Join(b.dir, name), l)
}

// percentile returns the value below which the share p of the sorted values
// lies: the smallest that is not exceeded by more.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// spread3 writes median, 99th percentile and maximum of durations.
func spread3(values []time.Duration) (text string, p99 float64) {
	v := make([]float64, len(values))
	for i, d := range values {
		v[i] = ms(d)
	}
	slices.Sort(v)
	p99 = percentile(v, 0.99)
	return fmt.Sprintf("p50 %s, **p99 %s**, max %s ms (%d)", number(percentile(v, 0.5)), number(p99), number(percentile(v, 1)), len(v)), p99
}

// slope fits a line to points and returns its rise for each unit of x.
func slope(x, y []float64) float64 {
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	var up, down float64
	for i := range x {
		up, down = up+(x[i]-mx)*(y[i]-my), down+(x[i]-mx)*(x[i]-mx)
	}
	if down == 0 {
		return 0
	}
	return up / down
}
