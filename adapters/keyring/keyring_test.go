package keyring

import (
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	system "github.com/zalando/go-keyring"
)

// somewhere is the address of a bus, for calls that never get there.
const somewhere = "unix:path=/nonexistent/bus"

func TestKeyring_Errors(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string
	}{
		"no entry":             {system.ErrNotFound, []string{`the keyring has no entry "work" of the service "berth"`}},
		"another system":       {system.ErrUnsupportedPlatform, []string{"there is no keyring on this system", "env:NAME or file:PATH", "berth login --file"}},
		"too long":             {system.ErrSetDataTooBig, []string{"of this length", "file:PATH"}},
		"nobody is on the bus": {errors.New("The name is not activatable"), []string{"cannot be used (The name is not activatable)", "env:NAME or file:PATH"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeyring(Config{Bus: somewhere}, store{
				get:    func(string, string) (string, error) { return "", tt.err },
				set:    func(string, string, string) error { return tt.err },
				remove: func(string, string) error { return tt.err },
			})
			_, get := k.Get("work")
			for what, err := range map[string]error{"Get": get, "Set": k.Set("work", "canary"), "Delete": k.Delete("work")} {
				for _, want := range tt.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v, want %q", what, err, want)
					}
				}
				if errors.Is(err, fs.ErrNotExist) != (tt.err == system.ErrNotFound) {
					t.Errorf("%s: %v is fs.ErrNotExist: %v", what, err, errors.Is(err, fs.ErrNotExist))
				}
			}
		})
	}
}

// TestKeyring_Hangs: a key store that does not answer costs the limit and one
// goroutine, however often it is asked, and is used again when it is back.
func TestKeyring_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls, back := 0, make(chan struct{})
		k := newKeyring(Config{Bus: somewhere}, store{get: func(string, string) (string, error) {
			mu.Lock()
			calls++
			mu.Unlock()
			<-back
			return "secret", nil
		}})
		for range 3 {
			began := time.Now()
			_, err := k.Get("work")
			if err == nil || !strings.Contains(err.Error(), "did not answer within 5s; unlock it, or use env:NAME or file:PATH") {
				t.Errorf("Get = %v", err)
			}
			if took := time.Since(began); took != DefaultWait {
				t.Errorf("it took %v, want the limit", took)
			}
		}
		mu.Lock()
		if calls != 1 {
			t.Errorf("%d calls hang", calls)
		}
		mu.Unlock()
		close(back)
		synctest.Wait()
		if v, err := k.Get("work"); v != "secret" || err != nil {
			t.Errorf("after it came back: %q, %v", v, err)
		}
	})
}

// TestKeyring_Panics: what the library does not expect of a key store ends the
// call and not the process.
func TestKeyring_Panics(t *testing.T) {
	k := newKeyring(Config{Bus: somewhere}, store{get: func(string, string) (string, error) { panic("of another type") }})
	for range 2 {
		if _, err := k.Get("work"); !errors.Is(err, errPanicked) {
			t.Errorf("Get = %v", err)
		}
	}
}

// TestKeyring_WithoutBus: where no bus is, nothing is started and nothing
// waits.
func TestKeyring_WithoutBus(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("the key store is part of the system here")
	}
	if reachable("") {
		t.Skip("this user has a session bus in its usual place")
	}
	k := newKeyring(Config{Bus: "autolaunch:"}, store{get: func(string, string) (string, error) {
		t.Error("the key store is asked")
		return "", nil
	}})
	if _, err := k.Get("work"); err == nil || !strings.Contains(err.Error(), "no keyring is running here; use env:NAME or file:PATH") {
		t.Errorf("Get = %v", err)
	}
}
