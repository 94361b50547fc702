package shellpolicy

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
)

const (
	// maxSubmodules is how many repositories are looked at for one command.
	maxSubmodules = 256
	// maxIndex is the longest index that is read, in bytes: that of about half
	// a million files.
	maxIndex = 64 << 20
	// gitlink is the mode of a submodule in an index.
	gitlink = 0o160000
)

// submodules is repository for the submodules in an index. Git looks into each
// of them for changes, with the settings of the submodule, whether or not
// .gitmodules knows it.
func (w *walker) submodules(dir, index string, sha256 bool, seen map[string]bool) string {
	paths, ok := gitlinks(index, sha256)
	if !ok {
		return "the index of the repository is of a form that is not known"
	}
	for _, p := range paths {
		if why := w.repository(dir+"/"+p, seen); why != "" {
			return why
		}
	}
	return ""
}

// gitlinks returns the paths of the submodules in an index; ok is false when
// it cannot be read. There need not be an index.
func gitlinks(name string, sha256 bool) (paths []string, ok bool) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, os.IsNotExist(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, false
	}
	f, err := os.Open(name) //nolint:gosec // the path rules said that it lies in a root
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // read only
	raw, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if err != nil || len(raw) > maxIndex {
		return nil, false
	}
	mark := binary.BigEndian.AppendUint32(nil, gitlink)
	if !bytes.Contains(raw, mark) && !bytes.Contains(raw, []byte("link")) {
		return nil, true // most have none
	}
	return parseIndex(raw, sha256)
}

// parseIndex reads an index of version 2, 3 or 4. One that is split has part
// of its entries elsewhere, and is not read.
func parseIndex(raw []byte, sha256 bool) (paths []string, ok bool) {
	hash := 20
	if sha256 {
		hash = 32
	}
	if len(raw) < 12+hash || string(raw[:4]) != "DIRC" {
		return nil, false
	}
	version, n := binary.BigEndian.Uint32(raw[4:]), binary.BigEndian.Uint32(raw[8:])
	if version < 2 || version > 4 {
		return nil, false
	}
	rest, end := raw[12:], len(raw)-hash
	var last []byte
	for range n {
		head := 40 + hash + 2
		if len(rest) < head+1 {
			return nil, false
		}
		mode := binary.BigEndian.Uint32(rest[24:])
		if version > 2 && rest[40+hash]&0x40 != 0 {
			head += 2
		}
		name, size, ok := indexName(rest, head, version, last)
		if !ok {
			return nil, false
		}
		if mode == gitlink {
			paths = append(paths, string(name))
		}
		last, rest = name, rest[size:]
	}
	for at := len(raw) - len(rest); at+8 <= end; {
		if string(raw[at:at+4]) == "link" {
			return nil, false
		}
		size := int64(binary.BigEndian.Uint32(raw[at+4:]))
		if size > int64(end-at-8) {
			return nil, false
		}
		at += 8 + int(size)
	}
	return paths, true
}

// indexName reads the path of the entry at the start of raw, whose fields take
// head bytes, and returns how long the entry is.
func indexName(raw []byte, head int, version uint32, last []byte) (name []byte, size int, ok bool) {
	var kept []byte
	if version == 4 { // what it shares with the path before is left out
		drop := 0
		for first := true; ; first = false {
			if head >= len(raw) || drop > maxIndex {
				return nil, 0, false
			}
			b := raw[head]
			head++
			if !first {
				drop++
			}
			drop = drop<<7 | int(b&0x7f)
			if b&0x80 == 0 {
				break
			}
		}
		if drop > len(last) {
			return nil, 0, false
		}
		kept = last[:len(last)-drop]
	}
	if head > len(raw) {
		return nil, 0, false
	}
	n := bytes.IndexByte(raw[head:], 0)
	if n < 0 {
		return nil, 0, false
	}
	name = append(bytes.Clone(kept), raw[head:head+n]...)
	size = head + n + 1
	if version < 4 {
		size = (head + n + 8) &^ 7
	}
	return name, size, size <= len(raw)
}
