package acceptance

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
	"github.com/berth-dev/berth/adapters/llm/scripted"
	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/bootstrap"
)

var (
	walkSeeds = flag.Int("seeds", 200, "how many random walks TestRandomWalk takes")
	walkSeed  = flag.Uint64("seed", 0, "the only walk TestRandomWalk takes; 0: walks 1 to -seeds")
)

// TestRandomWalk lets random clients loose on random models. Nothing is
// expected of any single answer: the monitors judge every frame, and at the
// end every session must load as it was seen live. A walk that fails prints
// itself as a script, together with the model's.
func TestRandomWalk(t *testing.T) {
	if *walkSeed != 0 {
		takeWalk(t, *walkSeed)
		return
	}
	for seed := range *walkSeeds {
		if takeWalk(t, uint64(seed)+1); t.Failed() {
			return // the first one is enough to read
		}
	}
}

// walk is one random walk.
type walk struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand // of the walk's own goroutine alone
	world world
	run   *inproc
	slow  bool // some clients stop reading for a while

	clients  []*walker // connected
	names    int
	prompts  int
	sessions []string          // ever told of
	lost     map[string]bool   // sessions that may have been deleted
	asked    map[string]string // prompt text, by turn

	mu     sync.Mutex // guards what follows, and what the readers add to what stands above
	frames []transcript.Frame
	seen   map[string]*story // what was shown live, by session
	keyed  map[string]string // sessions by their keys
	told   []string          // what is wrong with what the agent said
	cut    []string          // clients whose connection was cut
}

func takeWalk(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0x6265727468))
	s := &scenario{name: fmt.Sprintf("walk %d", seed), files: map[string][]byte{}}
	for _, name := range walkFiles {
		s.files[name] = []byte("one\ntwo\nthree\n")
	}
	s.model = randomModel(rng)
	if _, err := scripted.Parse(s.model); err != nil {
		t.Fatalf("seed %d: the walk made a bad script: %v", seed, err)
	}
	s.config = randomConfig(rng)
	w := &walk{
		t: t, seed: seed, rng: rng, world: s.prepare(t), slow: rng.IntN(5) == 0,
		lost: map[string]bool{}, asked: map[string]string{}, seen: map[string]*story{}, keyed: map[string]string{},
	}
	cfg, err := bootstrap.LoadConfig(bootstrap.LoadOptions{
		ConfigDir: w.world.config, DataDir: w.world.data, Home: w.world.config, Env: cleanEnv(w.world), Flags: map[string]string{"log.level": "info"},
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		w.run = &inproc{t: t, cfg: cfg, store: durable{memory.New(time.Now)}, log: &logBuffer{}, mon: newMonitor(!w.slow), conns: map[string]chan error{}}
		w.run.start()
		w.wander(20 + rng.IntN(60))
		w.goHome()
		w.lookBack()
		w.judge(s)
	})
	kept := newLeaks()
	for _, f := range w.frames {
		kept.frame(f)
	}
	checkLeaks(t, kept, w.world, w.run.log.String())
}

// randomConfig makes limits small enough to be met.
func randomConfig(rng *rand.Rand) string {
	return fmt.Sprintf("[acp]\nmax_sessions = %d\nsession_timeout_secs = %d\nbusy = %q\nqueue_limit = %d\n"+
		"[profiles.default]\nlevel = %q\n[agents.default]\nmodel = \"script/test\"\nmax_turn_requests = %d\n%s",
		2+rng.IntN(4), pick(rng, 1, 2, 10, 60, 3600, 3600), pick(rng, "auto", "queue", "reject"), 1+rng.IntN(3),
		pick(rng, "supervised", "supervised", "supervised", "full", "read_only"), 2+rng.IntN(6),
		pick(rng, "", "", "[providers.script.models.test]\ncontext_window = 5000\n", "[providers.script.models.test]\ncontext_window = 9000\n"))
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// wander takes the steps of the walk.
func (w *walk) wander(steps int) {
	for range steps {
		if len(w.clients) == 0 || len(w.clients) < 3 && w.rng.IntN(25) == 0 {
			w.arrive()
		}
		c := pick(w.rng, w.clients...)
		c.step()
		switch w.rng.IntN(8) {
		case 0, 1, 2: // at once
		case 3, 4:
			synctest.Wait()
		case 5:
			time.Sleep(time.Duration(w.rng.IntN(20)) * time.Millisecond)
		case 6:
			time.Sleep(time.Duration(w.rng.IntN(500)) * time.Millisecond)
		case 7:
			time.Sleep(time.Duration(w.rng.IntN(8)) * time.Second)
		}
	}
}

// goHome lets everything come to an end: every client ends its input, which is
// to be answered and to end the connection within three seconds.
func (w *walk) goHome() {
	time.Sleep(time.Duration(w.rng.IntN(3)) * time.Minute)
	for len(w.clients) > 0 {
		w.clients[0].leave()
	}
	if err := w.run.app.Stop(context.Background()); err != nil {
		w.tell("stop: %v", err)
	}
	// What a cancel left behind ends by itself; then nothing may be there.
	time.Sleep(time.Minute)
	synctest.Wait()
	if left := bubbleGoroutines(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "seed %d: goroutines are left:\n%s\n", w.seed, strings.Join(left, "\n\n"))
		w.tell("I9: %d goroutines are left", len(left))
	}
}

