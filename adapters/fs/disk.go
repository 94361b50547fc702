package fs

import (
	"slices"
	"strings"
	"sync"

	"github.com/berth-dev/berth/core/domain"
)

// Config is what the workspace needs to know about the host. All paths are
// absolute.
type Config struct {
	ConfigDir  string // forbidden to tools; as a cwd it means the agent workspace
	DataDir    string // forbidden to tools, save the session's own agent workspace
	ProcessDir string // base of a relative cwd in a lenient dialect; no other use
	Home       string // what ~ stands for; "" when there is none

	// PolicyFor returns the path rules of an agent's risk profile, as of now.
	// Nil means the default profile for everyone.
	PolicyFor func(agent string) Policy
	// MaxPromptBlobs bounds the blobs of one prompt together, in bytes; 0
	// means domain.DefaultPromptBlobs.
	MaxPromptBlobs int64
}

// Policy is the part of a risk profile (CONTRACT section 8) that concerns
// paths.
type Policy struct {
	// Level full lets paths outside the roots be used; "" is supervised.
	Level domain.Level
	// AllowedRoots are more roots for the tools: absolute, or below "~".
	AllowedRoots []string
	// Forbidden adds to the forbidden paths: absolute, or below "~". "!path"
	// removes a default one, never the configuration or data directory.
	Forbidden []string
	// ReadRoots are directories that the tools may read and never change, such
	// as those of skills: absolute, or below "~". One that lies in a root is
	// that root's.
	ReadRoots []string
}

// Validate reports the first entry that is not absolute and not below "~".
// Such an entry would never match anything.
func (p Policy) Validate() error {
	for _, list := range [][]string{p.AllowedRoots, p.Forbidden} {
		for _, entry := range list {
			if homePath(strings.TrimPrefix(entry, "!"), "/") == "" {
				return domain.Errorf(domain.InvalidArgument, "%q is not an absolute path; start it with / or ~/", entry)
			}
		}
	}
	return nil
}

func (p Policy) equal(o Policy) bool {
	return p.Level == o.Level && slices.Equal(p.AllowedRoots, o.AllowedRoots) &&
		slices.Equal(p.Forbidden, o.Forbidden) && slices.Equal(p.ReadRoots, o.ReadRoots)
}

// key tells policies apart as far as a guard is concerned.
func (p Policy) key(workspace string) string {
	return workspace + "\x00" + strings.Join(p.Forbidden, "\x00")
}

// Disk is the file system as sessions may see it. Roots, Source and Blobs
// share one, so that they agree about every rule and share the descriptors of
// directories that are open for several sessions. It is safe for concurrent
// use and needs no closing: it holds nothing but what open toolsets hold.
type Disk struct {
	conf Config

	mu      sync.Mutex
	handles map[handleKey]*handle
	guards  map[string]*guard
	open    map[domain.SessionID]*workspace // those with an open toolset
}

// New makes a Disk.
func New(conf Config) *Disk {
	if conf.MaxPromptBlobs == 0 {
		conf.MaxPromptBlobs = domain.DefaultPromptBlobs
	}
	return &Disk{
		conf:    conf,
		handles: map[handleKey]*handle{},
		guards:  map[string]*guard{},
		open:    map[domain.SessionID]*workspace{},
	}
}

func (d *Disk) policy(agent string) Policy {
	if d.conf.PolicyFor == nil {
		return Policy{Level: domain.LevelSupervised}
	}
	return d.conf.PolicyFor(agent)
}

// maxGuards bounds how many guards are kept; more only come from changed
// configurations.
const maxGuards = 256

// guardFor returns the guard of a policy for agents with that workspace.
func (d *Disk) guardFor(p Policy, workspace string) *guard {
	key := p.key(workspace)
	d.mu.Lock()
	g := d.guards[key]
	d.mu.Unlock()
	if g != nil {
		return g
	}
	g = newGuard(d.conf, p, workspace)
	d.mu.Lock()
	defer d.mu.Unlock()
	if have := d.guards[key]; have != nil {
		return have
	}
	if len(d.guards) >= maxGuards {
		clear(d.guards)
	}
	d.guards[key] = g
	return g
}

// handleKey is one directory under one name. A directory that was put in the
// place of another has the same name and is a different one.
type handleKey struct {
	path string
	id   fileID
}

// handle is an open directory, shared.
type handle struct {
	key  handleKey
	dir  *dir
	refs int // guarded by Disk.mu
}

// acquire opens the directory at a canonical path, or shares it if it is
// open already.
func (d *Disk) acquire(path string) (*handle, error) {
	fresh, err := openPath(path)
	if err != nil {
		return nil, err
	}
	i, err := fresh.stat()
	if err != nil {
		_ = fresh.close()
		return nil, err
	}
	key := handleKey{path, i.id}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.handles[key]; h != nil {
		_ = fresh.close()
		h.refs++
		return h, nil
	}
	h := &handle{key: key, dir: fresh, refs: 1}
	d.handles[key] = h
	return h, nil
}

// release gives up one share of a handle.
func (d *Disk) release(h *handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.refs--; h.refs > 0 {
		return
	}
	delete(d.handles, h.key)
	_ = h.dir.close()
}
