package acp1

import (
	"context"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// fakeKeys are the keys of the agents' models: what Check says of each, and
// which come from where Forget removes them.
type fakeKeys struct {
	check     map[domain.ModelRef]error
	stored    map[domain.ModelRef]bool
	forgotten []domain.ModelRef
	err       error
}

func (k *fakeKeys) Check(_ context.Context, ref domain.ModelRef) error { return k.check[ref] }
func (k *fakeKeys) Forgets(ref domain.ModelRef) bool                   { return k.stored[ref] }
func (k *fakeKeys) Forget(_ context.Context, ref domain.ModelRef) error {
	k.forgotten = append(k.forgotten, ref)
	return k.err
}

func TestAuthMethods(t *testing.T) {
	const (
		local = `{"id":"local","name":"Use the key that is set","description":"Checks that the agent's model has a key, and that its provider accepts it"}`
		head  = `"id":"login","name":"Enter a key at the terminal","description":"Asks for a provider's key, checks it and stores it"`
		args  = `,"args":["login","--data-dir","/d"]`
		meta  = `,"_meta":{"terminal-auth":{"label":"berth login","command":"/bin/berth","args":["login","--data-dir","/d"]}}`
	)
	login := Login{Command: "/bin/berth", Args: []string{"login", "--data-dir", "/d"}}
	for _, tt := range []struct {
		name, can, want string
		login           Login
		accepts         bool // authenticate takes "login"
	}{
		{"a client without terminals", `{}`, local, login, false},
		{"a client that runs terminals", `{"auth":{"terminal":true}}`, local + `,{"type":"terminal",` + head + args + `}`, login, false},
		{"a client that says it does not", `{"auth":{"terminal":false},"_meta":{"terminal-auth":false}}`, local, login, false},
		{"a client that starts commands", `{"_meta":{"terminal-auth":true}}`, local + `,{` + head + meta + `}`, login, true},
		{"a client that does both", `{"auth":{"terminal":true},"_meta":{"terminal-auth":true}}`, local + `,{"type":"terminal",` + head + args + meta + `}`, login, false},
		{"a program without a login", `{"auth":{"terminal":true},"_meta":{"terminal-auth":true}}`, local, Login{Command: "/bin/berth"}, false},
		{"a program whose path is unknown", `{"_meta":{"terminal-auth":true}}`, local, Login{Args: login.Args}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.set = func(p *Params) { p.Login = tt.login }
			run(t, w, func(r *rig) {
				want(t, "authMethods", r.initialize(tt.can)["authMethods"], "["+tt.want+"]")
				if tt.accepts {
					r.ok("authenticate", `{"methodId":"login"}`)
				} else {
					r.fails(-32602, "authenticate", `{"methodId":"login"}`)
				}
			})
		})
	}
}

func TestAuthenticate_ChecksTheKey(t *testing.T) {
	ref := domain.ModelRef{Provider: "p", Model: "m"}
	other := domain.Agent{Alias: "other", Enabled: true, Model: domain.ModelRef{Provider: "q", Model: "n"}}
	refused := domain.Errorf(domain.AuthRequired, "provider \"p\" refused its API key; run: berth login p").With("key", "refused")
	for _, tt := range []struct {
		name  string
		keys  *fakeKeys
		set   func(w *world)
		fails string // the error's data; "" for success
	}{
		{"the provider takes it", &fakeKeys{}, nil, ""},
		{"the provider refuses it", &fakeKeys{check: map[domain.ModelRef]error{ref: refused}}, nil, `{"reason":"AUTH_REQUIRED","key":"refused","authMethods":["local"]}`},
		{"another agent's is good", &fakeKeys{check: map[domain.ModelRef]error{ref: refused}}, func(w *world) { w.agents = append(w.agents, other) }, ""},
		{"the default agent's decides", &fakeKeys{check: map[domain.ModelRef]error{ref: refused}}, func(w *world) { w.agents = append(w.agents, other); w.fallback = "default" }, `{"reason":"AUTH_REQUIRED","key":"refused","authMethods":["local"]}`},
		{"the offline model has none", &fakeKeys{check: map[domain.ModelRef]error{ref: refused}}, func(w *world) { w.senses.Offline = true }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.set = func(p *Params) { p.Keys = tt.keys }
			if tt.set != nil {
				tt.set(w)
			}
			open(t, w, func(r *rig) {
				if tt.fails == "" {
					r.ok("authenticate", `{"methodId":"local"}`)
					return
				}
				e := r.fails(-32000, "authenticate", `{"methodId":"local"}`)
				contains(t, e.Message, "Authentication required", "refused its API key", "berth login p")
				want(t, "data", e.Data, tt.fails)
			})
		})
	}
}

