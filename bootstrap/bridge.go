package bootstrap

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/bridge"
	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/core/domain"
)

// BridgeOptions are what a bridge is told by flags, besides the settings.
type BridgeOptions struct {
	// URL, if set, is the gateway, in place of bridge.url and of the daemon of
	// the data directory.
	URL string
	// Token, if set, is what is shown to it.
	Token Secret
	// Insecure lets a token go to another machine without TLS.
	Insecure bool

	Agent           string
	Session         string
	Label           string
	Reset           bool
	RequireExisting bool
	NoPrefix        bool   // prompts to an OpenClaw Gateway have no line about the working directory
	Provenance      string // "", "meta" or "meta+receipt"

	// StartLimit, if set, is how long there may be no gateway at the start, in
	// place of 30 s.
	StartLimit time.Duration

	// Verbose, if set, gets a line about everything that happens.
	Verbose io.Writer
	// Outages, if set, gets a line when the gateway is lost, is back, or is given
	// up, which begins with one of the constants below.
	Outages io.Writer
	Env     []string
}

// The beginnings of the lines about outages.
const (
	OutageLost = "bridge: the connection to the gateway is lost"
	OutageBack = "bridge: the connection to the gateway is back"
	OutageOver = "bridge: the gateway is given up"
)

// outageLines writes them.
type outageLines struct{ out io.Writer }

// Lost says that the gateway is looked for.
func (o outageLines) Lost(why error, limit time.Duration) {
	reason := ""
	if why != nil {
		reason = " (" + why.Error() + ")"
	}
	o.say("%s%s; trying again for %v at most", OutageLost, reason, limit)
}

// Back says that it was found.
func (o outageLines) Back() { o.say("%s", OutageBack) }

// Over says that it is looked for no more.
func (o outageLines) Over(why error) { o.say("%s: %v", OutageOver, why) }

func (o outageLines) say(format string, args ...any) {
	line := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") // whatever an error holds
	fmt.Fprintln(o.out, line)
}

// RunBridge connects standard input and the given output with a gateway until
// the input ends or a signal comes. A second signal ends the process at once.
func RunBridge(cfg *Config, out io.Writer, o BridgeOptions) error {
	editor := jsonrpc.NewStdio(os.Stdin, out, int(cfg.Gateway.MaxMessageBytes))
	var b interface{ Run(context.Context) error }
	var err error
	if cfg.Bridge.Protocol == "openclaw" {
		b, err = newOpenClawBridge(cfg, editor, o)
	} else {
		b, err = acpBridge(cfg, editor, o)
	}
	if err != nil {
		return err
	}
	if err := forgetVariables(append(cfg.SecretVariables(), openClawVariables()...)); err != nil && o.Verbose != nil {
		fmt.Fprintf(o.Verbose, "bridge: other programs of this user can see the token in the environment: %v\n", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)
	if pipes := brokenPipes(); pipes != nil {
		ignored := make(chan os.Signal, 1)
		signal.Notify(ignored, pipes...)
		defer signal.Stop(ignored)
	}
	go func() { // ends with the process
		first := <-signals
		cancel(domain.ProcessEnding)
		awaitSecond(signals, first)
		os.Exit(1)
	}()
	return b.Run(ctx)
}

// acpBridge puts a bridge to a gateway's /acp together.
func acpBridge(cfg *Config, editor jsonrpc.Frames, o BridgeOptions) (*bridge.Bridge, error) {
	find := &gatewayFinder{cfg: cfg, o: o}
	if _, err := find.target(); err != nil && isFinal(err) {
		return nil, err
	}
	return newBridge(find, editor, o), nil
}

// newBridge puts a bridge together.
func newBridge(find *gatewayFinder, editor jsonrpc.Frames, o BridgeOptions) *bridge.Bridge {
	return bridge.New(editor, bridgeConfig(find, o))
}

// bridgeConfig is what a bridge does.
func bridgeConfig(find *gatewayFinder, o BridgeOptions) bridge.Config {
	host, _ := os.Hostname()
	c := bridge.Config{
		Dial: find.dial,
		Sessions: bridge.SessionFlags{
			Agent: o.Agent, Key: o.Session, Label: o.Label, Reset: o.Reset, RequireExisting: o.RequireExisting,
		},
		Provenance: o.Provenance, Host: host, StartLimit: o.StartLimit,
		Memory: bridgeMemory{dir: bridgeCache(), gateway: find.name()},
		Info:   bridge.Info{Name: "berth", Title: "Berth", Version: Version().Version},
	}
	if o.Outages != nil {
		c.Outages = outageLines{o.Outages}
	}
	if o.Verbose != nil {
		c.Log = func(format string, args ...any) { fmt.Fprintf(o.Verbose, "bridge: "+format+"\n", args...) }
	}
	return c
}

// dial opens a socket to the gateway, wherever it is now.
func (f *gatewayFinder) dial(ctx context.Context, connection, link string) (bridge.Dialled, error) {
	t, err := f.target()
	if err != nil {
		if isFinal(err) {
			return bridge.Dialled{}, &bridge.Refused{Err: err}
		}
		return bridge.Dialled{}, err
	}
	token, err := t.token.Reveal()
	if err != nil {
		return bridge.Dialled{}, &bridge.Refused{Err: fmt.Errorf("the gateway's token: %w", err)}
	}
	head := http.Header{tether.Header: {link}}
	if connection != "" {
		head.Set(ws.HeaderConnection, connection)
	}
	d := ws.DialConfig{
		URL: t.url, Token: token, Header: head, Fingerprint: t.fingerprint,
		Conn: ws.Config{MaxBytes: bridgeMessageBytes, PingInterval: f.cfg.Gateway.PingInterval},
	}
	if connection == "" {
		d.Agent = f.o.Agent
	}
	if !t.local {
		d.Proxy = http.ProxyFromEnvironment
	}
	c, err := ws.Dial(ctx, d)
	if err != nil {
		return bridge.Dialled{}, f.judge(t, token, err)
	}
	return bridge.Dialled{Frames: c, Connection: c.ID(), Link: c.Header().Get(tether.Header), Gone: c.Gone()}, nil
}

// bridgeMessageBytes is the longest message of a gateway's: what editors take
// on a line.
const bridgeMessageBytes = 64 << 20
