package tomltree

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// dump prints a tree with positions, one leaf a line.
func dump(n *Node, path string, b *strings.Builder) {
	for i, c := range n.Items {
		p := path + "/" + c.Key
		if n.Kind == Array {
			p = fmt.Sprintf("%s[%d]", path, i)
		}
		switch c.Kind {
		case Table, Array:
			fmt.Fprintf(b, "%s %v @%d:%d\n", p, c.Kind, c.At.Line, c.At.Col)
			dump(c, p, b)
		default:
			fmt.Fprintf(b, "%s=%s %v key %d:%d value %d:%d\n", p, c.Text, c.Kind, c.KeyAt.Line, c.KeyAt.Col, c.At.Line, c.At.Col)
		}
	}
}

func TestParse_Positions(t *testing.T) {
	doc := "top = 1\r\n" +
		"[acp]  # comment\r\n" +
		"max_sessions = 0x_bad\r\n"
	if _, err := Parse([]byte(doc)); err == nil {
		t.Fatal("0x_bad was read as a number")
	}
	doc = "top = 1_000\n" +
		"\"quoted key\" = 'é' # é\n" +
		"a.b.c = true\n" +
		"[x . \"y.z\"]\n" +
		"  n   =   -2.5\n" +
		"t = { Key = \"v\", in.ner = 2020-01-01 }\n" +
		"list = [\n  \"one\",\n  { rule = \"two\" },\n  [3],\n]\n" +
		"[[x.arr]]\n" +
		"v = 1\n" +
		"[[x.arr]]\n" +
		"[x.arr.sub]\n" +
		"v = \"\"\"\nlong\n\"\"\"\n"
	root, err := Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	dump(root, "", &b)
	want := `/top=1_000 an integer key 1:1 value 1:7
/quoted key=é a string key 2:1 value 2:16
/a a table @3:1
/a/b a table @3:3
/a/b/c=true a boolean key 3:5 value 3:9
/x a table @4:2
/x/y.z a table @4:6
/x/y.z/n=-2.5 a float key 5:3 value 5:11
/x/y.z/t a table @6:5
/x/y.z/t/Key=v a string key 6:7 value 6:13
/x/y.z/t/in a table @6:18
/x/y.z/t/in/ner=2020-01-01 a date key 6:21 value 6:27
/x/y.z/list an array @7:8
/x/y.z/list[0]=one a string key 0:0 value 8:3
/x/y.z/list[1] a table @9:3
/x/y.z/list[1]/rule=two a string key 9:5 value 9:12
/x/y.z/list[2] an array @7:8
/x/y.z/list[2][0]=3 an integer key 0:0 value 10:4
/x/arr an array @12:5
/x/arr[0] a table @12:5
/x/arr[0]/v=1 an integer key 13:1 value 13:5
/x/arr[1] a table @14:5
/x/arr[1]/sub a table @15:8
/x/arr[1]/sub/v=long
 a string key 16:1 value 16:5
`
	if got := b.String(); got != want {
		t.Errorf("tree:\n%s\nwant:\n%s", got, want)
	}
	if i, err := root.Member("top").Int(); i != 1000 || err != nil {
		t.Errorf("Int() = %d, %v", i, err)
	}
}

func TestParse_SyntaxErrors(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"bare word", "[p]\nkey = sk-secret\n", "2:7: unexpected character U+0073 's' at start of value; text needs quotes, as in key = \"value\""},
		{"bare path", "a = ~/x", "1:5: unexpected character U+007E '~' at start of value; text needs quotes, as in key = \"value\""},
		{"repeated key", "a = 1\na = 2\n", "2:1: key a is already defined"},
		{"repeated table", "[a]\n[a]\n", "2:2: table a already exists"},
		{"open table", "[a\n", "1:3: expected ']' to close table name"},
		{"column in characters", "[a]\nk = \"éé\" x\n", "2:10: expected newline but got U+0078 'x'"},
		{"open string at the end", "a = \"x", "1:6: unterminated basic string"},
		{"too big", "a = 99999999999999999999", "1:5: decimal number is too large to fit in a 64-bit signed integer"},
		{"invalid UTF-8", "a = \"\xff\"", "1:6: invalid UTF-8 character in basic string"},
		{"windows line", "a = 1\r\nb = x\r\n", "2:5: unexpected character U+0078 'x' at start of value; text needs quotes, as in key = \"value\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.doc))
			var se *SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("error %v, want a SyntaxError", err)
			}
			if se.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", se, tt.want)
			}
		})
	}
}