// bubbleGoroutines returns the stacks of the bubble's other goroutines.
func bubbleGoroutines() []string {
	mine := make([]byte, 256)
	mine = mine[:runtime.Stack(mine, false)]
	i := bytes.Index(mine, []byte("synctest bubble"))
	if i < 0 {
		return []string{"this is no bubble"}
	}
	bubble := string(mine[i : i+bytes.IndexAny(mine[i:], "],")])
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var others []string
	for i, g := range strings.Split(string(all), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		// The first one is this goroutine; those of the package synctest wait for it.
		if i > 0 && (strings.Contains(head, bubble+"]") || strings.Contains(head, bubble+",")) && !strings.Contains(g, "\ntesting/synctest.") {
			others = append(others, g)
		}
	}
	return others
}

// lookBack loads every session in a new App, as a new process would, and
// compares what is replayed with what was seen.
func (w *walk) lookBack() {
	w.run.start()
	c := w.connect("{\"protocolVersion\":1,\"clientCapabilities\":{}}")
	synctest.Wait()
	listed := c.listAll()
	for _, id := range w.sessions {
		if w.lost[id] {
			continue
		}
		if !slices.Contains(listed, id) {
			w.tell("session %s is not listed", id)
		}
		load := c.request("session/load", `{"sessionId":"`+id+`","cwd":"`+w.world.work+`","mcpServers":[]}`)
		time.Sleep(time.Second)
		if answer := c.answer(load); answer.Error != nil || answer.Result == nil {
			w.tell("session %s does not load: %s %s", id, answer.Error, answer.Result)
		}
		closing := c.request("session/close", `{"sessionId":"`+id+`"}`)
		time.Sleep(time.Second)
		if c.answer(closing).Result == nil {
			w.tell("session %s does not close", id)
		}
	}
	c.leave()
	if err := w.run.app.Stop(context.Background()); err != nil {
		w.tell("stop: %v", err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

// forget expects nothing any more of the turns of a session that may have been
// reset. The mutex is held.
func (w *walk) forget(key string) {
	if s := w.seen[w.keyed[key]]; s != nil {
		for _, ch := range s.turns {
			ch.gone = true
		}
	}
}

func (w *walk) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

// judge gathers what the monitors and the comparisons found.
func (w *walk) judge(s *scenario) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.cut {
		w.run.mon.reset(name) // its open requests have nobody to answer to
	}
	wrong := append(slices.Clone(w.told), w.run.mon.finish(false)...)
	if log := w.run.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "late update") || strings.Contains(log, "late progress") {
		wrong = append(wrong, "the log tells of an internal fault:\n"+log)
	}
	if len(wrong) == 0 {
		return
	}
	w.t.Errorf("seed %d:\n  %s\n\n-- model --\n%s\n-- config --\n%s\n-- script --\n%s\n-- frames --\n%s",
		w.seed, strings.Join(wrong, "\n  "), s.model, s.config, transcript.FromFrames(w.frames).String(), shownFrames(w.frames))
}

func shownFrames(frames []transcript.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%s %s%c %.400s\n", f.Time.Format("15:04:05.000000"), f.Client, f.Dir, f.Data)
	}
	return b.String()
}
