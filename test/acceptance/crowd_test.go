package acceptance

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/adapters/people"
	"github.com/berth-dev/berth/adapters/tokens"
	"github.com/berth-dev/berth/bootstrap"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

var (
	crowdSeeds = flag.Int("crowd.seeds", 60, "how many crowds TestCrowd lets loose")
	crowdFirst = flag.Uint64("crowd.first", 1, "the first of them")
	crowdSeed  = flag.Uint64("crowd.seed", 0, "the only crowd it lets loose; 0: -crowd.seeds of them")
)

// TestCrowd lets several random clients loose on the sessions of one daemon,
// over WebSockets that are cut, frozen and closed. Whatever they do:
//
//   - a request is answered once, where it was sent, unless that is gone;
//   - what a client is told of a session, replayed and live, is what the
//     journal tells, from the beginning, in order, nothing twice, nothing left
//     out; all of it, for the one who has the session in the end and for those
//     who observe;
//   - no tool runs twice, no permission is given twice, and no question stays
//     open that was answered elsewhere;
//   - a session has one owner at most;
//   - nothing is left when the daemon has ended.
//
// A crowd that fails prints its seed and its frames.
func TestCrowd(t *testing.T) {
	if *crowdSeed != 0 {
		takeCrowd(t, *crowdSeed)
		return
	}
	for seed := range *crowdSeeds {
		if takeCrowd(t, *crowdFirst+uint64(seed)); t.Failed() {
			return // the first one is enough to read
		}
	}
}

// crowd is one run: a daemon and its clients.
type crowd struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand // of the run's own goroutine alone
	world  world
	cfg    *bootstrap.Config
	net    *network
	daemon *bootstrap.Daemon
	store  ports.Store
	log    *logBuffer
	tools  *levers
	tokens map[string]string // by name

	guests  []*guest // connected or not yet known to be gone
	all     []*guest
	prompts int

	mu       sync.Mutex // guards what follows, and what readers add to guests
	frames   []transcript.Frame
	wrong    []string
	sessions []string
	deleted  map[string]bool
}

// crowdTokens are what clients show, by name.
var crowdTokens = []tokens.Token{
	{Name: "amy"}, {Name: "ben"}, {Name: "eve", Observe: true}, {Name: "ron", Level: domain.LevelReadOnly},
}

func takeCrowd(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0x63726f7764))
	s := &scenario{name: fmt.Sprintf("crowd %d", seed), model: crowdModel(rng), config: crowdConfig(rng)}
	gather(t, seed, rng, s, func(c *crowd) {
		c.mingle(40 + rng.IntN(120))
		c.settle()
		c.judge()
	})
}

// gather starts a daemon in a bubble, lets its clients do what they like, and
// reports what is wrong.
func gather(t *testing.T, seed uint64, rng *rand.Rand, s *scenario, meet func(*crowd)) {
	t.Helper()
	c := &crowd{
		t: t, seed: seed, rng: rng, world: s.prepare(t), log: &logBuffer{}, tools: &levers{ran: map[domain.CallID]int{}},
		tokens: map[string]string{}, deleted: map[string]bool{},
	}
	if err := os.MkdirAll(c.world.data, 0o700); err != nil {
		t.Fatal(err)
	}
	file := tokens.OpenFile(filepath.Join(c.world.data, "tokens.json"), time.Now)
	for _, token := range crowdTokens {
		secret, err := file.Create(token)
		if err != nil {
			t.Fatal(err)
		}
		c.tokens[token.Name] = secret
	}
	var err error
	c.cfg, err = bootstrap.LoadConfig(bootstrap.LoadOptions{
		ConfigDir: c.world.config, DataDir: c.world.data, Home: c.world.home, Env: cleanEnv(c.world), Flags: map[string]string{"log.level": "info"},
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	synctest.Test(t, func(t *testing.T) {
		c.t = t
		c.store = durable{memory.New(time.Now)}
		if seed%2 == 1 {
			c.store = newLaggard(memory.New(time.Now), seed)
		}
		c.start()
		meet(c)
		c.stop()
		c.report(s)
	})
}

// crowdConfig makes limits small enough to be met.
func crowdConfig(rng *rand.Rand) string {
	return fmt.Sprintf("[acp]\nmax_sessions = %d\nsession_timeout_secs = %d\nbusy = %q\nqueue_limit = %d\n"+
		"[gateway]\ndetach_grace_secs = %d\nmax_sessions = %d\nmax_connections_per_token = %d\nping_interval_secs = %d\n"+
		"[profiles.default]\nlevel = %q\n[agents.default]\nmodel = \"script/test\"\nmax_turn_requests = %d\n",
		2+rng.IntN(4), pick(rng, 2, 10, 60, 3600, 3600), pick(rng, "auto", "auto", "queue", "reject"), 1+rng.IntN(4),
		pick(rng, 0, 2, 30, 900, 900, 900), pick(rng, 3, 6, 100), pick(rng, 3, 6, 20), pick(rng, 5, 30),
		pick(rng, "supervised", "supervised", "full"), 2+rng.IntN(6))
}

func (c *crowd) start() {
	c.net = newNetwork()
	d, err := bootstrap.StartDaemon(context.Background(), c.cfg, bootstrap.WithListeners(c.net), bootstrap.WithLog(c.log),
		bootstrap.WithStore(c.store), bootstrap.WithSandbox(held{}), bootstrap.WithTools(c.tools, people.NewSource(people.Config{Wait: time.Hour})))
	if err != nil {
		c.t.Fatalf("seed %d: %v", c.seed, err)
	}
	c.daemon = d
}

// mingle takes the steps of a run.
func (c *crowd) mingle(steps int) {
	for range steps {
		if len(c.guests) < 2 || len(c.guests) < 5 && c.rng.IntN(12) == 0 {
			c.arrive()
			continue
		}
		pick(c.rng, c.guests...).step()
		switch c.rng.IntN(8) {
		case 0, 1, 2: // at once
		case 3, 4:
			synctest.Wait()
		case 5:
			time.Sleep(time.Duration(c.rng.IntN(20)) * time.Millisecond)
		case 6:
			time.Sleep(time.Duration(c.rng.IntN(500)) * time.Millisecond)
		case 7:
			time.Sleep(time.Duration(c.rng.IntN(8)) * time.Second)
		}
	}
}

// stop ends the daemon, after which nothing may be left.
func (c *crowd) stop() {
	if err := c.daemon.Stop(context.Background()); err != nil {
		c.tell("stop: %v", err)
	}
	for _, g := range c.all {
		g.leave()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	if left := bubbleGoroutines(); len(left) > 0 {
		c.tell("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	}
}

func (c *crowd) tell(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// report prints what is wrong.
func (c *crowd) report(s *scenario) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong := c.wrong
	if log := c.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "late update") || strings.Contains(log, "late progress") {
		wrong = append(wrong, "the log tells of an internal fault:\n"+log)
	}
	if len(wrong) > 0 {
		c.t.Errorf("seed %d:\n  %s\n\n-- model --\n%s\n-- config --\n%s\n-- frames --\n%s",
			c.seed, strings.Join(wrong, "\n  "), s.model, s.config, shownFrames(c.frames))
	}
}
