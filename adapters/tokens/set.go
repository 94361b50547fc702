package tokens

import (
	"crypto/subtle"
	"encoding/hex"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Set is the tokens that count at the moment. Its methods may be used from any
// goroutine.
type Set struct {
	file  *File
	extra []Token

	mu    sync.Mutex
	seen  stamp // the file as it was read last
	list  []Token
	used  map[string]time.Time // by hash, to the hour
	dirty bool                 // used is newer than what is written
}

// stamp tells one state of a file from another.
type stamp struct {
	mod  time.Time
	size int64
	info fs.FileInfo // for its identity
}

func (a stamp) same(b stamp) bool {
	if a.info == nil || b.info == nil {
		return a.info == nil && b.info == nil
	}
	return a.mod.Equal(b.mod) && a.size == b.size && os.SameFile(a.info, b.info)
}

// NewSet reads the file. The extra tokens count besides and never change.
func NewSet(file *File, extra ...Token) (*Set, error) {
	s := &Set{file: file, extra: extra, used: file.readUsed()}
	_, err := s.Refresh()
	return s, err
}

// Refresh reads the file again if it changed and reports whether it had.
// While it cannot be read, the tokens stay what they were.
func (s *Set) Refresh() (changed bool, err error) {
	now := stamp{}
	if info, err := os.Stat(s.file.path); err == nil {
		now = stamp{info.ModTime(), info.Size(), info}
	}
	s.mu.Lock()
	same := s.list != nil && s.seen.same(now)
	s.mu.Unlock()
	if same {
		return false, nil
	}
	list, err := s.file.read()
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = now
	s.list = append(append([]Token{}, s.extra...), list...)
	return true, nil
}

// Lookup finds a token. It compares digests, all of them and each in constant
// time. local says that the request came from this machine.
func (s *Set) Lookup(token string, local bool) (Token, bool) {
	sum := Hash(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := -1
	for i := range s.list {
		if subtle.ConstantTimeCompare(sum[:], s.list[i].Hash[:]) == 1 {
			found = i
		}
	}
	if found < 0 || token == "" || s.list[found].Local && !local {
		return Token{}, false
	}
	t := s.list[found]
	if hour, key := s.file.now().UTC().Truncate(time.Hour), hex.EncodeToString(sum[:]); !s.used[key].Equal(hour) && !t.Local {
		s.used[key], s.dirty = hour, true
	}
	return t, true
}

// Holds reports whether a token of that name and hash still counts.
func (s *Set) Holds(t Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		if s.list[i].Name == t.Name && s.list[i].Hash == t.Hash {
			return true
		}
	}
	return false
}

// List returns the tokens that count.
func (s *Set) List() []Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Token{}, s.list...)
}

// Save writes down when tokens were used, if that is not written yet.
func (s *Set) Save() error {
	s.mu.Lock()
	if !s.dirty {
		s.mu.Unlock()
		return nil
	}
	s.dirty = false
	out := map[string]time.Time{}
	for _, t := range s.list { // those that were revoked are forgotten
		key := hex.EncodeToString(t.Hash[:])
		if at, ok := s.used[key]; ok {
			out[key] = at
		}
	}
	s.mu.Unlock()
	return writeJSON(s.file.usedPath(), out)
}
