package geminitest

import (
	"strings"
	"testing"
)

// TestLook: the fake tells of every way in which a request can lose what it
// gave.
func TestLook(t *testing.T) {
	const (
		q      = `{"role":"user","parts":[{"text":"q"}]}`
		think  = `{"text":"hm","thought":true,"thoughtSignature":"t"}`
		first  = `{"functionCall":{"id":"k","name":"f","args":{"x":1}},"thoughtSignature":"c"}`
		second = `{"functionCall":{"name":"g","args":{}}}`
		one    = `{"functionResponse":{"id":"k","name":"f","response":{"output":"1"}}}`
		two    = `{"functionResponse":{"name":"g","response":{"error":"2"}}}`
	)
	strip := strings.NewReplacer(`,"thoughtSignature":"c"`, "")
	for name, c := range map[string]struct {
		model, user string
		want        string
	}{
		"as it was":             {think + "," + first + "," + second, one + "," + two, ""},
		"in other words":        {think + "," + strings.Replace(first, `{"x":1}`, `{ "x" : 1.0 }`, 1) + "," + second, one + "," + two, ""},
		"a signature is lost":   {think + "," + strip.Replace(first) + "," + second, one + "," + two, "signed parts"},
		"a thought is lost":     {first + "," + second, one + "," + two, "signed parts"},
		"parts changed places":  {first + "," + think + "," + second, one + "," + two, "signed parts"},
		"a signature moved":     {think + "," + strip.Replace(first) + "," + strings.Replace(second, "}}}", `}},"thoughtSignature":"c"}`, 1), one + "," + two, "was not given with"},
		"arguments changed":     {think + "," + strings.Replace(first, "1", "2", 1) + "," + second, one + "," + two, "was not given with"},
		"none is signed":        {strip.Replace(first) + "," + second, one + "," + two, "missing a thought_signature"},
		"a response is missing": {think + "," + first + "," + second, one, "number of function response parts"},
		"responses changed":     {think + "," + first + "," + second, two + "," + one, "the call was"},
		"an id is lost":         {think + "," + first + "," + second, strings.Replace(one, `"id":"k",`, "", 1) + "," + two, "the call was"},
	} {
		var m memory
		sent, err := decode([]byte(`{"contents":[{"role":"model","parts":[` + think + `,` + first + `,` + second + `]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		m.keep(sent.Contents[0].Parts)
		problems := m.look([]byte(`{"contents":[`+q+`,{"role":"model","parts":[`+c.model+`]},{"role":"user","parts":[`+c.user+`]}]}`), true)
		if got := strings.Join(problems, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
