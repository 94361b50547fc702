package architecture

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
)

// naming finds lines of the repository's text that hold one of the places.
func naming(fsys fs.FS, places []string) ([]violation, error) {
	var bad []violation
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "node_modules", "bin", "dist", "coverage", "out":
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || strings.HasSuffix(name, ".test") {
			return nil
		}
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(raw[:min(len(raw), 8192)], 0) >= 0 {
			return nil // not text
		}
		n := 0
		for line := range strings.Lines(string(raw)) {
			n++
			for _, place := range places {
				if strings.Contains(line, place) {
					bad = append(bad, violation{fmt.Sprintf("%s:%d", name, n), "names " + place + ", which means something on one machine only"})
				}
			}
		}
		return nil
	})
	return bad, err
}