// TestAuthRequired_NamesTheWays: the error of a missing key names the ways to
// sign in that this client was offered, and none in a dialect without any.
func TestAuthRequired_NamesTheWays(t *testing.T) {
	for _, tt := range []struct{ name, initialize, params, want string }{
		{"acp", `{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}`, `{"cwd":"/proj","mcpServers":[]}`, `{"reason":"AUTH_REQUIRED","key":"missing","authMethods":["local","login"]}`},
		{"zeroclaw", `{}`, `{}`, `{"reason":"AUTH_REQUIRED","key":"missing"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.models = map[domain.ModelRef]error{{Provider: "p", Model: "m"}: domain.Errorf(domain.AuthRequired, "no key").With("key", "missing")}
			w.set = func(p *Params) { p.Login = Login{Args: []string{"login"}} }
			run(t, w, func(r *rig) {
				r.ok("initialize", tt.initialize)
				want(t, "data", r.fails(-32000, methodNew, tt.params).Data, tt.want)
			})
		})
	}
}

func TestLogout(t *testing.T) {
	ref, far := domain.ModelRef{Provider: "p", Model: "m"}, domain.ModelRef{Provider: "q", Model: "n"}
	other := domain.Agent{Alias: "other", Enabled: true, Model: far}
	login := Login{Args: []string{"login"}}
	for _, tt := range []struct {
		name     string
		keys     *fakeKeys
		login    Login
		fallback string
		want     []domain.ModelRef // nil: logout is not offered
	}{
		{"a key of the operator", &fakeKeys{}, login, "", nil},
		{"no way to log in again", &fakeKeys{stored: map[domain.ModelRef]bool{ref: true}}, Login{}, "", nil},
		{"a stored key", &fakeKeys{stored: map[domain.ModelRef]bool{ref: true}}, login, "", []domain.ModelRef{ref}},
		{"two stored keys", &fakeKeys{stored: map[domain.ModelRef]bool{ref: true, far: true}}, login, "", []domain.ModelRef{ref, far}},
		{"the default agent's alone", &fakeKeys{stored: map[domain.ModelRef]bool{ref: true, far: true}}, login, "other", []domain.ModelRef{far}},
		{"another agent's is not touched", &fakeKeys{stored: map[domain.ModelRef]bool{ref: true}}, login, "other", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.agents, w.fallback = append(w.agents, other), tt.fallback
			w.set = func(p *Params) { p.Keys, p.Login = tt.keys, tt.login }
			run(t, w, func(r *rig) {
				auth := r.initialize(`{}`).in("agentCapabilities")
				if auth.in("auth").has("logout") != (tt.want != nil) || auth.has("auth") != (tt.want != nil) {
					t.Errorf("auth is %s", auth["auth"])
				}
				if tt.want == nil {
					r.fails(-32601, "logout", `{}`)
					return
				}
				if got := r.ok("logout", ``).String(); got != `{}` {
					t.Errorf("result %s", got)
				}
				for i, ref := range tt.want {
					if len(tt.keys.forgotten) != len(tt.want) || tt.keys.forgotten[i] != ref {
						t.Fatalf("forgotten %v, want %v", tt.keys.forgotten, tt.want)
					}
				}
				tt.keys.err = domain.Errorf(domain.Unavailable, "the keyring is locked")
				contains(t, r.fails(-32603, "logout", `{}`).Message, "the keyring is locked")
			})
		})
	}
	t.Run("the other dialect", func(t *testing.T) {
		w := newWorld()
		w.set = func(p *Params) {
			p.Keys, p.Login = &fakeKeys{stored: map[domain.ModelRef]bool{ref: true}}, login
		}
		run(t, w, func(r *rig) {
			r.ok("initialize", ``)
			r.fails(-32601, "logout", ``)
		})
	})
}
