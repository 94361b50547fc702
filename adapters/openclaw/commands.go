package openclaw

import (
	"context"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

type commandsParams struct {
	SessionKey string `json:"sessionKey"`
	Scope      string `json:"scope"`
	Args       bool   `json:"includeArgs"`
}

// tellCommands tells the editor which slash commands the Gateway takes in a
// session. They are ordinary prompts.
func (b *Bridge) tellCommands(ctx context.Context, s *session) {
	raw, err := b.gw.call(ctx, "commands.list", commandsParams{s.key, "text", true})
	if err != nil {
		b.cfg.Log("commands.list: %v", err)
		return
	}
	list := []domain.Command{}
	for e := range jsonrpc.Elements(fieldsOf(raw)["commands"]) {
		f := fieldsOf(e)
		c := domain.Command{Name: commandName(f), Description: brief(f.text("description"))}
		if c.Name == "" {
			continue
		}
		if f.flag("acceptsArgs") {
			c.Hint = hint(f)
		}
		list = append(list, c)
	}
	b.tell(ctx, s.id, domain.CommandsChanged{Commands: list})
}

// commandName is what is typed, without the slash.
func commandName(f fields) string {
	for _, alias := range f.strings("textAliases") {
		if name, ok := strings.CutPrefix(alias, "/"); ok && name != "" && !strings.ContainsAny(name, " \t") {
			return name
		}
	}
	return strings.TrimPrefix(f.text("name"), "/")
}

// hint is what to type after a command.
func hint(f fields) string {
	var parts []string
	for e := range jsonrpc.Elements(f["args"]) {
		a := fieldsOf(e)
		name := a.text("name")
		var values []string
		for c := range jsonrpc.Elements(a["choices"]) {
			values = append(values, or(text(c), fieldsOf(c).text("value")))
		}
		if len(values) > 0 && len(values) <= 8 {
			name = strings.Join(values, " | ")
		}
		if name == "" {
			continue
		}
		if !a.flag("required") {
			name = "[" + name + "]"
		}
		parts = append(parts, name)
	}
	return or(strings.Join(parts, " "), "arguments")
}
