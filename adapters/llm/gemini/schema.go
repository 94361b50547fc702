package gemini

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// reduced returns a JSON Schema cut down to what the older field for it
// understands, a subset of OpenAPI's: references are put in place, several
// types become alternatives, and words it does not know are left out, so that
// it allows more than the original, never less. It is nil for a function
// without parameters.
func reduced(schema []byte) json.RawMessage {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil {
		return nil
	}
	r := reducer{root: root}
	out := r.schema(root, 0)
	if properties, _ := out["properties"].(map[string]any); len(properties) == 0 {
		return nil
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil // it came out of a decoder
	}
	return data
}

type reducer struct {
	root  map[string]any
	open  []string // the references that are being followed
	count int      // of schemas
}

// The bounds of a schema: how deep, and how many schemas it may hold.
const (
	maxSchema  = 24
	maxSchemas = 2000
)

// schema reduces one schema; anything that is none allows a text.
func (r *reducer) schema(v any, depth int) map[string]any {
	s, ok := v.(map[string]any)
	if r.count++; !ok || depth > maxSchema || r.count > maxSchemas {
		return map[string]any{"type": "string"}
	}
	open := len(r.open)
	defer func() { r.open = r.open[:open] }()
	s = r.inPlace(s)
	out := make(map[string]any)
	for _, name := range []string{"title", "description", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern"} {
		if v, ok := s[name]; ok {
			out[name] = v
		}
	}
	r.types(s, out)
	r.values(s, out)
	r.children(s, out, depth)
	r.alternatives(s, out, depth)
	if out["type"] == nil && out["anyOf"] == nil {
		out["type"] = guess(s)
	}
	return out
}

// inPlace resolves a reference within the document, and puts the members of
// allOf into one schema. A reference that is being followed is left out: what
// holds itself has no end.
func (r *reducer) inPlace(s map[string]any) map[string]any {
	var parts []any
	if ref, ok := s["$ref"].(string); ok && !slices.Contains(r.open, ref) {
		r.open = append(r.open, ref)
		parts = append(parts, r.find(ref))
	}
	if all, ok := s["allOf"].([]any); ok {
		parts = append(parts, all...)
	}
	out := make(map[string]any)
	for _, p := range parts {
		if m, ok := p.(map[string]any); ok {
			merge(out, r.inPlace(m))
		}
	}
	own := maps.Clone(s)
	delete(own, "$ref")
	delete(own, "allOf")
	merge(out, own)
	return out
}

// merge adds a schema to another: properties and required names are joined,
// all else is replaced.
func merge(to, from map[string]any) {
	for name, v := range from {
		switch had := to[name].(type) {
		case map[string]any:
			if more, ok := v.(map[string]any); ok && name == "properties" {
				joined := maps.Clone(had)
				maps.Copy(joined, more)
				to[name] = joined
				continue
			}
		case []any:
			if more, ok := v.([]any); ok && name == "required" {
				to[name] = append(slices.Clone(had), more...)
				continue
			}
		}
		to[name] = v
	}
}

// find follows a reference such as "#/$defs/item".
func (r *reducer) find(ref string) any {
	if ref == "#" {
		return r.root
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	var at any = r.root
	for name := range strings.SplitSeq(path, "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return at
}

// types writes the type. The null type means that the value may be left null.
func (r *reducer) types(s, out map[string]any) {
	var names []string
	switch t := s["type"].(type) {
	case string:
		names = []string{t}
	case []any:
		for _, v := range t {
			if name, ok := v.(string); ok {
				names = append(names, name)
			}
		}
	}
	if i := slices.Index(names, "null"); i >= 0 && len(names) > 1 {
		names = slices.Delete(names, i, i+1)
		out["nullable"] = true
	}
	if nullable, ok := s["nullable"].(bool); ok {
		out["nullable"] = nullable
	}
	switch len(names) {
	case 0:
	case 1:
		out["type"] = names[0]
	default:
		var each []any
		for _, name := range names {
			each = append(each, map[string]any{"type": name})
		}
		out["anyOf"] = each
	}
}

// values writes the values that are allowed, which can only be texts.
func (r *reducer) values(s, out map[string]any) {
	list, _ := s["enum"].([]any)
	if v, ok := s["const"]; ok {
		list = []any{v}
	}
	texts := make([]any, 0, len(list))
	for _, v := range list {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case nil:
			out["nullable"] = true
		default:
			return
		}
	}
	if len(texts) > 0 && (out["type"] == nil || out["type"] == "string") {
		out["type"], out["enum"], out["format"] = "string", texts, "enum"
	}
}

// children writes what objects and lists hold.
func (r *reducer) children(s, out map[string]any, depth int) {
	if properties, ok := s["properties"].(map[string]any); ok && len(properties) > 0 {
		known := make(map[string]any, len(properties))
		for _, name := range slices.Sorted(maps.Keys(properties)) { // which ones are beyond maxSchemas is always the same
			known[name] = r.schema(properties[name], depth+1)
		}
		out["properties"] = known
		var required []any
		list, _ := s["required"].([]any)
		for _, v := range list {
			if name, ok := v.(string); ok && known[name] != nil && !slices.Contains(required, v) {
				required = append(required, name)
			}
		}
		if len(required) > 0 {
			out["required"] = required
		}
	}
	if items, ok := s["items"]; ok || out["type"] == "array" {
		out["items"] = r.schema(items, depth+1)
	}
}

// alternatives writes anyOf and oneOf.
func (r *reducer) alternatives(s, out map[string]any, depth int) {
	list, _ := s["anyOf"].([]any)
	if one, ok := s["oneOf"].([]any); ok {
		list = append(slices.Clone(list), one...)
	}
	var each []any
	for _, v := range list {
		if m, ok := v.(map[string]any); ok && m["type"] == "null" {
			out["nullable"] = true
			continue
		}
		each = append(each, r.schema(v, depth+1))
	}
	if len(each) > 0 {
		out["anyOf"] = each
	}
}

// guess names the type of a schema that does not.
func guess(s map[string]any) string {
	switch {
	case s["properties"] != nil || s["additionalProperties"] != nil:
		return "object"
	case s["items"] != nil:
		return "array"
	}
	return "string"
}
