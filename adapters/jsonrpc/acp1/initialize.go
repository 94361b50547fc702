package acp1

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// protocolVersion is the one version we speak, whatever is asked for.
const protocolVersion = 1

// initialize fixes the dialect and what both ends can do. The peer serves it
// once per connection and before everything else.
func (c *connection) initialize(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	p := objectOf(params)
	dialect, err := c.negotiate(p)
	if err != nil {
		return nil, err
	}
	return func(context.Context) (jsonrpc.Reply, error) {
		var agents []agentInfo
		var looking sync.WaitGroup
		looking.Go(func() { agents = c.agents() }) // what is known of sandboxes is in files, and so is the store
		a := &agreement{
			dialect: dialect, info: clientInfo(p, dialect == jsonrpc.Zeroclaw, c.p.Rights), durable: c.p.Sessions.Durable(), logout: dialect == jsonrpc.ACP && c.canLogOut(),
		}
		if agent, ok := c.defaultAgent(); ok {
			model := c.p.Models.Describe(agent.Model)
			a.images, a.audio = model.Images, model.Audio
		}
		c.agreed.Store(a)
		c.conn.SetDialect(dialect)
		looking.Wait()
		return jsonrpc.Reply{Result: c.offer(a, agents)}, nil
	}, nil
}

// negotiate chooses the dialect. The version is read before anything else and
// by itself, so that params shaped for a future version do no harm.
func (c *connection) negotiate(p object) (jsonrpc.Dialect, error) {
	raw, versioned := p["protocolVersion"]
	if c.p.Dialect == DialectZeroclaw || c.p.Dialect != DialectACP && len(p) == 0 {
		return jsonrpc.Zeroclaw, nil // which reads no version at all
	}
	if !versioned {
		return 0, domain.Errorf(domain.InvalidArgument, "protocolVersion is required: send the integer 1")
	}
	version, err := strconv.ParseUint(string(raw), 10, 16)
	if err != nil {
		return 0, domain.Errorf(domain.InvalidArgument,
			"protocolVersion must be an integer from 0 to 65535: send 1")
	}
	if version == 0 && c.p.Dialect != DialectACP {
		return jsonrpc.Zeroclaw, nil
	}
	return jsonrpc.ACP, nil
}

// clientInfo reads what the client is and can do. What is malformed is
// unsupported.
func clientInfo(p object, zeroclaw bool, rights *Rights) domain.ClientInfo {
	who, can := p.in("clientInfo"), p.in("clientCapabilities")
	files, session, elicit := can.in("fs"), can.in("session"), can.in("elicitation")
	info := domain.ClientInfo{
		Name:         brief(who.text("name")),
		Title:        brief(who.text("title")),
		Version:      brief(who.text("version")),
		ReadFiles:    files.flag("readTextFile"),
		WriteFiles:   files.flag("writeTextFile"),
		Terminals:    can.flag("terminal"),
		Notices:      session.has("notices"),
		Compaction:   session.has("compaction"),
		BoolOptions:  session.in("configOptions").has("boolean"),
		ElicitForm:   elicit.has("form"),
		ElicitURL:    elicit.has("url"),
		LoginInShell: can.in("auth").flag("terminal"),
		LoginCommand: can.in("_meta").flag("terminal-auth"),
		Subagents:    can.has("subagents"),
		Rights:       rights,
	}
	if zeroclaw && can.has("elicitation") {
		// There the presence of the key decides, and none at all means forms.
		_, info.ElicitForm = elicit["form"]
		_, info.ElicitURL = elicit["url"]
		info.ElicitForm = info.ElicitForm || !info.ElicitURL
	}
	return info
}

// offer is the answer to initialize.
func (c *connection) offer(a *agreement, agents []agentInfo) initializeResult {
	yes := &struct{}{}
	session := sessionCapabilities{Close: yes, AdditionalDirectories: yes}
	if a.durable {
		session.List, session.Delete, session.Resume = yes, yes, yes
	}
	timeout := int(c.p.Limits.SessionTimeout.Seconds())
	result := initializeResult{
		ProtocolVersion: protocolVersion,
		Capabilities: capabilities{
			LoadSession: a.durable, Session: session,
			Prompt: promptCapabilities{Image: a.images, Audio: a.audio, EmbeddedContext: true},
		},
		AuthMethods: c.authMethods(a),
		AgentInfo:   implementation(c.p.Info),
		Meta: initializeMeta{
			Berth: initializeBerth{
				Dialect: "acp",
				Agents:  agents,
				Limits: limits{
					MaxSessions: c.p.Limits.MaxSessions, SessionTimeoutSecs: timeout,
					MaxBlobBytes: domain.MaxBlobBytes, MaxPromptBlobBytes: c.p.Limits.MaxPromptBlobBytes,
					QueuesPrompts: c.queues(),
				},
				Methods:     []string{"session/stop", methodUpdate, "session/event", methodAwait, methodObserve, methodUnobserve},
				ObserveOnly: c.onlyObserves(),
			},
			Zeroclaw: zeroclawInfo{MaxSessions: c.p.Limits.MaxSessions, SessionTimeoutSecs: timeout},
		},
	}
	if a.logout {
		result.Capabilities.Auth = &authCapabilities{Logout: yes}
	}
	if a.zeroclaw() {
		result.Meta.Berth.Dialect = "zeroclaw"
	}
	if agent, ok := c.defaultAgent(); ok {
		result.Meta.Berth.DefaultAgent = agent.Alias
		result.Meta.Zeroclaw.DefaultModel = agent.Model.Model
	}
	return result
}

// agents lists the agents a session may have.
func (c *connection) agents() []agentInfo {
	list := []agentInfo{}
	for _, a := range c.p.Agents.All() {
		if a.Enabled && c.p.Rights.Agent(a.Alias) {
			list = append(list, agentInfo{
				Alias: a.Alias, Title: a.Title, Description: a.Description, Model: a.Model.String(), Sandbox: c.sandbox(a.Alias),
			})
		}
	}
	return list
}

// sandbox tells how an agent's commands are held, if that is known; nil leaves
// it to the session that is opened, for trying it takes too long for here.
func (c *connection) sandbox(agent string) *sandboxInfo {
	if c.p.Sandbox == nil {
		return nil
	}
	p, known := c.p.Sandbox.Known(agent)
	if !known {
		return nil
	}
	return sandboxOf(p)
}

// defaultAgent is the agent a session gets that names none, if there is one.
func (c *connection) defaultAgent() (domain.Agent, bool) {
	only := ""
	if r := c.p.Rights; r != nil && len(r.Agents) == 1 {
		only = r.Agents[0]
	}
	for _, alias := range []string{c.p.Agent, only, c.p.Agents.Default()} {
		if alias != "" {
			a, ok := c.p.Agents.Agent(alias)
			return a, ok && a.Enabled && c.p.Rights.Agent(alias)
		}
	}
	if all := c.p.Agents.All(); len(all) == 1 && all[0].Enabled && c.p.Rights.Agent(all[0].Alias) {
		return all[0], true
	}
	return domain.Agent{}, false
}
