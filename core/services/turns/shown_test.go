package turns

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRawInput(t *testing.T) {
	nested := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	for _, c := range []struct{ name, args, want string }{
		{"an object", `{"path":"a.txt","n":-1.5e3,"x":[true,null]}`, ""},
		{"the same name twice", `{"path":"a","path":"b"}`, ""},
		{"a pair of escapes", `{"a":"\ud83d\ude00\\ud800"}`, ""},
		{"half a character, escaped", `{"a":"x\ud800y\uDC00"}`, `{"a":"x\ufffdy\ufffd"}`},
		{"two first halves", `{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ufffd\ud83d\ude00"}`},
		{"half a character at the end of a name", `{"\ud83d":"\"\\"}`, `{"\ufffd":"\"\\"}`},
		{"no UTF-8", "{\"a\":\"\xff\"}", "{\"a\":\"\uFFFD\"}"},
		{"deep enough", nested(maxRawDepth - 1), ""},
		{"too deep", nested(maxRawDepth), `{"truncated":true,"bytes":134}`},
		{"brackets in a string", `{"a":"` + strings.Repeat("[", 200) + `"}`, ""},
		{"a number beyond all numbers", `{"a":1e999}`, `{"truncated":true,"bytes":11}`},
		{"a number close to none", `{"a":1e-999,"b":123456789012345678901234567890}`, ""},
		{"too long", `{"a":"` + strings.Repeat("x", maxRawInput) + `"}`, `{"truncated":true,"bytes":262152}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := strings.Clone(c.args)
			args := []byte(c.args)
			got := string(rawInput(args))
			if c.want == "" {
				c.want = before
			}
			if got != c.want || !json.Valid([]byte(got)) {
				t.Errorf("a client is shown %.200s, want %.200s", got, c.want)
			}
			if string(args) != before {
				t.Errorf("the arguments themselves were changed to %.200s", args)
			}
		})
	}
}

func TestPlainTitle(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a name", "read_file", "read_file"},
		{"lines and escapes", "re\x1b[31mad\nfi\r\nle\u202e\x00", "re[31mad fi le"},
		{"no UTF-8", "a\xffb", "a\uFFFDb"},
		{"long", strings.Repeat("é", 300), strings.Repeat("é", 99) + "…"},
		{"very long", strings.Repeat("n", 1<<20), strings.Repeat("n", 99) + "…"},
		{"long, most of it space", "a" + strings.Repeat(" ", 4*maxTitle-2) + "é", "a"},
		{"nothing", "\x07", "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := plainTitle(c.in); got != c.want {
				t.Errorf("the title is %q, want %q", got, c.want)
			}
		})
	}
}
