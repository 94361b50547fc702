package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// HeaderParts returns the header for the collector; "" when there is none.
func (t Telemetry) HeaderParts() (name, value string, err error) {
	text, err := t.Header.Reveal()
	if err != nil || text == "" {
		return "", "", err
	}
	if name, value, err = header(text); err != nil {
		return "", "", fmt.Errorf("telemetry.header %w", err)
	}
	return name, value, nil
}

// header takes "Name: value" apart. The error shows nothing of it.
func header(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
	control := func(r rune) bool { return r != '\t' && unicode.IsControl(r) }
	if !ok || name == "" || value == "" || strings.IndexFunc(name, strange) >= 0 || strings.IndexFunc(value, control) >= 0 {
		return "", "", errors.New("is no header; write it as \"Name: value\"")
	}
	return name, value, nil
}

// checkTelemetry reports a header that is none, as far as it is known without
// reading a file or asking the key store.
func (l *loader) checkTelemetry() {
	h := l.cfg.Telemetry.Header
	if ref := h.Ref(); ref != "" && !strings.HasPrefix(ref, "env:") {
		return
	}
	if text, err := h.Reveal(); err == nil && text != "" {
		if _, _, err := header(text); err != nil {
			l.fail([]string{"telemetry", "header"}, nil, "%v", err)
		}
	}
}
