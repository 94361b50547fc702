package traces

import (
	"encoding/hex"
	"strings"
)

// parseParent reads a traceparent of W3C trace context. What is not exactly
// one is nobody's.
func parseParent(s string) (trace [16]byte, parent [8]byte, sampled, ok bool) {
	const size = 55 // of version 00: 2 + 32 + 16 + 2 digits and three hyphens
	if len(s) < size || s[2] != '-' || s[35] != '-' || s[52] != '-' || strings.ToLower(s) != s {
		return
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], s[:2]}, {trace[:], s[3:35]}, {parent[:], s[36:52]}, {flags[:], s[53:55]}} {
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil {
			return [16]byte{}, [8]byte{}, false, false
		}
	}
	longer := len(s) > size
	if version[0] == 0xff || version[0] == 0 && longer || longer && s[size] != '-' || trace == [16]byte{} || parent == [8]byte{} {
		return [16]byte{}, [8]byte{}, false, false
	}
	return trace, parent, flags[0]&1 == 1, true
}

// maxState is the longest tracestate that is passed on.
const maxState = 512

// cleanState is a tracestate fit to be passed on, or none.
func cleanState(s string) string {
	if len(s) > maxState || strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return ""
	}
	return s
}
