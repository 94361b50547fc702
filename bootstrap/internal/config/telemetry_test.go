package config

import "testing"

func TestHeaderParts(t *testing.T) {
	for _, tt := range []struct {
		text, name, value string
		ok                bool
	}{
		{"", "", "", true}, {"Authorization: Bearer x y", "Authorization", "Bearer x y", true}, {"Api-Key:k", "Api-Key", "k", true},
		{"no header", "", "", false}, {": value", "", "", false}, {"Name:", "", "", false}, {"Two words: v", "", "", false},
		{"A(b): v", "", "", false}, {"A: b\r\nC: d", "", "", false}, {"A: b\x7fc", "", "", false},
	} {
		name, value, err := Telemetry{Header: NewSecret(tt.text)}.HeaderParts()
		if name != tt.name || value != tt.value || (err == nil) != tt.ok {
			t.Errorf("%q: %q, %q, %v", tt.text, name, value, err)
		}
	}
}
