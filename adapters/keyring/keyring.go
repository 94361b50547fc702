// Package keyring keeps secrets in the key store of the operating system: the
// Secret Service of a Linux desktop, the keychain of macOS, the credential
// manager of Windows. Importing it and New ask nothing; each method does, and
// returns within a bounded time whatever the key store does.
//
// Entries belong to the service "berth". On Linux one is made by hand with
//
//	secret-tool store --label=berth service berth username NAME
package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	system "github.com/zalando/go-keyring"
)

// Service is what entries are filed under.
const Service = "berth"

// DefaultWait is how long a method waits for the key store.
const DefaultWait = 5 * time.Second

// Config is how the key store is asked.
type Config struct {
	// Wait bounds each method; 0 means DefaultWait. A key store that is locked
	// asks the person, which may take longer: then the method fails, and one
	// that is called later finds it open.
	Wait time.Duration
	// Bus is the address of the session bus where that is the way to the key
	// store ($DBUS_SESSION_BUS_ADDRESS); "" looks in its usual place.
	Bus string
}

// Keyring is the key store. It is safe for concurrent use.
type Keyring struct {
	wait time.Duration
	bus  string
	// turn lets one call at a time reach the key store, so that one that hangs
	// leaves one goroutine behind and not many.
	turn  chan struct{}
	store store
}

// store is what go-keyring offers.
type store struct {
	get    func(service, name string) (string, error)
	set    func(service, name, value string) error
	remove func(service, name string) error
}

// New returns the key store without asking it anything.
func New(c Config) *Keyring {
	return newKeyring(c, store{system.Get, system.Set, system.Delete})
}

func newKeyring(c Config, s store) *Keyring {
	if c.Wait <= 0 {
		c.Wait = DefaultWait
	}
	return &Keyring{wait: c.Wait, bus: c.Bus, turn: make(chan struct{}, 1), store: s}
}

// Get returns the secret stored under name; an error that is fs.ErrNotExist
// when there is none.
func (k *Keyring) Get(name string) (string, error) {
	return k.ask(name, func() (string, error) { return k.store.get(Service, name) })
}

// Set stores a secret, in the place of an older one.
func (k *Keyring) Set(name, value string) error {
	_, err := k.ask(name, func() (string, error) { return "", k.store.set(Service, name, value) })
	return err
}

// Delete removes a secret; an error that is fs.ErrNotExist when there is none.
func (k *Keyring) Delete(name string) error {
	_, err := k.ask(name, func() (string, error) { return "", k.store.remove(Service, name) })
	return err
}

// otherwise is what to do where there is no key store.
const otherwise = `use env:NAME or file:PATH, or "berth login --file" to keep the key in a file`

// errPanicked is what became of a call whose key store answered with what the
// library does not expect.
var errPanicked = errors.New("it gave an answer that cannot be understood")

// ask makes one call and gives it up after the limit. The call itself cannot
// be stopped: it ends when the key store answers or the process ends, and
// until then the next ones wait for their turn.
func (k *Keyring) ask(name string, call func() (string, error)) (string, error) {
	if !reachable(k.bus) {
		return "", errors.New("no keyring is running here; " + otherwise)
	}
	limit := time.NewTimer(k.wait)
	defer limit.Stop()
	select {
	case k.turn <- struct{}{}:
	case <-limit.C:
		return "", k.silent()
	}
	type answer struct {
		value string
		err   error
	}
	answered := make(chan answer, 1)
	go func() { // joined below, or left to a key store that hangs
		a := answer{err: errPanicked}
		defer func() {
			if recover() != nil {
				a = answer{err: errPanicked}
			}
			answered <- a
			<-k.turn
		}()
		a.value, a.err = call()
	}()
	select {
	case a := <-answered:
		return a.value, explain(name, a.err)
	case <-limit.C:
		return "", k.silent()
	}
}

func (k *Keyring) silent() error {
	return fmt.Errorf("the keyring did not answer within %s; unlock it, or %s", k.wait, otherwise)
}

// explain says what went wrong and what to do. The causes are words of the
// library and of the bus, never of the entry.
func explain(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, system.ErrNotFound):
		return missing{name}
	case errors.Is(err, system.ErrUnsupportedPlatform):
		return errors.New("there is no keyring on this system; " + otherwise)
	case errors.Is(err, system.ErrSetDataTooBig):
		return errors.New("the keyring takes no secret of this length; " + otherwise)
	}
	return fmt.Errorf("the keyring cannot be used (%w); %s", err, otherwise)
}

// missing is the error for an entry that is not there.
type missing struct{ name string }

// Error names the entry.
func (m missing) Error() string {
	return fmt.Sprintf("the keyring has no entry %q of the service %q", m.name, Service)
}

// Is reports whether target is fs.ErrNotExist.
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }
