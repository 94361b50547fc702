package config

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// mask is what a secret prints as.
const mask = "[secret]"

// maxSecretFile bounds file:PATH secrets, so that a mistaken path cannot fill
// memory.
const maxSecretFile = 64 << 10

// Secret is a value that must not be seen. However it is printed, encoded or
// logged, "[secret]" comes out; Reveal is the only way to the value. The zero
// Secret is not set and prints as "".
//
// The value sits inside a function: packages such as fmt reach into
// unexported fields of other structs by reflection, where no method of ours
// is asked, and follow pointers there. They cannot look into a function.
type Secret struct{ open func() secretBox }

type secretBox struct {
	ref     string // "env:NAME", "file:PATH", "keyring:NAME"; "" for a literal
	shown   string // what "config list" shows
	value   string // of a literal, or of an environment variable that is set
	path    string // of file:PATH, absolute
	keyring Keyring
	note    func(string) // is told what was read; may be nil
}

// Keyring is the operating system's key store. Its methods take a bounded
// time. Errors are shown to the person: they say what to do instead, and never
// hold a secret.
type Keyring interface {
	// Get returns the secret stored under name; an error that is
	// fs.ErrNotExist when there is none.
	Get(name string) (string, error)
	// Set stores a secret, in the place of an older one.
	Set(name, value string) error
	// Delete removes a secret; an error that is fs.ErrNotExist when there is
	// none.
	Delete(name string) error
}

// NewSecret returns a secret that holds value itself, for embedders and
// tests. An empty value is an unset secret.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return secretOf(secretBox{value: value, shown: mask})
}

func secretOf(b secretBox) Secret { return Secret{func() secretBox { return b }} }

// IsSet reports whether there is a secret. It does not say that Reveal
// succeeds.
func (s Secret) IsSet() bool { return s.open != nil }

// Ref returns "env:NAME", "file:PATH" or "keyring:NAME" when the secret is
// such a reference, for messages; "" when the value was written out.
func (s Secret) Ref() string {
	if !s.IsSet() {
		return ""
	}
	return s.open().ref
}

// Equal reports whether two secrets are the same reference or value.
func (s Secret) Equal(t Secret) bool {
	if !s.IsSet() || !t.IsSet() {
		return s.IsSet() == t.IsSet()
	}
	a, b := s.open(), t.open()
	return a.ref == b.ref && a.value == b.value
}

// Reveal returns the value. A file is read on each call, so a rotated key is
// picked up. Of a file and a keyring entry the last line end is dropped. An
// unset secret gives "" and no error. Errors name the reference, never a
// value.
func (s Secret) Reveal() (string, error) {
	if !s.IsSet() {
		return "", nil
	}
	b := s.open()
	kind, name, _ := strings.Cut(b.ref, ":")
	switch kind {
	case "env":
		if b.value == "" {
			return "", fmt.Errorf("the environment variable %s is not set; set it where berth is started, or use file:PATH", name)
		}
		return b.value, nil
	case "file":
		v, err := readSecretFile(b.path)
		return b.read(v), err
	case "keyring":
		v, err := fromKeyring(b.keyring, name)
		return b.read(v), err
	}
	return b.value, nil
}

// read notes a value that was read from elsewhere.
func (b secretBox) read(v string) string {
	if b.note != nil {
		b.note(v)
	}
	return v
}

// inKeyring reports whether Reveal asks the keyring.
func (s Secret) inKeyring() bool { return strings.HasPrefix(s.Ref(), keyringRef) }

// readSecretFile reads a secret. Errors are coded, hold nothing of the file and
// are fit to show.
func readSecretFile(path string) (string, error) {
	// Stat first: opening a pipe that nobody writes to would hang.
	if info, err := os.Stat(path); err != nil {
		return "", domain.Errorf(domain.AuthRequired, "secret file %s: %w", path, cause(err))
	} else if !info.Mode().IsRegular() {
		return "", domain.Errorf(domain.AuthRequired, "secret file %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", domain.Errorf(domain.AuthRequired, "secret file %s: %w", path, cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	switch {
	case err != nil:
		return "", domain.Errorf(domain.AuthRequired, "secret file %s: %w", path, cause(err))
	case len(data) > maxSecretFile:
		return "", domain.Errorf(domain.AuthRequired, "secret file %s is longer than %d bytes", path, maxSecretFile)
	}
	v := trimLineEnd(string(data))
	if v == "" {
		return "", domain.Errorf(domain.AuthRequired, "secret file %s is empty", path)
	}
	return v, nil
}

func trimLineEnd(s string) string {
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}

// String returns the mask.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return mask
}

// GoString returns the mask, for %#v.
func (s Secret) GoString() string { return "config.Secret(" + s.String() + ")" }

// Format writes the mask whatever the verb.
func (s Secret) Format(f fmt.State, verb rune) {
	out := s.String()
	if verb == 'v' && f.Flag('#') {
		out = s.GoString()
	}
	_, _ = io.WriteString(f, out)
}

// MarshalText returns the mask; it covers encoders of text formats and map
// keys.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns the mask as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue returns the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
