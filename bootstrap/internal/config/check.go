package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
	"github.com/berth-dev/berth/core/domain"
)

// check looks at what no single key can know: names that must exist, settings
// that exclude or need each other. Where a key is wrong in itself, nothing
// more is said about it.
func (l *loader) check() {
	c := l.cfg
	if c.DataDir == "" {
		l.report.add(Origin{Layer: FromFlag, Name: "--data-dir"}, "data_dir",
			"there is no home directory to put data in; set HOME, BERTH_DATA_DIR or the flag")
	}
	for _, alias := range sortedNames(c.Agents) {
		l.checkAgent(c.Agents[alias])
	}
	for _, name := range sortedNames(c.Providers) {
		l.checkProvider(c.Providers[name])
	}
	for _, name := range sortedNames(c.Profiles) {
		l.checkProfile(c.Profiles[name])
	}
	for _, name := range sortedNames(c.MCPServers) {
		l.checkServer(c.MCPServers[name])
	}
	l.checkGateway()
	l.checkStore()
	l.checkBridge()
	l.checkTelemetry()
	l.warn()
}

// fail reports a problem of the setting at path, unless it or a setting the
// check leans on has one already. An unset setting is reported where its
// table is first named.
func (l *loader) fail(path, needs []string, format string, args ...any) {
	name := tomltree.JoinKeys(path)
	if l.report.bad[name] {
		return
	}
	for _, need := range needs {
		if l.report.bad[tomltree.JoinKeys(append(slices.Clone(path[:len(path)-1]), need))] {
			return
		}
	}
	l.report.also(l.originOf(path), name, format, args...)
}

func (l *loader) originOf(path []string) Origin {
	if s := l.cfg.setting(settingID(path)); s != nil && s.origin.Layer != FromDefault {
		return s.origin
	}
	if len(path) > 1 {
		if o, ok := l.named[path[0]][path[1]]; ok {
			return o
		}
	}
	return Origin{Layer: FromFile, File: l.cfg.ConfigFile}
}

// setting finds a setting by its id.
func (c *Config) setting(id string) *setting {
	i, ok := slices.BinarySearchFunc(c.settings, id, func(s *setting, id string) int { return strings.Compare(s.id, id) })
	if !ok {
		return nil
	}
	return c.settings[i]
}

func (l *loader) checkAgent(a Agent) {
	if _, ok := l.cfg.Profiles[a.Profile]; !ok {
		l.fail([]string{"agents", a.Alias, "profile"}, nil, "%s", l.missing("profile", a.Profile, sortedNames(l.cfg.Profiles)))
	}
	l.checkModel([]string{"agents", a.Alias, "model"}, a.Model)
	for _, name := range a.MCPServers {
		if _, ok := l.cfg.MCPServers[name]; !ok {
			l.fail([]string{"agents", a.Alias, "mcp_servers"}, nil, "%s", l.missing("MCP server", name, sortedNames(l.cfg.MCPServers)))
		}
	}
}

// checkModel reports a reference to a provider that is not there.
func (l *loader) checkModel(path []string, ref domain.ModelRef) {
	if ref == (domain.ModelRef{}) {
		return
	}
	if _, ok := l.cfg.LookupProvider(ref.Provider); !ok {
		known := sortedNames(l.cfg.Providers)
		for _, t := range ProviderTypes() {
			if t.Implicit && !slices.Contains(known, t.Name) {
				known = append(known, t.Name)
			}
		}
		l.fail(path, nil, "%s", l.missing("provider", ref.Provider, known))
	}
}

// missing says that a name is not configured, and which ones are.
func (l *loader) missing(what, name string, known []string) string {
	msg := fmt.Sprintf("there is no %s %s", what, quote(name))
	if s := nearest(name, known); s != "" {
		msg += fmt.Sprintf("; did you mean %q?", s)
	}
	if len(known) == 0 {
		return sentence(msg, "none is configured")
	}
	return sentence(msg, "allowed: "+strings.Join(known, ", "))
}

