package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     Message
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":[1]}}`,
			Message{Kind: Request, ID: "1", Method: "a/b", Params: json.RawMessage(`{"x":[1]}`)}},
		{"request with white space", " {\t\"jsonrpc\" : \"2.0\" , \"id\" : \"q\" , \"method\" : \"m\" } \r",
			Message{Kind: Request, ID: `"q"`, Method: "m"}},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"m"}`, Message{Kind: Request, ID: "null", Method: "m"}},
		{"least id", `{"jsonrpc":"2.0","id":-9223372036854775808,"method":"m"}`,
			Message{Kind: Request, ID: "-9223372036854775808", Method: "m"}},
		{"id kept as escaped", `{"jsonrpc":"2.0","id":"\u0061","method":"m"}`,
			Message{Kind: Request, ID: `"\u0061"`, Method: "m"}},
		{"notification", `{"jsonrpc":"2.0","method":"m"}`, Message{Kind: Notification, Method: "m"}},
		{"escaped names and method", `{"json\u0072pc":"2\u002e0","meth\u006fd":"\u006d\ud83d\ude00\/\n"}`,
			Message{Kind: Notification, Method: "m😀/\n"}},
		{"other spellings are unknown members", `{"jsonrpc":"2.0","Method":"x","method":"m","METHOD":"y"}`,
			Message{Kind: Notification, Method: "m"}},
		{"result", `{"jsonrpc":"2.0","id":"z","result":null}`,
			Message{Kind: Response, ID: `"z"`, Result: json.RawMessage(`null`)}},
		{"error", `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no","data":{"a":1}}}`,
			Message{Kind: Response, ID: "null", Error: &RemoteError{-1, "no", json.RawMessage(`{"a":1}`)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParse_Refusals(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name, in string
		code     int
		id       ID
		kind     Kind
	}{
		{"nothing", ``, CodeParse, "null", 0},
		{"text behind", `{"jsonrpc":"2.0","method":"m"} x`, CodeParse, "null", 0},
		{"comma at the end", `{"jsonrpc":"2.0","method":"m",}`, CodeParse, "null", 0},
		{"unclosed", `{"jsonrpc":"2.0","params":[1,2`, CodeParse, "null", 0},
		{"unclosed name", `{"jsonrpc`, CodeParse, "null", 0},
		{"bare minus", `{"jsonrpc":"2.0","id":-,"method":"m"}`, CodeParse, "null", 0},
		{"bare point", `{"jsonrpc":"2.0","method":"m","params":{"a":1.}}`, CodeParse, "null", 0},
		{"bare exponent", `{"jsonrpc":"2.0","method":"m","params":{"a":1e+}}`, CodeParse, "null", 0},
		{"low surrogate first", `{"jsonrpc":"2.0","method":"\udc00\ud800"}`, CodeParse, "null", 0},
		{"low surrogate alone", `{"jsonrpc":"2.0","method":"\uDFFF"}`, CodeParse, "null", 0},
		{"half a pair", `{"jsonrpc":"2.0","method":"\ud800\u0041"}`, CodeParse, "null", 0},
		{"half a pair at the end", `{"jsonrpc":"2.0","method":"\ud83d`, CodeParse, "null", 0},
		{"encoded surrogate", "{\"jsonrpc\":\"2.0\",\"method\":\"\xed\xa0\x80\"}", CodeParse, "null", 0},
		{"truncated rune in a name", "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"\xe4\xb8\":1}", CodeParse, "null", 0},
		{"repeated member and no JSON", `{"a":1,"a":1,`, CodeParse, "null", 0},
		{"batch after white space", " \t[]", CodeInvalidRequest, "null", 0},
		{"bad batch", "[1,]", CodeParse, "null", 0},
		{"word", "true", CodeInvalidRequest, "null", 0},
		{"id above int64", `{"jsonrpc":"2.0","id":9223372036854775808,"method":"m"}`, CodeInvalidRequest, "null", 0},
		{"id as an exponent", `{"jsonrpc":"2.0","id":1e2,"method":"m"}`, CodeInvalidRequest, "null", 0},
		{"id too long", `{"jsonrpc":"2.0","id":"` + strings.Repeat("a", maxIDBytes) + `","method":"m"}`, CodeInvalidRequest, "null", 0},
		{"repeated id keeps none", `{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}`, CodeInvalidRequest, "null", 0},
		{"repeated through an escape", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"\u0061":2}}`, CodeInvalidRequest, "null", 0},
		{"repeated among many", `{"jsonrpc":"2.0","id":1,"method":"m","params":{` + many(40, `"k%d":0,`) + `"k3":0}}`, CodeInvalidRequest, "null", 0},
		{"repeated deep", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[[{"b":{"c":0,"c":0}}]]}}`, CodeInvalidRequest, "null", 0},
		{"too many members", `{"jsonrpc":"2.0","id":1,"method":"m","params":{` + many(maxOpenMembers, `"%d":0,`) + `"z":0}}`, CodeInvalidRequest, "null", 0},
		{"too deep", `{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`, CodeInvalidRequest, "null", 0},
		{"notification with a result", `{"jsonrpc":"2.0","method":"m","result":1}`, CodeInvalidRequest, "null", 0},
		{"method null", `{"jsonrpc":"2.0","id":"a","method":null}`, CodeInvalidRequest, `"a"`, 0},
		{"answer with both", `{"jsonrpc":"2.0","id":"z","result":1,"error":{"code":1,"message":"x"}}`, CodeInvalidRequest, `"z"`, Response},
		{"answer with a bad code", `{"jsonrpc":"2.0","id":"z","error":{"code":true,"message":"x"}}`, CodeInvalidRequest, `"z"`, Response},
		{"answer without words", `{"jsonrpc":"2.0","id":"z","error":{"code":1}}`, CodeInvalidRequest, `"z"`, Response},
		{"answer with an error that is none", `{"jsonrpc":"2.0","id":"z","error":null}`, CodeInvalidRequest, `"z"`, Response},
		{"answer without id", `{"jsonrpc":"2.0","result":1}`, CodeInvalidRequest, "", Response},
		{"answer without version", `{"id":"z","result":1}`, CodeInvalidRequest, `"z"`, Response},
		{"answer with repeated members", `{"jsonrpc":"2.0","id":"z","result":{"a":1,"a":2}}`, CodeInvalidRequest, `"z"`, Response},
		{"answer with two ids", `{"jsonrpc":"2.0","id":"z","id":"y","result":1}`, CodeInvalidRequest, "null", Response},
		{"answer with an id that is none", `{"jsonrpc":"2.0","id":1.5,"result":1}`, CodeInvalidRequest, "null", Response},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.in))
			var bad *MessageError
			if !errors.As(err, &bad) {
				t.Fatalf("accepted as %+v", m)
			}
			if bad.Code != tt.code || bad.ID != tt.id || m.Kind != tt.kind {
				t.Errorf("got code %d, id %s, kind %v (%v); want %d, %s, %v", bad.Code, bad.ID, m.Kind, err, tt.code, tt.id, tt.kind)
			}
		})
	}
}

