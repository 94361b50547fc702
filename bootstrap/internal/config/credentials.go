package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
	"github.com/berth-dev/berth/core/domain"
)

// Credentials are the keys that "berth login" keeps: a file of the data
// directory, for its owner alone, that names each provider with the server its
// key is for, and holds the key itself or the name of its entry in the
// keyring. So a keyring is only ever asked for a key that was put there.
//
// The file is read on each call: a key that another process stored or removed
// counts at once. A nil *Credentials holds none.
type Credentials struct {
	path    string // "" without a data directory
	keyring Keyring
	note    func(value string) // is told every key that is handed out
}

// entry is one key of the file.
type entry struct {
	server string // scheme and host the key may be sent to
	key    string // the key, or "keyring:NAME"
}

// inKeyring returns the name of the keyring's entry that holds the key.
func (e entry) inKeyring() (name string, ok bool) { return strings.CutPrefix(e.key, keyringRef) }

const keyringRef = "keyring:"

// maxKey bounds a key, in bytes.
const maxKey = 4096

// Path returns where the file is, or would be.
func (c *Credentials) Path() string { return c.path }

// server returns scheme and host of an address in one spelling, "" for what is
// no address of a server. A key is bound to it: whatever becomes of the
// provider's settings, another host is not sent the key.
func server(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// read returns the entries by provider, nil when there is no file. Errors are
// coded AuthRequired, say how to mend the file and quote nothing of it.
func (c *Credentials) read() (map[string]entry, error) {
	if c == nil || c.path == "" {
		return nil, nil
	}
	data, err := c.bytes()
	if err != nil || data == nil {
		return nil, err
	}
	root, err := tomltree.Parse(tomltree.TrimBOM(data))
	var se *tomltree.SyntaxError
	switch {
	case errors.As(err, &se):
		return nil, c.unusable(fmt.Sprintf("line %d is not TOML; mend it, or remove the file and log in again", se.Pos.Line))
	case err != nil:
		return nil, c.unusable("it is not TOML; remove the file and log in again")
	}
	all := make(map[string]entry, len(root.Items))
	for _, n := range root.Items {
		server, key := n.Member("server"), n.Member("api_key")
		if server == nil || key == nil || server.Kind != tomltree.String || key.Kind != tomltree.String {
			return nil, c.unusable(fmt.Sprintf("the entry in line %d is not of the form [provider] with server and api_key; mend it, or remove the file and log in again", n.KeyAt.Line))
		}
		all[n.Key] = entry{server: server.Text, key: key.Text}
	}
	return all, nil
}

// bytes returns what the file holds, nil when there is none.
func (c *Credentials) bytes() ([]byte, error) {
	info, err := os.Stat(c.path) // first: opening a pipe that nobody writes to would hang
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, c.unusable("it cannot be read: " + cause(err).Error())
	case !info.Mode().IsRegular():
		return nil, c.unusable("it is not a regular file")
	case othersMayRead(info):
		return nil, c.unusable("others can read or change it; run: chmod 600 " + c.path)
	case info.Size() > maxFile:
		return nil, c.unusable("it is longer than " + sizeText(maxFile))
	}
	data, err := os.ReadFile(c.path)
	if err != nil {
		return nil, c.unusable("it cannot be read: " + cause(err).Error())
	}
	return append(data, '\n'), nil // an empty file is a file
}

func (c *Credentials) unusable(why string) error {
	return domain.Errorf(domain.AuthRequired, "the stored keys in %s cannot be used: %s", c.path, why)
}

// of returns the provider's entry: the one of its name, else the one of its
// type. Only one for the provider's own server counts.
func of(all map[string]entry, p Provider) (name string, e entry, ok bool) {
	at := server(p.BaseURL)
	for _, name := range []string{p.Name, p.Type} {
		if e, ok := all[name]; ok && at != "" && e.server == at {
			return name, e, true
		}
	}
	return "", entry{}, false
}

// key returns the provider's stored key, "" when there is none.
func (c *Credentials) key(p Provider) (string, error) {
	all, err := c.read()
	if err != nil {
		return "", err
	}
	_, e, ok := of(all, p)
	if !ok {
		return "", nil
	}
	key := e.key
	if name, ok := e.inKeyring(); ok {
		if key, err = fromKeyring(c.keyring, name); err != nil {
			return "", err
		}
	}
	c.note(key)
	return key, nil
}

// Put stores a key for a provider: in the keyring where that works and file
// is not wanted, else in the file. It returns where, in words.
func (c *Credentials) Put(p Provider, key string, file bool) (where string, err error) {
	at := server(p.BaseURL)
	switch {
	case c == nil || c.path == "":
		return "", errors.New("there is no data directory for keys; set HOME, BERTH_DATA_DIR or --data-dir")
	case at == "":
		return "", fmt.Errorf("the provider %q takes no key: it has no address", p.Name)
	case !usable(key):
		return "", fmt.Errorf("this is no API key: keys are up to %d letters, digits and signs without spaces", maxKey)
	}
	all, err := c.read()
	if err != nil {
		return "", err
	}
	if all == nil {
		all = map[string]entry{}
	}
	before := all[p.Name]
	name := p.Name + "@" + strings.TrimPrefix(strings.TrimPrefix(at, "https://"), "http://")
	value, where := key, c.path
	if !file && c.keep(name, key) {
		value, where = keyringRef+name, "the system's keyring, as "+keyringRef+name
	}
	all[p.Name] = entry{server: at, key: value}
	if err := c.write(all); err != nil {
		if value != key && before.key != value {
			_ = c.keyring.Delete(name) // it has no entry in the file, so nobody would find it
		}
		return "", err
	}
	if old, ok := before.inKeyring(); ok && before.key != value {
		_ = c.keyring.Delete(old) // nothing names it any more
	}
	return where, nil
}

// keep stores a key in the keyring and reports whether it can be read there.
func (c *Credentials) keep(name, key string) bool {
	if c.keyring == nil || c.keyring.Set(name, key) != nil {
		return false
	}
	got, err := c.keyring.Get(name)
	return err == nil && got == key
}

// usable reports whether s could be a key: visible ASCII of a sensible length.
func usable(s string) bool {
	if s == "" || len(s) > maxKey || strings.HasPrefix(s, keyringRef) {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Remove removes the provider's stored key and reports whether there was one.
func (c *Credentials) Remove(p Provider) (bool, error) {
	all, err := c.read()
	if err != nil {
		return false, err
	}
	name, e, ok := of(all, p)
	if !ok {
		return false, nil
	}
	if in, ok := e.inKeyring(); ok && c.keyring != nil {
		if err := c.keyring.Delete(in); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("remove %s%s: %w", keyringRef, in, err)
		}
	}
	delete(all, name)
	return true, c.write(all)
}

// write replaces the file, or removes it when nothing is left to keep.
func (c *Credentials) write(all map[string]entry) error {
	if len(all) == 0 {
		if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: cannot be removed: %w", c.path, cause(err))
		}
		return nil
	}
	if err := prepareDataDir(filepath.Dir(c.path)); err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("# Keys of model providers, kept by \"berth login\" and \"berth logout\".\n# They are for you alone: do not copy this file.\n")
	for _, name := range sortedNames(all) {
		fmt.Fprintf(&b, "\n[%s]\nserver = %s\napi_key = %s\n", tomltree.JoinKeys([]string{name}), tomltree.Quote(all[name].server), tomltree.Quote(all[name].key))
	}
	return replaceFile(c.path, b.Bytes())
}
