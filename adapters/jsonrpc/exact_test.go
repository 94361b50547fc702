package jsonrpc

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type exactEmbedded struct {
	Deep string `json:"deep"`
}

type exactParams struct {
	exactEmbedded
	Cwd    string                  `json:"cwd"`
	Params string                  `json:"params"`
	List   []exactItem             `json:"list"`
	Map    map[string]exactItem    `json:"map"`
	Opt    *exactItem              `json:"opt,omitempty"`
	Raw    json.RawMessage         `json:"raw"`
	Plain  string                  // named by the field
	Any    any                     `json:"any"`
	Hidden string                  `json:"-"`
	Tree   map[string][]*exactItem `json:"tree"`
}

type exactItem struct {
	Path string      `json:"path"`
	Sub  []exactItem `json:"sub"`
}

func TestUnmarshal_NamesAreExact(t *testing.T) {
	var d Decoder
	for _, tt := range []struct {
		name, in string
		want     exactParams
	}{
		{"right names", `{"cwd":"/a","list":[{"path":"p"}],"Plain":"x","deep":"d"}`,
			exactParams{Cwd: "/a", List: []exactItem{{Path: "p"}}, Plain: "x", exactEmbedded: exactEmbedded{"d"}}},
		{"capitals do not override", `{"cwd":"/a","CWD":"/","Cwd":"/x"}`, exactParams{Cwd: "/a"}},
		{"capitals alone do not count", `{"CWD":"/"}`, exactParams{}},
		{"long s", `{"paramſ":"x"}`, exactParams{}},
		{"escaped long s", `{"param\u017f":"x"}`, exactParams{}},
		{"escaped right name", `{"c\u0077d":"/a"}`, exactParams{Cwd: "/a"}},
		{"in a list", `{"list":[{"path":"p","PATH":"q","sub":[{"Path":"r","path":"s"}]}]}`,
			exactParams{List: []exactItem{{Path: "p", Sub: []exactItem{{Path: "s"}}}}}},
		{"keys of a map are data", `{"map":{"PATH":{"path":"p","Path":"q"},"path":{}}}`,
			exactParams{Map: map[string]exactItem{"PATH": {Path: "p"}, "path": {}}}},
		{"behind a pointer", `{"opt":{"PATH":"q"}}`, exactParams{Opt: &exactItem{}}},
		{"map of lists", `{"tree":{"a":[{"PATH":"q"},{"path":"p"}]}}`,
			exactParams{Tree: map[string][]*exactItem{"a": {{}, {Path: "p"}}}}},
		{"raw is left alone", `{"raw":{"Path":"q"}}`, exactParams{Raw: json.RawMessage(`{"Path":"q"}`)}},
		{"any is left alone", `{"any":{"Path":"q"}}`, exactParams{Any: map[string]any{"Path": "q"}}},
		{"embedded", `{"DEEP":"x","deep":"d"}`, exactParams{exactEmbedded: exactEmbedded{"d"}}},
		{"untagged field", `{"plain":"x"}`, exactParams{}},
		{"unknown members", `{"other":1,"_meta":{"CWD":2}}`, exactParams{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := []byte(tt.in)
			var got exactParams
			if err := d.Unmarshal(in, &got); err != nil {
				t.Fatal(err)
			}
			if string(in) != tt.in {
				t.Errorf("the input was changed to %s", in)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(exactParams{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnmarshal_Errors(t *testing.T) {
	var p exactParams
	for _, in := range []string{``, `{`, `{"list":[{"path"`, `{"list":[`, `{"cwd":1}`, `{"list":[1]}`, `[1,`, `{"map":{"a":"`} {
		if err := Unmarshal([]byte(in), &p); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
	if err := Unmarshal([]byte(`{}`), nil); err == nil {
		t.Error("nil target was accepted")
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"cwd":"/a","CWD":"/","list":[{"path":"p","PATH":1}],"map":{"a":{}}}`))
	f.Add([]byte(`{"list":[{"sub":[{"sub":[`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var got, std exactParams
		if (Unmarshal(in, &got) == nil) && json.Unmarshal(in, &std) == nil && Valid(in) {
			// Without names that fold, the two agree.
			if g, s := encode(t, got), encode(t, std); g != s && !foldsAny(in) {
				t.Fatalf("got %s, encoding/json %s", g, s)
			}
		}
	})
}

func encode(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// foldsAny reports whether hiding changed anything.
func foldsAny(in []byte) bool {
	var d Decoder
	e := exact{d: &d, in: in, out: in}
	e.walk(0, len(in), reflect.TypeFor[exactParams]())
	return e.copied
}
