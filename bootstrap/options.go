package bootstrap

import (
	"io"
	"net"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/berth-dev/berth/adapters/metrics"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Option replaces a part of an App.
type Option func(*options)

// options is what an App is made with. A nil port means the configured
// adapter.
type options struct {
	observer ports.Observer
	agents   ports.Agents
	models   ports.Models
	store    ports.Store
	roots    ports.Roots
	blobs    ports.Blobs
	sandbox  ports.Sandbox
	notes    ports.Instructions
	tools    []ports.ToolSource
	metrics  *metrics.Metrics // nil: nothing is counted
	reread   func() (*Config, error)

	clock  ports.Clock
	ids    ports.IDs
	helper Helper
	login  []string        // arguments for a client to start this program with
	model  domain.ModelRef // --model
	logTo  io.Writer
	daemon bool           // serves a gateway
	listen []net.Listener // what a daemon serves in place of gateway.listen; nil: that
}

func defaults() options {
	return options{
		clock: time.Now,
		ids:   func() string { return uuid.NewString() },
		logTo: os.Stderr,
	}
}

// WithObserver replaces the log.
func WithObserver(v ports.Observer) Option { return func(o *options) { o.observer = v } }

// WithAgents replaces the configured agents.
func WithAgents(v ports.Agents) Option { return func(o *options) { o.agents = v } }

// WithModels replaces the configured providers.
func WithModels(v ports.Models) Option { return func(o *options) { o.models = v } }

// WithStore replaces the session store. The caller closes it.
func WithStore(v ports.Store) Option { return func(o *options) { o.store = v } }

// WithRoots replaces how directories are resolved.
func WithRoots(v ports.Roots) Option { return func(o *options) { o.roots = v } }

// WithBlobs replaces where blobs of prompts are kept.
func WithBlobs(v ports.Blobs) Option { return func(o *options) { o.blobs = v } }

// WithSandbox replaces what reports how commands are confined. What confines
// them belongs to the tools that run them.
func WithSandbox(v ports.Sandbox) Option { return func(o *options) { o.sandbox = v } }

// WithInstructions replaces where instruction files and skills are read from.
func WithInstructions(v ports.Instructions) Option { return func(o *options) { o.notes = v } }

// WithTools replaces the tools of sessions, save those of the engine itself.
func WithTools(v ...ports.ToolSource) Option {
	return func(o *options) { o.tools = append([]ports.ToolSource{}, v...) }
}

// WithHelper names the program that builds sandboxes and holds commands: what
// RunHelper returned, or HelperAt. Without it commands are not confined, and
// each is asked about.
func WithHelper(h Helper) Option { return func(o *options) { o.helper = h } }

// WithLogin lets clients offer to start this program in a terminal, with these
// arguments, to store a key.
func WithLogin(args ...string) Option { return func(o *options) { o.login = args } }

// WithReload says how a daemon reads its configuration again when it is asked
// to.
func WithReload(read func() (*Config, error)) Option { return func(o *options) { o.reread = read } }

// WithListeners has a daemon serve these in place of gateway.listen, by the
// same rules: without TLS and tokens none that others can reach. The daemon
// closes them.
func WithListeners(v ...net.Listener) Option { return func(o *options) { o.listen = v } }

// WithClock replaces the clock that stamps records.
func WithClock(v ports.Clock) Option { return func(o *options) { o.clock = v } }

// WithIDs replaces how ids are made.
func WithIDs(v ports.IDs) Option { return func(o *options) { o.ids = v } }

// WithModel makes every agent use one model.
func WithModel(v domain.ModelRef) Option { return func(o *options) { o.model = v } }

// WithLog sends the log elsewhere than to standard error.
func WithLog(v io.Writer) Option { return func(o *options) { o.logTo = v } }
