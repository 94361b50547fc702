package fs

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
)

// stamp is the identity of a content. The zero value is that of no file.
type stamp [sha256.Size]byte

// hex is the stamp in lower-case hex.
func (s stamp) hex() string { return hex.EncodeToString(s[:]) }

func stampOf(content []byte) stamp { return sha256.Sum256(content) }

// maxSeen is how many files a session's memory of contents holds. Beyond it
// the ones seen longest ago are forgotten, and writing them is as free as
// writing a file that was never read.
const maxSeen = 4096

// seen is the content of each file as the session's model last knew it, by
// canonical path. A write is allowed only over that content. It is safe for
// concurrent use; the zero value is empty.
type seen struct {
	mu    sync.Mutex
	files map[string]stamp
	order []string // oldest first; each path once
}

// note remembers the content the model now knows.
func (s *seen) note(path string, content stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = make(map[string]stamp)
	}
	if _, known := s.files[path]; known {
		if i := slices.Index(s.order, path); i >= 0 {
			s.order = slices.Delete(s.order, i, i+1)
		}
	}
	s.files[path] = content
	if s.order = append(s.order, path); len(s.order) > maxSeen {
		delete(s.files, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
}

// outdated reports whether the model knows the file with another content.
func (s *seen) outdated(path string, content stamp) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.files[path]
	return ok && known != content
}

// forget drops what is known about a path that was deleted, and about
// everything below it.
func (s *seen) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = slices.DeleteFunc(s.order, func(known string) bool {
		_, in := below(path, known)
		if in {
			delete(s.files, known)
		}
		return in
	})
}

// moved carries what is known about a path, and about everything below it,
// over to its new name.
func (s *seen) moved(from, to string) {
	s.forget(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, known := range s.order {
		if now, in := renamed(known, from, to); in {
			s.files[now], s.order[i] = s.files[known], now
			delete(s.files, known)
		}
	}
}
