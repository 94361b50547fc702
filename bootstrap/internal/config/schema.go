package config

import (
	"io"
	"strings"
)

// Schema writes the JSON schema (draft 2020-12) of the configuration file,
// for editors that complete TOML by one.
func Schema(w io.Writer) error {
	root := object("Settings of berth, see `berth config list`.")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "berth config.toml"
	for _, k := range keys() {
		place := root
		segs := k.segs
		for i, seg := range segs {
			if i == len(segs)-1 {
				child(place, seg, k.schema())
				break
			}
			place = child(place, seg, object(""))
		}
	}
	return writeJSON(w, root)
}

func (k *key) schema() map[string]any {
	s := k.kind.schema()
	s["description"] = strings.ReplaceAll(k.doc, "`", "")
	if k.def != "" {
		s["default"] = shownValue(k.defaultValue())
	}
	return s
}

func object(description string) map[string]any {
	o := map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}
	if description != "" {
		o["description"] = description
	}
	return o
}

// child returns the schema of a member, putting it in when it is new. A
// placeholder stands for all members.
func child(parent map[string]any, segment string, fresh map[string]any) map[string]any {
	if !isPlaceholder(segment) {
		members := parent["properties"].(map[string]any)
		if have, ok := members[segment]; ok {
			return have.(map[string]any)
		}
		members[segment] = fresh
		return fresh
	}
	if have, ok := parent["additionalProperties"].(map[string]any); ok {
		return have
	}
	if !isVerbatim(segment) {
		parent["propertyNames"] = nameSchema()
	}
	parent["additionalProperties"] = fresh
	return fresh
}
