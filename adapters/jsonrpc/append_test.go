package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendString(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "abc", `"abc"`},
		{"empty", "", `""`},
		{"escapes", "a\"\\\n\r\t\x00\x1f\x7fz", `"a\"\\\n\r\t\u0000\u001f` + "\x7f" + `z"`},
		{"html stays", "<a & b>", `"<a & b>"`},
		{"unicode stays", "日本 😀", `"日本 😀"`},
		{"bad bytes", "a\xffb\xc0\xafc\xe4\xb8", "\"a\uFFFDb\uFFFD\uFFFDc\uFFFD\uFFFD\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(AppendString([]byte("x"), tt.in)); got != "x"+tt.want {
				t.Errorf("got %s, want %s", got[1:], tt.want)
			}
		})
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\x00\xff日本")
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendString(nil, s)
		if !Valid(b) || strings.ContainsAny(string(b), "\n\r") {
			t.Fatalf("%q became %s", s, b)
		}
		var back string
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(s) && back != s {
			t.Fatalf("%q came back as %q", s, back)
		}
	})
}

func TestAppendValue(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   any
		want string
	}{
		{"nil is the empty object", nil, `{}`},
		{"raw", json.RawMessage(`[1]`), `[1]`},
		{"empty raw", json.RawMessage(nil), `{}`},
		{"appender", appender("x"), `{"by":"hand"}`},
		{"struct without html escapes", struct{ A string }{"<&>"}, `{"A":"<&>"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := appendValue([]byte("p"), tt.in)
			if err != nil || string(got) != "p"+tt.want {
				t.Errorf("got %s, %v; want %s", got[1:], err, tt.want)
			}
		})
	}
	if got, err := appendValue([]byte("p"), func() {}); err == nil || string(got) != "p" {
		t.Errorf("a function gave %s, %v", got, err)
	}
}

type appender string

func (appender) AppendJSON(dst []byte) []byte { return append(dst, `{"by":"hand"}`...) }
