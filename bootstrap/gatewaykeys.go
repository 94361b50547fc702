package bootstrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/berth-dev/berth/adapters/tokens"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// gatewayTokenVariable names a token that counts besides the stored ones.
const gatewayTokenVariable = "BERTH_GATEWAY_TOKEN"

// How often the file of tokens is looked at, and how often it is noted when
// they were used.
const (
	tokensPoll = 2 * time.Second
	usedPoll   = 5 * time.Minute
)

// gatewayKeys is the Guard's view of the tokens.
type gatewayKeys struct {
	set      *tokens.Set
	observer ports.Observer
	bridge   string         // the token for programs of the same user
	exposed  bool           // others than this machine can reach the gateway
	config   func() *Config // as of now
	revoke   func(good func(ws.Principal) bool)
	disown   func(name string) // ends what lost connections of that name left

	mu     sync.Mutex
	of     *Config  // whose workspaces these are
	spaces []string // of the agents

	refreshing sync.Mutex
	good       map[string]string // names of the tokens that counted last, by serial
}

var _ ws.Keys = (*gatewayKeys)(nil)

// newGatewayKeys reads the tokens, and refuses to start with a weak one.
func newGatewayKeys(lc fx.Lifecycle, cfg *Config, o *options, app *App) (*gatewayKeys, error) {
	k := &gatewayKeys{observer: app.p.Observer, bridge: tokens.New(), config: app.now.config, disown: app.disown}
	extra := []tokens.Token{{Name: "bridge", Hash: tokens.Hash(k.bridge), MCPCommands: true, Local: true}}
	if given, ok := os.LookupEnv(gatewayTokenVariable); ok {
		if why := tokens.Weak(given); why != "" {
			return nil, fmt.Errorf("%s %s; unset it, or make one with: berth token create", gatewayTokenVariable, why)
		}
		extra = append(extra, tokens.Token{Name: "environment", Hash: tokens.Hash(given)})
	}
	set, err := tokens.NewSet(tokenFile(cfg, o.clock), extra...)
	if err != nil {
		return nil, domain.WrapError(domain.InvalidArgument, err, err.Error())
	}
	k.set, k.good = set, serials(set)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	lc.Append(fx.StartStopHook(
		func() {
			go func() { // ends with cancel; the stop hook joins it
				defer close(done)
				k.follow(ctx)
			}()
		},
		func() error {
			cancel()
			<-done
			return set.Save()
		},
	))
	return k, nil
}

// tokenFile is where the tokens of a data directory are.
func tokenFile(cfg *Config, clock ports.Clock) *tokens.File {
	return tokens.OpenFile(filepath.Join(cfg.DataDir, tokensFile), clock)
}

// Lookup finds whose token it is. One that is not known may have been made this
// moment, so the file is looked at before it is called wrong.
func (k *gatewayKeys) Lookup(token string, local bool) (ws.Principal, bool) {
	t, ok := k.set.Lookup(token, local)
	if !ok && token != "" && k.refresh() == nil { // else follow tells what is wrong
		t, ok = k.set.Lookup(token, local)
	}
	if !ok {
		return ws.Principal{}, false
	}
	p := ws.Principal{
		Name: t.Name, Serial: serial(t), Agents: t.Agents, Level: t.Level, Roots: t.Roots, Observe: t.Observe, MCPCommands: t.MCPCommands,
	}
	if k.exposed && !t.Local && p.Roots == nil {
		p.Roots = k.workspaces() // who can be reached by others lets nobody choose any directory
	}
	return p, true
}

// workspaces are those of the agents there are now. A connection keeps those
// that it began with.
func (k *gatewayKeys) workspaces() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if cfg := k.config(); cfg != k.of {
		k.of, k.spaces = cfg, nil
		for _, alias := range sortedAgents(cfg) {
			k.spaces = append(k.spaces, canonical(cfg.AgentWorkspace(alias)))
		}
	}
	return k.spaces
}

// serial tells a token from every other one, and from itself with other
// rights.
func serial(t tokens.Token) string {
	t.LastUsed = time.Time{}
	data, err := json.Marshal(t)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// follow keeps up with the file until ctx ends.
func (k *gatewayKeys) follow(ctx context.Context) {
	poll, used := time.NewTicker(tokensPoll), time.NewTicker(usedPoll)
	defer poll.Stop()
	defer used.Stop()
	told := ""
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			err = k.refresh()
		case <-used.C:
			err = k.set.Save()
		}
		if err != nil && err.Error() != told { // once, and not with every look
			told = err.Error()
			k.observer.Observe(ctx, domain.Trouble{Where: "gateway: tokens", Err: err})
		}
	}
}

// refresh reads the file if it changed, and ends the connections of tokens
// that do not count any more, and the turns that such left.
func (k *gatewayKeys) refresh() error {
	k.refreshing.Lock()
	defer k.refreshing.Unlock()
	changed, err := k.set.Refresh()
	if err != nil || !changed {
		return err
	}
	before, good := k.good, serials(k.set)
	k.good = good
	maps.DeleteFunc(before, func(serial, _ string) bool { return good[serial] != "" })
	if len(before) > 0 { // who is about to be let in by a token that is new need not be judged again
		k.revoke(func(p ws.Principal) bool { return good[p.Serial] != "" })
	}
	for _, name := range before {
		k.disown(name)
	}
	return nil
}

// serials are those of the tokens that count, with the tokens' names.
func serials(set *tokens.Set) map[string]string {
	good := map[string]string{}
	for _, t := range set.List() {
		good[serial(t)] = t.Name
	}
	return good
}

// disown ends what lost clients of that name left: it goes on for them alone.
func (a *App) disown(name string) {
	a.p.Sessions.Disown(name, ws.ErrRevoked)
}

// canonical resolves links in the part of a path that exists.
func canonical(path string) string {
	rest := ""
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// sortedAgents are the aliases of the agents.
func sortedAgents(cfg *Config) []string {
	var list []string
	for alias := range cfg.Agents {
		list = append(list, alias)
	}
	if len(list) == 0 {
		list = append(list, "default")
	}
	slices.Sort(list)
	return list
}
