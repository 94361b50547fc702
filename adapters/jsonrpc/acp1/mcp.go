package acp1

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// mcpServers checks the MCP servers a client names and returns what the person
// has to know about them. Missing and null are none. A transport we did not
// advertise is refused. Servers on stdio are what every agent should connect
// to; this one cannot yet, so it says so rather than dropping them silently.
func mcpServers(raw json.RawMessage, rights *Rights) (notes []string, err error) {
	if absent(raw) {
		return nil, nil
	}
	if kindOf(raw) != '[' {
		return nil, domain.Errorf(domain.InvalidArgument, "mcpServers must be a list")
	}
	var names []string
	i := 0
	for el := range jsonrpc.Elements(raw) {
		name, err := mcpServer(el)
		if err != nil {
			return nil, domain.Errorf(domain.InvalidArgument, "mcpServers[%d]: %w", i, err)
		}
		names = append(names, name)
		i++
	}
	if len(names) == 0 {
		return nil, nil
	}
	if rights != nil && !rights.MCPCommands {
		return nil, domain.Errorf(domain.Denied,
			"mcpServers names programs to start (%s), which this client may not: its token was made without --allow-mcp-commands", brief(strings.Join(names, ", ")))
	}
	return []string{fmt.Sprintf("MCP servers cannot be used yet, so the tools of %s are off in this session.",
		brief(strings.Join(names, ", ")))}, nil
}

// mcpServer checks one entry and returns its name.
func mcpServer(raw json.RawMessage) (string, error) {
	if !isObject(raw) {
		return "", fmt.Errorf("must be an object")
	}
	s := objectOf(raw)
	name, err := s.required("name")
	if err != nil {
		return "", err
	}
	transport := "stdio"
	if !absent(s["type"]) {
		if transport, err = s.required("type"); err != nil {
			return "", err
		}
	}
	switch transport {
	case "stdio":
		return name, stdioServer(s)
	case "http", "sse":
		if _, err := s.required("url"); err != nil {
			return "", err
		}
		if err := pairs(s["headers"], "headers"); err != nil {
			return "", err
		}
		return "", fmt.Errorf("server %q uses the transport %s, which mcpCapabilities does not offer", brief(name), transport)
	}
	return "", fmt.Errorf("server %q uses the unknown transport %q", brief(name), brief(transport))
}

func stdioServer(s object) error {
	command, err := s.required("command")
	if err != nil {
		return err
	}
	if command == "" {
		return fmt.Errorf("command is empty")
	}
	if _, err := s.strings("args"); err != nil {
		return err
	}
	return pairs(s["env"], "env")
}

// pairs checks a list of {name, value}; missing and null are none.
func pairs(raw json.RawMessage, field string) error {
	if absent(raw) {
		return nil
	}
	if kindOf(raw) != '[' {
		return fmt.Errorf("%s must be a list of {name, value}", field)
	}
	i := 0
	for el := range jsonrpc.Elements(raw) {
		o := objectOf(el)
		_, named := stringOf(o["name"])
		if _, valued := stringOf(o["value"]); !named || !valued {
			return fmt.Errorf("%s[%d] must have a name and a value, both strings", field, i)
		}
		i++
	}
	return nil
}
