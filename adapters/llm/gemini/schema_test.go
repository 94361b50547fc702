package gemini

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestReduced is the table of schemas and what is left of them.
func TestReduced(t *testing.T) {
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	for _, c := range []struct{ name, schema, want string }{
		{
			"plain", `{"type":"object","properties":{"p":{"type":"string","description":"d","minLength":1,"pattern":"^a"}},"required":["p"]}`,
			`{"type":"object","properties":{"p":{"type":"string","description":"d","minLength":1,"pattern":"^a"}},"required":["p"]}`,
		},
		{
			"unknown words", `{"$schema":"x","type":"object","additionalProperties":false,"properties":{"p":{"type":"integer","exclusiveMinimum":0,"format":"uint8","default":3,"examples":[1]}}}`,
			object(`"p":{"type":"integer"}`),
		},
		{"nullable", object(`"p":{"type":["string","null"]}`), object(`"p":{"type":"string","nullable":true}`)},
		{"several types", object(`"p":{"type":["string","integer"]}`), object(`"p":{"anyOf":[{"type":"string"},{"type":"integer"}]}`)},
		{"texts to choose from", object(`"p":{"type":"string","enum":["a","b"]}`), object(`"p":{"type":"string","enum":["a","b"],"format":"enum"}`)},
		{"a constant", object(`"p":{"const":"a"}`), object(`"p":{"type":"string","enum":["a"],"format":"enum"}`)},
		{"numbers to choose from", object(`"p":{"type":"integer","enum":[1,2]}`), object(`"p":{"type":"integer"}`)},
		{
			"alternatives", object(`"p":{"oneOf":[{"type":"null"},{"type":"string"},{"type":"array","items":{"type":"number"}}]}`),
			object(`"p":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"number"}}],"nullable":true}`),
		},
		{"a list of anything", object(`"p":{"type":"array"}`), object(`"p":{"type":"array","items":{"type":"string"}}`)},
		{"anything", object(`"p":true,"q":{}`), object(`"p":{"type":"string"},"q":{"type":"string"}`)},
		{
			"no type", object(`"p":{"items":{"type":"string"}},"q":{"additionalProperties":{"type":"string"}}`),
			object(`"p":{"type":"array","items":{"type":"string"}},"q":{"type":"object"}`),
		},
		{
			"a reference", `{"type":"object","properties":{"p":{"$ref":"#/$defs/a~1b","description":"mine"}},"$defs":{"a/b":{"type":"integer","description":"theirs"}}}`,
			object(`"p":{"type":"integer","description":"mine"}`),
		},
		{"a reference to nowhere", object(`"p":{"$ref":"#/$defs/x"},"q":{"$ref":"http://x"}`), object(`"p":{"type":"string"},"q":{"type":"string"}`)},
		{
			"all of", object(`"p":{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b","b"]}]}`),
			object(`"p":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]}`),
		},
		{"required and unknown", `{"type":"object","properties":{"p":{"type":"string"}},"required":["q",5,"p"]}`, `{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}`},
		{"no parameters", `{"type":"object","properties":{}}`, ``},
		{"nothing", ``, ``},
		{"no schema", `[]`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := reduced([]byte(c.schema))
			if c.want == "" {
				if got != nil {
					t.Errorf("%s", got)
				}
				return
			}
			var a, b any
			if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(c.want), &b) != nil || !reflect.DeepEqual(a, b) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestReduced_Circular: a schema that holds itself comes to an end.
func TestReduced_Circular(t *testing.T) {
	for name, schema := range map[string]string{
		"of itself":  `{"type":"object","properties":{"p":{"$ref":"#"}}}`,
		"a loop":     `{"type":"object","properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"many times": `{"type":"object","properties":{"p":{"$ref":"#"},"q":{"$ref":"#/properties/p"},"r":{"allOf":[{"$ref":"#"},{"$ref":"#/properties/q"}]},"s":{"$ref":"#"}}}`,
		"doubling":   `{"type":"object","properties":{"p":{"$ref":"#/$defs/0"}},"$defs":{` + doubling(30) + `"30":{"type":"string"}}}`,
		"alternates": `{"type":"object","properties":{"p":{"anyOf":[{"$ref":"#"},{"type":"string"}]}}}`,
	} {
		if got := reduced([]byte(schema)); !json.Valid(got) || len(got) > 64<<10 {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
}

// doubling is n definitions, each of which holds the next one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/%d"},"b":{"$ref":"#/$defs/%d"}}},`, i, i+1, i+1)
	}
	return b.String()
}
