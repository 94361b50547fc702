package keyring

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/berth-dev/berth/test/secretservice"
)

// TestKeyring_SecretService talks to a key store over a session bus.
func TestKeyring_SecretService(t *testing.T) {
	s := secretservice.Start(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", s.Bus)
	k := New(Config{Bus: s.Bus})
	if _, err := k.Get("work"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before anything is stored: %v", err)
	}
	if err := k.Delete("work"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleting nothing: %v", err)
	}
	for _, value := range []string{"sk-1", "sk-2 with \"signs\" and ünïcode"} {
		if err := k.Set("work", value); err != nil {
			t.Fatal(err)
		}
		if got, err := k.Get("work"); got != value || err != nil {
			t.Errorf("Get = %q, %v, want %q", got, err, value)
		}
	}
	if err := k.Set("home", "sk-3"); err != nil {
		t.Fatal(err)
	}
	if err := k.Delete("work"); err != nil {
		t.Error(err)
	}
	if all := s.Secrets(); len(all) != 1 || all["home"] != "sk-3" {
		t.Errorf("the key store has %q", all)
	}
}