func TestSet(t *testing.T) {
	for _, tt := range []struct{ name, doc, path, value, want string }{
		{"empty document", "", "a.b", "1", "[a]\nb = 1\n"},
		{"empty document, root key", "", "a", "1", "a = 1\n"},
		{"replace keeps everything else", "# head\n[a] # t\n  b  =  1   # why\nc = 2\n", "a.b", "30", "# head\n[a] # t\n  b  =  30   # why\nc = 2\n"},
		{"replace a list over lines", "[a]\nb = [\n 1, # one\n 2,\n]\nc = 2\n", "a.b", "[3]", "[a]\nb = [3]\nc = 2\n"},
		{"replace a long string", "[a]\nb = \"\"\"\nx\n\"\"\" # c\n", "a.b", `"y"`, "[a]\nb = \"y\" # c\n"},
		{"add under its header", "[a]\nb = 1 # why\n\n# about c\n[c]\nd = 1\n", "a.x", "2", "[a]\nb = 1 # why\nx = 2\n\n# about c\n[c]\nd = 1\n"},
		{"add under an empty header", "[a]\n[c]\n", "a.x", "2", "[a]\nx = 2\n[c]\n"},
		{"add at the end without newline", "[a]\nb = 1", "a.x", "2", "[a]\nb = 1\nx = 2\n"},
		{"add a table", "[a]\nb = 1\n", "c.d", "2", "[a]\nb = 1\n\n[c]\nd = 2\n"},
		{"add a table without newline", "[a]\nb = 1", "c.d", "2", "[a]\nb = 1\n\n[c]\nd = 2\n"},
		{"add a sub-table", "[a.b]\nc = 1\n", "a.d.e", "2", "[a.b]\nc = 1\n\n[a.d]\ne = 2\n"},
		{"add to a parent of a table", "[a.b]\nc = 1\n", "a.d", "2", "[a.b]\nc = 1\n\n[a]\nd = 2\n"},
		{"add to an inline table", "a = { b = 1 } # c\n", "a.x", "2", "a = { b = 1, x = 2 } # c\n"},
		{"add to an empty inline table", "a = {}\n", "a.x", "2", "a = { x = 2 }\n"},
		{"add below an inline table", "a = { b = { c = 1 } }\n", "a.d.e", "2", "a = { b = { c = 1 }, d.e = 2 }\n"},
		{"replace inside an inline table", "a = { b = 1, c = 'x' }\n", "a.b", "[1, 2]", "a = { b = [1, 2], c = 'x' }\n"},
		{"add beside dotted keys", "a.b = 1\n[c]\n", "a.x", "2", "a.b = 1\na.x = 2\n[c]\n"},
		{"add beside dotted keys in a table", "[p.d]\nlimits.a = 1\nz = 1\n[c]\n", "p.d.limits.x", "2", "[p.d]\nlimits.a = 1\nlimits.x = 2\nz = 1\n[c]\n"},
		{"add a root key after others", "a = 1\n# about t\n[t]\n", "x", "2", "a = 1\nx = 2\n# about t\n[t]\n"},
		{"add a root key before all", "# about t\n[t]\n", "x", "2", "x = 2\n\n# about t\n[t]\n"},
		{"windows line ends", "[a]\r\nb = 1\r\n[c]\r\n", "a.x", "2", "[a]\r\nb = 1\r\nx = 2\r\n[c]\r\n"},
		{"quoted keys", "[\"a\".'b']\n\"c\" = 1\n", "a.b.c", "2", "[\"a\".'b']\n\"c\" = 2\n"},
		{"after an array of tables", "[[a.list]]\nx = 1\n[a.list.sub]\ny = 1\n[b]\n", "b.x", "2", "[[a.list]]\nx = 1\n[a.list.sub]\ny = 1\n[b]\nx = 2\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Set([]byte(tt.doc), strings.Split(tt.path, "."), tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if _, err := Parse(got); err != nil {
				t.Errorf("the result does not parse: %v", err)
			}
		})
	}
}

func TestSet_QuotesKeys(t *testing.T) {
	got, err := Set(nil, []string{"m", "gpt-4.1", "a\"b"}, Quote("x\\\"\x01\té"))
	if err != nil {
		t.Fatal(err)
	}
	want := "[m.\"gpt-4.1\"]\n\"a\\\"b\" = \"x\\\\\\\"\\u0001\\té\"\n"
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	root, err := Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	if v := root.Member("m").Member("gpt-4.1").Member("a\"b").Text; v != "x\\\"\x01\té" {
		t.Errorf("read back %q", v)
	}
}

// flatten lists every leaf of a tree outside arrays, for comparison.
func flatten(n *Node, path []string, out map[string]string) {
	for _, c := range n.Items {
		p := append(path[:len(path):len(path)], c.Key)
		if c.Kind == Table {
			flatten(c, p, out)
			continue
		}
		var b strings.Builder
		if c.Kind == Array {
			dumpValues(c, &b)
		}
		out[strings.Join(p, "\x00")] = fmt.Sprint(c.Kind, c.Text, b.String())
	}
}

func dumpValues(n *Node, b *strings.Builder) {
	for _, c := range n.Items {
		fmt.Fprintf(b, "(%s %v %s", c.Key, c.Kind, c.Text)
		dumpValues(c, b)
		b.WriteByte(')')
	}
}

// FuzzSet checks that an edit of any document either breaks nothing or is
// noticed by parsing: where the result parses, the key has the value and
// every other value is what it was.
func FuzzSet(f *testing.F) {
	for _, doc := range []string{"", "[a]\nb = 1\n", "a.b = 1", "a = {b = 1, }", "[[a]]\nb=1\n[a.b.c]\n", "a = [1, {x = [2]}] # c\r\n[c]", "\"a\" = {\n b = 1 # c\n}"} {
		f.Add(doc, "a", "b")
	}
	f.Fuzz(func(t *testing.T, doc, k1, k2 string) {
		before, err := Parse([]byte(doc))
		if err != nil || !utf8.ValidString(k1) || !utf8.ValidString(k2) {
			return
		}
		path := []string{k1, k2}
		out, err := Set([]byte(doc), path, `"new"`)
		if err != nil {
			t.Fatalf("Set refused a sound document: %v", err)
		}
		after, err := Parse(out)
		if err != nil {
			return // the path crosses a value; the caller sees this error
		}
		was, is := map[string]string{}, map[string]string{}
		flatten(before, nil, was)
		flatten(after, nil, is)
		target := strings.Join(path, "\x00")
		if is[target] != "a stringnew" {
			t.Fatalf("%q: value %q after Set\n%s", target, is[target], out)
		}
		for k, v := range was {
			if k != target && !strings.HasPrefix(k, target+"\x00") && is[k] != v {
				t.Fatalf("%q changed from %q to %q\n%s\n--\n%s", k, v, is[k], doc, out)
			}
		}
	})
}
