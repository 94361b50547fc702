package llm

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestClean: whatever a provider quotes of the key and of the conversation is
// cut out, in whole and in part, escaped or not.
func TestClean(t *testing.T) {
	const key = "canary0123456789abcdef"
	prompt := "my \"own\" words\nand ones with \u00fcmlauts,\ttabs and <marks> & more of them"
	body, err := json.Marshal(map[string]string{"model": "the-model-of-the-day-2026", "prompt": prompt})
	if err != nil {
		t.Fatal(err)
	}
	r := newRedactor(&Provider{}, Call{URL: "https://h.invalid/", Body: body, Public: []string{"the-model-of-the-day-2026"}}, key)
	for _, c := range []struct{ name, words, want string }{
		{"the key", "bad key " + key + ".", "bad key [redacted]."},
		{"its beginning", "bad key canary01234…", "bad key [redacted]…"},
		{"its end", "bad key ***789abcdef", "bad key ***[redacted]"},
		{"both", "canary012...56789abcdef", "[redacted]...[redacted]"},
		{"its last four", "the key ending in cdef", "the key ending in cdef"},
		{"the prompt", "cannot read: " + prompt, "cannot read: […]"},
		{"the prompt as it was sent", "cannot read " + string(body[40:]), "cannot read […]"},
		{"a quote inside the prompt", `near: my "own" words` + "\nand ones, they say", "near: […], they say"},
		{"the model", "no model the-model-of-the-day-2026", "no model the-model-of-the-day-2026"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.clean(c.words); got != c.want {
				t.Errorf("shown: %q, want %q", got, c.want)
			}
		})
	}
	x := &Exchange{provider: &Provider{ProviderConfig: ProviderConfig{Name: "p"}}, redact: r}
	if got := x.Broken("it ended with the reason \"" + key + "\"").Error(); strings.Contains(got, key) {
		t.Errorf("a broken answer: %s", got)
	}
	squeezed := parseRefusal(400, http.Header{"Content-Encoding": {"gzip"}}, []byte("\x1f\x8b\x08"))
	if squeezed.Message != "a compressed text, which was not asked for" {
		t.Errorf("a compressed refusal says %q", squeezed.Message)
	}
}
