// Package secretservice is a stand-in for the key store of a Linux desktop: a
// session bus of its own, and on it the part of the Secret Service that a
// client needs to store, find, read and delete secrets. It keeps them in
// memory and never locks them.
package secretservice

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// Service is one running key store.
type Service struct {
	Bus string // its address, for DBUS_SESSION_BUS_ADDRESS

	conn  *dbus.Conn
	mu    sync.Mutex
	count int
	items map[dbus.ObjectPath]*item
}

// item is one stored secret.
type item struct {
	service    *Service
	path       dbus.ObjectPath
	attributes map[string]string
	value      []byte
}

// secret is how a secret travels.
type secret struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string
}

const (
	name       = "org.freedesktop.secrets"
	root       = dbus.ObjectPath("/org/freedesktop/secrets")
	login      = root + "/collection/login"
	session    = root + "/session/1"
	noPrompt   = dbus.ObjectPath("/")
	interfaces = "org.freedesktop.Secret."
)

// Start starts a key store that ends with the test. It skips the test where
// no session bus can be had.
func Start(t testing.TB) *Service {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("dbus-daemon is not installed, so there is no session bus for a key store")
	}
	s := &Service{items: map[dbus.ObjectPath]*item{}}
	s.daemon(t, program)
	if s.conn, err = dbus.Connect(s.Bus); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	for path, as := range map[dbus.ObjectPath]map[string]any{
		root:    {"Service": manager{s}, "": properties{}},
		login:   {"Collection": collection{s}},
		session: {"Session": ended{}},
	} {
		for kind, v := range as {
			if kind == "" {
				err = s.conn.Export(v, path, "org.freedesktop.DBus.Properties")
			} else {
				err = s.conn.Export(v, path, interfaces+kind)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if reply, err := s.conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatalf("the name %s: %v, %v", name, reply, err)
	}
	return s
}

// daemon starts the bus.
func (s *Service) daemon(t testing.TB, program string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bus") // t.TempDir is too long for the name of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, config := filepath.Join(dir, "bus"), filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(config, []byte(fmt.Sprintf(`<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`, socket)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config-file="+config, "--nofork", "--print-address=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the bus says no address: %v", err)
	}
	s.Bus = strings.TrimSpace(line)
}

// Put stores a secret as a client does.
func (s *Service) Put(service, user, value string) error {
	attributes := map[string]string{"username": user, "service": service}
	_, _, err := collection{s}.CreateItem(map[string]dbus.Variant{interfaces + "Item.Attributes": dbus.MakeVariant(attributes)}, secret{Value: []byte(value)}, true)
	if err != nil {
		return err
	}
	return nil
}

// Secrets returns the stored secrets by their user name.
func (s *Service) Secrets() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for _, i := range s.items {
		all[i.attributes["username"]] = string(i.value)
	}
	return all
}

func (s *Service) find(attributes map[string]string) []dbus.ObjectPath {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []dbus.ObjectPath{}
	for path, i := range s.items {
		if maps.Equal(i.attributes, attributes) {
			found = append(found, path)
		}
	}
	return found
}

// manager is org.freedesktop.Secret.Service.
type manager struct{ s *Service }

// OpenSession opens the one session there is.
func (manager) OpenSession(string, dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
	return dbus.MakeVariant(""), session, nil
}

// Unlock finds everything unlocked.
func (manager) Unlock(objects []dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	return objects, noPrompt, nil
}

// properties is org.freedesktop.DBus.Properties of the service.
type properties struct{}

// Get returns the collections.
func (properties) Get(_, _ string) (dbus.Variant, *dbus.Error) {
	return dbus.MakeVariant([]dbus.ObjectPath{login}), nil
}

// collection is org.freedesktop.Secret.Collection.
type collection struct{ s *Service }

// SearchItems finds items by all their attributes.
func (c collection) SearchItems(attributes map[string]string) ([]dbus.ObjectPath, *dbus.Error) {
	return c.s.find(attributes), nil
}

// CreateItem stores a secret, in the place of one with the same attributes.
func (c collection) CreateItem(props map[string]dbus.Variant, value secret, _ bool) (dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	attributes, _ := props[interfaces+"Item.Attributes"].Value().(map[string]string)
	for _, path := range c.s.find(attributes) {
		c.s.drop(path)
	}
	c.s.mu.Lock()
	c.s.count++
	i := &item{c.s, login + dbus.ObjectPath(fmt.Sprintf("/%d", c.s.count)), attributes, value.Value}
	c.s.items[i.path] = i
	c.s.mu.Unlock()
	if err := c.s.conn.Export(i, i.path, interfaces+"Item"); err != nil {
		return "", "", dbus.MakeFailedError(err)
	}
	return i.path, noPrompt, nil
}

func (s *Service) drop(path dbus.ObjectPath) {
	s.mu.Lock()
	delete(s.items, path)
	s.mu.Unlock()
	_ = s.conn.Export(nil, path, interfaces+"Item") // it was exported, so it can be taken back
}

// GetSecret is of org.freedesktop.Secret.Item.
func (i *item) GetSecret(in dbus.ObjectPath) (secret, *dbus.Error) {
	return secret{Session: in, Parameters: []byte{}, Value: i.value, ContentType: "text/plain"}, nil
}

// Delete is of org.freedesktop.Secret.Item.
func (i *item) Delete() (dbus.ObjectPath, *dbus.Error) {
	i.service.drop(i.path)
	return noPrompt, nil
}

// ended is org.freedesktop.Secret.Session.
type ended struct{}

// Close ends it.
func (ended) Close() *dbus.Error { return nil }
