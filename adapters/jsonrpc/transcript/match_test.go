package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

func TestMatch(t *testing.T) {
	known := func() vars { return vars{"WORK": "/w", "n": json.Number("7"), "@p": json.Number("3"), "word": "b"} }
	for _, tt := range []struct {
		name, pattern, got string
		why                string // "" if it matches
	}{
		{"equal", `{"a":[1,"x",true,null]}`, `{"a":[1,"x",true,null]}`, ""},
		{"subset", `{"a":{"b":1}}`, `{"a":{"b":1,"c":2},"d":3}`, ""},
		{"missing member", `{"a":{"b":1}}`, `{"a":{}}`, "a.b: want 1, got nothing"},
		{"other value", `{"a":"x"}`, `{"a":"y"}`, `a: want "x", got "y"`},
		{"other type", `{"a":{}}`, `{"a":[]}`, `a: want an object, got []`},
		{"null is no object", `{"a":{}}`, `{"a":null}`, `a: want an object, got null`},
		{"false is not null", `{"a":false}`, `{"a":null}`, `a: want false, got null`},
		{"list too long", `[1]`, `[1,2]`, "value: want 1 items, got 2"},
		{"list too short", `{"a":[1,2]}`, `{"a":[1]}`, "a: want 2 items, got 1"},
		{"open list", `[1,"..."]`, `[1,2,3]`, ""},
		{"open list without more", `[1,"..."]`, `[1]`, ""},
		{"open list too short", `[1,2,"..."]`, `[1]`, "value: want 2 items, got 1"},
		{"item", `{"a":[{"b":1}]}`, `{"a":[{"b":2}]}`, "a[0].b: want 1, got 2"},
		{"dots elsewhere are text", `["...",1]`, `["...",1]`, ""},
		{"numbers by value", `[1.0,1e2,-0.5]`, `[1,100,-5e-1]`, ""},
		{"large numbers exactly", `9007199254740993`, `9007199254740992`, "value: want 9007199254740993, got 9007199254740992"},
		{"any value", `{"a":"*","b":"*"}`, `{"a":null,"b":{}}`, ""},
		{"any value must be there", `{"a":"*"}`, `{}`, `a: want "*", got nothing`},
		{"absent", `{"a":"!"}`, `{}`, ""},
		{"absent and there", `{"a":"!"}`, `{"a":1}`, "a: want nothing, got 1"},
		{"expression", `"~^a.c$"`, `"abc"`, ""},
		{"expression not found", `"~^a.c$"`, `"abcd"`, `value: want "~^a.c$", got "abcd"`},
		{"expression and a number", `"~1"`, `1`, `value: want "~1", got 1`},
		{"expression that is none", `"~("`, `"x"`, "value: error parsing regexp"},
		{"literal", `["=*","=$x","==","=~a","=!"]`, `["*","$x","=","~a","!"]`, ""},
		{"captures once", `["$x","$x"]`, `[{"a":1},{"a":1}]`, ""},
		{"captures once, then compares", `["$x","$x"]`, `[1,2]`, "[1]: $x is 1, got 2"},
		{"known variable", `{"cwd":"$WORK","n":"$n"}`, `{"cwd":"/w","n":7}`, ""},
		{"known variable differs", `"$WORK"`, `"/v"`, `value: $WORK is "/w", got "/v"`},
		{"inside a text", `"$WORK/a$word$n-$$x"`, `"/w/ab7-$x"`, ""},
		{"inside a text, captured before", `["$new","<$new>"]`, `["v","<v>"]`, ""},
		{"inside a text, unknown", `"$new/x"`, `"v/x"`, "value: $new has no value yet; write $$ for a dollar sign"},
		{"dollar sign", `["$$","$5"]`, `["$","$5"]`, ""},
		{"id", `"$@p"`, `3`, ""},
		{"id of nobody", `"$@z"`, `3`, "value: no request has the label @z"},
		{"long", `1`, `"` + strings.Repeat("é", maxShown) + `"`, `value: want 1, got "` + strings.Repeat("é", maxShown/2-1) + "…"},
		{"nothing at all", `{"a":1}`, ``, `value: want {"a":1}, got nothing`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got json.RawMessage
			if tt.got != "" {
				got = json.RawMessage(tt.got)
			}
			why := known().match(json.RawMessage(tt.pattern), got)
			if (why == "") != (tt.why == "") || !strings.HasPrefix(why, tt.why) {
				t.Errorf("got %q, want %q", why, tt.why)
			}
		})
	}
}

func TestMatch_CapturesOnlyOnSuccess(t *testing.T) {
	v := vars{}
	if why := v.match(json.RawMessage(`{"a":"$x","b":1}`), json.RawMessage(`{"a":5,"b":2}`)); why == "" || len(v) != 0 {
		t.Errorf("why %q, variables %v", why, v)
	}
	if why := v.match(json.RawMessage(`{"a":"$x"}`), json.RawMessage(`{"a":5}`)); why != "" || v["x"] != json.Number("5") {
		t.Errorf("why %q, variables %v", why, v)
	}
	if why := v.match(nil, json.RawMessage(`1`)); why != "" {
		t.Errorf("no pattern: %s", why)
	}
}

func TestFill(t *testing.T) {
	v := vars{"s": "a\"b", "o": map[string]any{"k": json.Number("1")}, "@p": json.Number("3")}
	for in, want := range map[string]string{
		`{"b":"$s","a":["$o","x$o","$@p","$$s","*","=x","$5 < 6"]}`: `{"a":[{"k":1},"x{\"k\":1}",3,"$s","*","=x","$5 < 6"],"b":"a\"b"}`,
		`{"b":1,"a":2}`: `{"b":1,"a":2}`,
	} {
		got, err := v.fill(json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s became %s, %v", in, got, err)
		}
	}
	if _, err := v.fill(json.RawMessage(`{"a":["$none"]}`)); err == nil || !strings.Contains(err.Error(), "$none") {
		t.Errorf("a variable without value: %v", err)
	}
}

func TestRewrite(t *testing.T) {
	for _, tt := range []struct{ name, pattern, got, want string }{
		{"keeps the form", `{"a":1,"b":"*","c":"$x"}`, `{"a":2,"b":3,"c":4,"d":5}`, `{"a":2,"b":"*","c":"$x"}`},
		{"drops what is gone", `{"a":1,"b":"!"}`, `{"d":5}`, `{"b":"!"}`},
		{"lists", `[1,2]`, `[3,{"a":"*"}]`, `[3,{"a":"=*"}]`},
		{"open lists", `[1,"..."]`, `[2,3]`, `[2,"..."]`},
		{"expressions that fit", `["~a+","~b"]`, `["caat","x"]`, `["~a+","x"]`},
		{"texts that look special", `["","","",""]`, `["$x","~y","=z","..."]`, `["=$x","=~y","==z","=..."]`},
		{"another type", `{"a":[1]}`, `{"a":{"b":"!"}}`, `{"a":{"b":"=!"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := rewrite(json.RawMessage(tt.pattern), json.RawMessage(tt.got))
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if why := (vars{}).match(got, json.RawMessage(tt.got)); why != "" {
				t.Errorf("it does not match: %s", why)
			}
		})
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add(`{"a":[1,"..."],"b":"~x"}`, `{"a":["$y"],"b":"=z","c":null}`)
	f.Fuzz(func(t *testing.T, pattern, got string) {
		if !jsonrpc.Valid([]byte(pattern)) || !jsonrpc.Valid([]byte(got)) {
			return
		}
		if strings.Contains(pattern, "$") { // a variable may stand for two values
			return
		}
		if why := (vars{}).match(rewrite(json.RawMessage(pattern), json.RawMessage(got)), json.RawMessage(got)); why != "" {
			t.Fatalf("%s rewritten for %s does not match: %s", pattern, got, why)
		}
	})
}