func TestParse_DepthAllowed(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat("[", 127) + strings.Repeat("]", 127) + `}`
	if _, err := Parse([]byte(in)); err != nil {
		t.Fatal(err)
	}
}

func TestParse_ManySiblings(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":1,"method":"m","params":[` + strings.Repeat(`{"a":1,"b":2},`, maxOpenMembers) + `0]}`
	if _, err := Parse([]byte(in)); err != nil {
		t.Fatalf("members of objects that are closed must not count: %v", err)
	}
}

// TestParse_EverySplit cuts a message at every byte: none of the parts may be
// taken for a message, whatever the eight-at-a-time scanning meets at its end.
func TestParse_EverySplit(t *testing.T) {
	in := []byte(`{"jsonrpc":"2.0","id":"ä\u00e4","method":"session/prompt","params":{"p":[{"text":"日本語 \ud83d\ude00 and plain text"}],"n":-1.5e+3,"t":true,"z":null}}`)
	for i := range in {
		if m, err := Parse(in[:i:i]); err == nil {
			t.Errorf("first %d bytes accepted as %+v", i, m)
		}
	}
	if _, err := Parse(in); err != nil {
		t.Error(err)
	}
}

func TestMembers(t *testing.T) {
	var got []string
	for name, v := range Members([]byte(` { "a" : 1 , "\u0062":"x,}","c":{"d":[1,{"e":"]"}]} , "f":[ ] ,"g":null} `)) {
		got = append(got, name+"="+string(v))
	}
	want := []string{"a=1", `b="x,}"`, `c={"d":[1,{"e":"]"}]}`, "f=[ ]", "g=null"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, other := range []string{``, `[]`, `1`, `{}`, `{"a`, `{"a":`, `{"a":"`, `{a:1}`} {
		for name := range Members([]byte(other)) {
			t.Errorf("%q has a member %q", other, name)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,-2.5e3,"x"]}}`,
		`{"jsonrpc":"2.0","method":"\ud83d\ude00","params":{"\u0061":"ä"}}`,
		`{"jsonrpc":"2.0","id":"zc-out-1","result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"id":2}`, `[{"a":1}]`, ` null `, `{"\ud800":1}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		in := bytes.Clone(frame)
		m, err := Parse(frame)
		if !bytes.Equal(in, frame) {
			t.Fatal("Parse changed the frame")
		}
		var bad *MessageError
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("error of another type: %v", err)
		}
		valid := json.Valid(frame) && utf8.Valid(frame)
		switch {
		case bad == nil || bad.Code == CodeInvalidRequest && !strings.Contains(bad.Msg, "nests"):
			if !valid {
				t.Fatalf("not JSON, but Parse says %v", err)
			}
		case bad.Code == CodeParse:
			// What encoding/json would replace in silence may be refused.
			if valid && !bytes.Contains(frame, []byte(`\u`)) {
				t.Fatal("valid JSON was called a parse error")
			}
		}
		if Valid(frame) && !valid {
			t.Fatal("Valid accepts what is not")
		}
		if err != nil {
			return
		}
		compareWithStandard(t, frame, m)
	})
}

// compareWithStandard decodes an accepted frame with encoding/json into a map,
// which matches names exactly, and compares.
func compareWithStandard(t *testing.T, frame []byte, m Message) {
	var std map[string]json.RawMessage
	if err := json.Unmarshal(frame, &std); err != nil {
		t.Fatal(err)
	}
	if string(m.ID) != string(std["id"]) || string(m.Params) != string(std["params"]) || string(m.Result) != string(std["result"]) {
		t.Fatalf("got %+v, encoding/json reads %s", m, std)
	}
	if m.Kind != Response {
		var method string
		if err := json.Unmarshal(std["method"], &method); err != nil || method != m.Method {
			t.Fatalf("method %q, encoding/json reads %s", m.Method, std["method"])
		}
	}
	n := 0
	for name, v := range Members(frame) {
		if string(std[name]) != string(v) {
			t.Fatalf("member %q is %s, encoding/json reads %s", name, v, std[name])
		}
		n++
	}
	if n != len(std) {
		t.Fatalf("%d members, encoding/json reads %d", n, len(std))
	}
}
