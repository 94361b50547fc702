package openclaw

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// modes are the thinking levels, for editors that have a switch for modes.
type modes struct {
	Current   string `json:"currentModeId"`
	Available []mode `json:"availableModes"`
}

type mode struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// option is a setting of a session.
type option struct {
	Type        string   `json:"type"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Category    string   `json:"category,omitempty"`
	Current     string   `json:"currentValue"`
	Values      []choice `json:"options"`
}

type choice struct {
	Value string `json:"value"`
	Name  string `json:"name"`
}

// setting is how an option is kept by the Gateway.
type setting struct {
	id, name, about, category string
	field                     string // of sessions.patch
	values                    []string
	now                       func(row) string
}

// The ids of the options that have values of their own for each session.
const (
	optionThinking = "thought_level"
	optionModel    = "model"
)

// settings are the options with fixed values. Those from verbose_level on
// need operator.admin, which is asked for when one of them is set.
func settings() []setting {
	return []setting{
		{"fast_mode", "Fast mode", "Faster answers, where the provider has them", "", "fastMode", []string{"off", "auto", "on"},
			func(r row) string { return or(r.fast, "off") }},
		{"verbose_level", "Verbosity", "How much tools tell", "", "verboseLevel", []string{"off", "on", "full"},
			func(r row) string { return or(r.verbose, "off") }},
		{"trace_level", "Trace", "Traces of plugins", "", "traceLevel", []string{"off", "on"},
			func(r row) string { return or(r.trace, "off") }},
		{"reasoning_level", "Reasoning", "Whether channels are shown the model's reasoning", "", "reasoningLevel", []string{"off", "on", "stream"},
			func(r row) string { return or(r.reasoning, "off") }},
		{"response_usage", "Usage line", "A line about usage below answers", "", "responseUsage", []string{inherit, "off", "tokens", "full"},
			func(r row) string { return or(r.usage, inherit) }},
		{"elevated_level", "Elevated commands", "Whether commands may run outside the sandbox", "", "elevatedLevel", []string{"off", "on", "ask", "full"},
			func(r row) string { return or(r.elevated, "off") }},
	}
}

// inherit is the value that takes a setting back.
const inherit = "inherit"

// adaptive is the thinking level of a session that has none.
const adaptive = "adaptive"

// level is the thinking level in force.
func (r row) level() string { return or(r.thinking, or(r.thinkingNow, adaptive)) }

// levelsOf are the levels to choose from, the one in force among them.
func (r row) levelsOf() []string {
	list := r.levels
	if len(list) == 0 {
		list = []string{"off", "minimal", "low", "medium", "high"}
	}
	if !slices.Contains(list, r.level()) {
		list = append([]string{r.level()}, list...)
	}
	return list
}

func (r row) modes() *modes {
	m := &modes{Current: r.level()}
	for _, l := range r.levelsOf() {
		m.Available = append(m.Available, mode{l, l})
	}
	return m
}

// options are the settings of a session.
func (r row) options(models []modelRow) []option {
	var out []option
	add := func(o option, values []string) {
		if !slices.Contains(values, o.Current) {
			values = append([]string{o.Current}, values...)
		}
		for _, v := range values {
			o.Values = append(o.Values, choice{v, v})
		}
		o.Type = "select"
		out = append(out, o)
	}
	if r.model != "" {
		m := option{Type: "select", ID: optionModel, Name: "Model", Category: "model", Current: modelID(r.provider, r.model)}
		known := false
		for _, c := range models {
			m.Values = append(m.Values, choice{c.id, c.name})
			known = known || c.id == m.Current
		}
		if !known {
			m.Values = append(m.Values, choice{m.Current, m.Current})
		}
		out = append(out, m)
	}
	add(option{ID: optionThinking, Name: "Thinking", Category: "thought_level", Current: r.level()}, r.levelsOf())
	for _, s := range settings() {
		add(option{ID: s.id, Name: s.name, Description: s.about, Category: s.category, Current: s.now(r)}, s.values)
	}
	return out
}

func modelID(provider, model string) string {
	if provider == "" {
		return model
	}
	return provider + "/" + model
}

// modelRow is a model that can be chosen.
type modelRow struct{ id, name string }

// knownModels are the Gateway's models. A Gateway that does not tell leaves
// the choice to the one in use.
func (b *Bridge) knownModels(ctx context.Context) []modelRow {
	b.mu.Lock()
	known := b.models
	b.mu.Unlock()
	if known != nil {
		return known
	}
	raw, err := b.gw.call(ctx, "models.list", struct{}{})
	if err != nil {
		b.cfg.Log("models.list: %v", err)
		return nil
	}
	list := []modelRow{}
	for e := range jsonrpc.Elements(fieldsOf(raw)["models"]) {
		m := fieldsOf(e)
		if id := m.text("id"); id != "" && string(m["available"]) != "false" {
			list = append(list, modelRow{modelID(m.text("provider"), id), or(m.text("name"), id)})
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.models = list
	return list
}

// setMode sets the thinking level.
func (b *Bridge) setMode(ctx context.Context, p fields) (jsonrpc.Reply, error) {
	s, err := b.opened(p)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	id := p.text("modeId")
	if id == "" {
		return jsonrpc.Reply{}, bad("modeId is required and must be a string")
	}
	_, err = b.patch(ctx, "session/set_mode", s, "thinkingLevel", levelValue(id))
	return jsonrpc.Reply{}, err
}

// levelValue is a thinking level as the Gateway keeps it.
func levelValue(id string) any {
	if id == adaptive {
		return nil
	}
	return id
}

type optionsResult struct {
	Options []option `json:"configOptions"`
}

// setOption sets one option and answers all.
func (b *Bridge) setOption(ctx context.Context, p fields) (jsonrpc.Reply, error) {
	const what = "session/set_config_option"
	s, err := b.opened(p)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	id, value := p.text("configId"), p.text("value")
	if id == "" {
		return jsonrpc.Reply{}, bad("configId is required and must be a string")
	}
	var r row
	switch {
	case id == "timeout", id == "timeout_seconds":
		r, err = b.describe(ctx, what, s.key) // some clients set it for all agents
	case value == "":
		return jsonrpc.Reply{}, bad("value of %s is required and must be a string", quoted(id))
	case id == optionThinking:
		r, err = b.patch(ctx, what, s, "thinkingLevel", levelValue(value))
	case id == optionModel:
		r, err = b.patch(ctx, what, s, "model", value)
	default:
		r, err = b.setFixed(ctx, what, s, id, value)
	}
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	return jsonrpc.Reply{Result: optionsResult{r.options(b.knownModels(ctx))}}, nil
}

func (b *Bridge) setFixed(ctx context.Context, what string, s *session, id, value string) (row, error) {
	for _, o := range settings() {
		if o.id != id {
			continue
		}
		if !slices.Contains(o.values, value) {
			return row{}, bad("value of %s must be one of %v", quoted(id), o.values)
		}
		var v any = value
		switch {
		case value == inherit:
			v = nil
		case id == "fast_mode" && value != "auto":
			v = value == "on"
		}
		return b.patch(ctx, what, s, o.field, v)
	}
	return row{}, bad("configId %s is no option of this session", quoted(id))
}

// patch changes one field of a session, tells the editor how things are now
// and returns that.
func (b *Bridge) patch(ctx context.Context, what string, s *session, field string, value any) (row, error) {
	if _, err := b.privileged(ctx, what, "sessions.patch", map[string]any{"key": s.key, field: value}); err != nil {
		return row{}, err
	}
	r, err := b.describe(ctx, what, s.key)
	if err != nil {
		return row{}, err
	}
	b.notify(ctx, s.id, rawOf(modeUpdate{"current_mode_update", r.level()}))
	b.notify(ctx, s.id, rawOf(optionUpdate{"config_option_update", r.options(b.knownModels(ctx))}))
	b.tellRow(ctx, s, r)
	return r, nil
}

type modeUpdate struct {
	Kind string `json:"sessionUpdate"`
	Mode string `json:"currentModeId"`
}

type optionUpdate struct {
	Kind    string   `json:"sessionUpdate"`
	Options []option `json:"configOptions"`
}

type rawUpdate struct {
	SessionID domain.SessionID `json:"sessionId"`
	Update    json.RawMessage  `json:"update"`
}

// notify sends an update that the rest of the product has no use for.
func (b *Bridge) notify(ctx context.Context, id domain.SessionID, update json.RawMessage) {
	_ = b.conn.Notify(ctx, methodUpdate, rawUpdate{id, update}) // an editor that has gone needs none
}
