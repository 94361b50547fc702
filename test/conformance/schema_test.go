package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// published is the protocol's published schema of version 1, as far as it says
// what an agent sends. It is not part of the repository.
type published struct {
	defs  map[string]any
	rules map[string]*jsonschema.Schema // by definition
	names map[string]string             // "Request session/prompt" → definition
}

func readSchema(path string) (*published, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("acp.json", doc); err != nil {
		return nil, err
	}
	root, _ := doc.(map[string]any)
	defs, _ := root["$defs"].(map[string]any)
	p := &published{defs: defs, rules: map[string]*jsonschema.Schema{}, names: map[string]string{}}
	for name, def := range defs {
		def, _ := def.(map[string]any)
		method, _ := def["x-method"].(string)
		for _, kind := range []string{"Request", "Response", "Notification"} {
			if method == "" && name != "Error" || !strings.HasSuffix(name, kind) && name != "Error" {
				continue
			}
			rule, err := compiler.Compile("acp.json#/$defs/" + name)
			if err != nil {
				return nil, err
			}
			p.rules[name], p.names[kind+" "+method] = rule, name
		}
	}
	if p.rules["SessionNotification"] == nil || p.rules["PromptResponse"] == nil || p.rules["Error"] == nil {
		return nil, fmt.Errorf("%s does not look like the schema of version 1", path)
	}
	return p, nil
}

// faults says in what a message differs from the schema: values that do not
// fit, and members at the root of params or results that are not there.
// Methods of our own have no definition, and no rule.
func (p *published) faults(m jsonrpc.Message, method string) []string {
	kind := map[jsonrpc.Kind]string{jsonrpc.Request: "Request", jsonrpc.Notification: "Notification", jsonrpc.Response: "Response"}
	name, raw := p.names[kind[m.Kind]+" "+method], m.Params
	if m.Kind == jsonrpc.Response {
		raw = m.Result
	}
	if m.Error != nil {
		name, raw = "Error", errorOf(m.Error)
	}
	if name == "" || method == "" && m.Error == nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	if err := p.rules[name].Validate(value); err != nil {
		bad = append(bad, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	known := p.members(p.defs[name], nil)
	object, _ := value.(map[string]any)
	for member := range object {
		if !slices.Contains(known, member) {
			bad = append(bad, fmt.Sprintf("%s has no member %q", name, member))
		}
	}
	return bad
}

// members returns the names of all members an object of a definition may have.
func (p *published) members(def any, names []string) []string {
	d, _ := def.(map[string]any)
	if ref, ok := d["$ref"].(string); ok {
		names = p.members(p.defs[strings.TrimPrefix(ref, "#/$defs/")], names)
	}
	properties, _ := d["properties"].(map[string]any)
	for name := range properties {
		names = append(names, name)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := d[word].([]any)
		for _, part := range parts {
			names = p.members(part, names)
		}
	}
	return names
}

func errorOf(e *jsonrpc.RemoteError) json.RawMessage {
	m := map[string]any{"code": e.Code, "message": e.Message}
	if e.Data != nil {
		m["data"] = e.Data
	}
	raw, _ := json.Marshal(m) // an object of plain values always encodes
	return raw
}

// decode reads a JSON value; numbers keep their digits. What is no JSON is nil.
func decode(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}
