package gemini

import (
	"fmt"
	"hash/fnv"

	"github.com/berth-dev/berth/core/domain"
)

// maxName is the longest name a function may have, in bytes.
const maxName = 64

// wireName returns the name of a tool as the wire allows it: a letter or "_",
// then letters, digits and "_.:-". A name that is legal stays; of any other
// the strange characters are replaced and a sum of the name is added, so that
// it is the same in every request and no other tool's.
func wireName(name string) string {
	if legal(name) {
		return name
	}
	clean := make([]byte, 0, maxName)
	for i := range len(name) {
		c := name[i]
		if len(clean) == 0 && !head(c) {
			clean = append(clean, '_')
			if !tail(c) {
				continue
			}
		}
		if !tail(c) {
			c = '_'
		}
		clean = append(clean, c)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	sum := fmt.Sprintf("_%08x", h.Sum32())
	if len(clean) == 0 {
		clean = append(clean, '_')
	}
	return string(clean[:min(len(clean), maxName-len(sum))]) + sum
}

func legal(name string) bool {
	if name == "" || len(name) > maxName || !head(name[0]) {
		return false
	}
	for i := range len(name) {
		if !tail(name[i]) {
			return false
		}
	}
	return true
}

func head(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func tail(c byte) bool { return head(c) || c >= '0' && c <= '9' || c == '.' || c == ':' || c == '-' }

// renamed returns the tools whose names the wire does not allow, by the names
// they are sent under; nil when there are none.
func renamed(tools []domain.ToolSpec) map[string]string {
	var out map[string]string
	for _, t := range tools {
		if w := wireName(t.Name); w != t.Name {
			if out == nil {
				out = make(map[string]string)
			}
			out[w] = t.Name
		}
	}
	return out
}