func (l *loader) checkProvider(p Provider) {
	at := func(k string) []string { return []string{"providers", p.Name, k} }
	t, ok := providerType(p.Type)
	switch {
	case !ok:
		l.fail(at("type"), nil, "is missing; allowed: %s", oneOfTypes())
	case p.BaseURL == "" && p.Type == "bedrock":
		l.fail(at("base_url"), []string{"type"}, "is missing and so is AWS_REGION, which it could be made from; an address is such as https://bedrock-runtime.us-east-1.amazonaws.com")
	case p.BaseURL == "" && (p.Type == "openai-compatible" || p.Type == "azure"):
		l.fail(at("base_url"), []string{"type"}, "is missing; a provider of type %s has no address of its own", p.Type)
	case p.Script != "" && p.Type != "scripted":
		l.fail(at("script"), []string{"type"}, "belongs to type scripted; this provider is of type %s", p.Type)
	case p.BaseURL != "" && (t.Wire == "offline" || t.Wire == "scripted"):
		l.fail(at("base_url"), []string{"type"}, "does not fit type %s, which calls nobody", p.Type)
	}
	for _, ref := range p.Fallback {
		l.checkModel(at("fallback"), ref)
	}
}

func oneOfTypes() string {
	var names []string
	for _, t := range ProviderTypes() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

func (l *loader) checkProfile(p Profile) {
	builtIn := defaultForbidden(l.home)
	for _, path := range p.ForbiddenPaths {
		gone, ok := strings.CutPrefix(path, "!")
		if !ok || slices.Contains(builtIn, gone) {
			continue
		}
		reason := "no built-in forbidden path; allowed: " + strings.Join(builtIn, ", ")
		if gone == l.cfg.ConfigDir || gone == l.cfg.DataDir {
			reason = "one of berth's own directories, which are always forbidden"
		}
		l.fail([]string{"profiles", p.Name, "forbidden_paths"}, nil, "%s takes away %s", quote(path), reason)
	}
	secret := l.cfg.SecretVariables()
	for _, name := range p.ShellEnv {
		if slices.Contains(secret, name) {
			l.fail([]string{"profiles", p.Name, "shell_env"}, nil, "%s holds a key, and keys are never passed to commands", name)
		}
	}
	l.tryRules(p.Name, "deny", p.Deny)
	l.tryRules(p.Name, "always_ask", p.AlwaysAsk)
	l.tryRules(p.Name, "auto_approve", p.AutoApprove)
}

// tryRules reports the rules of a list that do not hold.
func (l *loader) tryRules(profile, list string, rules []Rule) {
	for _, r := range rules {
		if l.opts.TryRule == nil {
			return
		}
		if err := l.opts.TryRule(list, r); err != nil {
			l.fail([]string{"profiles", profile, list}, nil, "the rule %s %v", quote(r.Rule), err)
		}
	}
}

func (l *loader) checkServer(s MCPServer) {
	at := func(k string) []string { return []string{"mcp_servers", s.Name, k} }
	both := []string{"command", "url", "type"}
	switch {
	case s.Command == "" && !s.URL.IsSet():
		l.fail(at("command"), both, "is missing; a server needs a command to start, or a url to reach it")
	case s.Command != "" && s.URL.IsSet():
		l.fail(at("url"), both, "cannot stand beside command; a server has one or the other")
	case s.Command != "" && s.Type != "stdio":
		l.fail(at("type"), both, "%q does not fit a server that is started by a command; allowed: stdio", s.Type)
	case s.URL.IsSet() && s.Type == "stdio":
		l.fail(at("type"), both, "\"stdio\" does not fit a server that is reached by url; allowed: http, sse")
	case s.Command == "" && (len(s.Args) > 0 || len(s.Env) > 0):
		l.fail(at("command"), both, "is missing; args and env are for a server that is started")
	case !s.URL.IsSet() && len(s.Headers) > 0:
		l.fail(at("url"), both, "is missing; headers are for a server that is reached by url")
	}
}

func (l *loader) checkGateway() {
	g := l.cfg.Gateway
	at := func(k string) []string { return []string{"gateway", k} }
	if (g.TLSCert == "") != (g.TLSKey == "") {
		have, lacks := "tls_cert", "tls_key"
		if g.TLSCert == "" {
			have, lacks = lacks, have
		}
		l.fail(at(have), []string{lacks}, "needs gateway.%s beside it", lacks)
	}
	if g.Listen == "" || isLoopback(g.Listen) {
		return
	}
	if g.Auth == "none" {
		l.fail(at("auth"), []string{"listen"}, "\"none\" is refused on %s, which others can reach; use \"token\", or listen on 127.0.0.1", g.Listen)
	}
	if g.TLSCert == "" && g.TLSKey == "" && !g.Insecure {
		l.fail(at("listen"), []string{"tls_cert", "tls_key", "insecure"}, "%s can be reached by others without TLS; set gateway.tls_cert and gateway.tls_key, or gateway.insecure = true", g.Listen)
	}
}

func (l *loader) checkStore() {
	s := l.cfg.Store
	switch {
	case s.Driver == "postgres" && !s.DSN.IsSet():
		l.fail([]string{"store", "driver"}, []string{"dsn"}, "\"postgres\" needs a connection string in store.dsn")
	case s.Driver != "postgres" && s.DSN.IsSet():
		l.fail([]string{"store", "dsn"}, []string{"driver"}, "is for the postgres driver; this one is %s", s.Driver)
	}
}

func (l *loader) checkBridge() {
	if b := l.cfg.Bridge; b.Token.IsSet() && b.TokenFile != "" {
		l.fail([]string{"bridge", "token_file"}, []string{"token"}, "cannot stand beside bridge.token; keep one of the two")
	}
}

// warn collects what is allowed and will disappoint.
func (l *loader) warn() {
	c := l.cfg
	say := func(path []string, format string, args ...any) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%v: %s: %s", l.originOf(path), tomltree.JoinKeys(path), fmt.Sprintf(format, args...)))
	}
	if a := c.ACP.DefaultAgent; a != "" {
		if agent, ok := c.Agents[a]; !ok {
			say([]string{"acp", "default_agent"}, "%s", l.missing("agent", a, sortedNames(c.Agents)))
		} else if !agent.Enabled {
			say([]string{"acp", "default_agent"}, "the agent %q is not enabled", a)
		}
	}
	if c.ACP.DefaultAgent == "" && len(c.Agents) > 1 {
		say([]string{"agents"}, "there are several (%s) and none is the default: sessions that name none are refused; set acp.default_agent", strings.Join(sortedNames(c.Agents), ", "))
	}
	if _, err := c.ambient.stored.read(); err != nil {
		c.Warnings = append(c.Warnings, err.Error())
	}
	for _, name := range sortedNames(c.Providers) {
		if file := c.Providers[name].CAFile; file != "" {
			if _, err := os.Stat(file); err != nil {
				say([]string{"providers", name, "ca_file"}, "%s: %v", file, cause(err))
			}
		}
	}
	for _, s := range c.settings {
		secret, ok := s.value.(Secret)
		if !ok {
			continue
		}
		if secret.Ref() == "" {
			if v, _ := secret.Reveal(); strings.HasPrefix(v, "$") && isVariable(strings.Trim(v, "${}")) {
				say(s.path, "is taken as it stands, for variables are not put in; write env:NAME to name one")
			}
			continue
		}
		if kind, _, _ := strings.Cut(secret.Ref(), ":"); kind == "file" || kind == "keyring" && l.opts.Keyring != nil {
			continue // it may be there later, and reading it now would take time and keep it longer than needed
		}
		if _, err := secret.Reveal(); err != nil {
			say(s.path, "%v", err)
		}
	}
}
