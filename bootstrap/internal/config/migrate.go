package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// step turns a file of one version into one of the next. It edits the text
// with tomltree.Set, so that comments survive.
type step func([]byte) ([]byte, error)

// steps returns the migrations in order: the first takes version 1 to 2.
// There are none yet; the number of steps is always Version-1.
func steps() []step { return nil }

// migration brings an old file up to date.
type migration struct {
	file  string
	from  int
	steps []step
	dry   bool // only the new text is wanted, the disk stays as it is
}

// run returns the file's text in the current version and writes it, after the
// old one was copied to "<file>.v<N>.bak". When the directory cannot be
// written the new text is used all the same, and the warning says so.
func (m migration) run(old []byte) (text []byte, warning string, err error) {
	text = tomltree.TrimBOM(old)
	for v := m.from; v <= len(m.steps); v++ {
		if text, err = m.steps[v-1](text); err != nil {
			return nil, "", fmt.Errorf("%s: migrate from version %d to %d: %w; nothing was changed", m.file, v, v+1, err)
		}
		if text, err = tomltree.Set(text, []string{"version"}, strconv.Itoa(v+1)); err != nil {
			return nil, "", fmt.Errorf("%s: migrate from version %d to %d: %w; nothing was changed", m.file, v, v+1, err)
		}
	}
	if m.dry {
		return text, "", nil
	}
	backup, err := m.backup(old)
	if err == nil {
		err = replaceFile(m.file, text)
	}
	if err != nil {
		return text, fmt.Sprintf("%s is of version %d and could not be migrated on disk (%v); running on its migrated content", m.file, m.from, err), nil
	}
	return text, fmt.Sprintf("%s was migrated from version %d to %d; the old file is %s", m.file, m.from, len(m.steps)+1, backup), nil
}

// backup keeps the old text under a name nobody uses, or one that already
// holds the same text.
func (m migration) backup(old []byte) (string, error) {
	for i := range 100 {
		name := fmt.Sprintf("%s.v%d.bak", m.file, m.from)
		if i > 0 {
			name = fmt.Sprintf("%s.%d", name, i)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, old) {
				return name, nil
			}
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(old)
		return name, errors.Join(err, f.Sync(), f.Close())
	}
	return "", fmt.Errorf("there are too many backups of %s", m.file)
}
