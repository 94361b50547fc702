package gemini

import "github.com/berth-dev/berth/adapters/llm"

// toolName is the name of a called tool as the wire takes it: as on all wires,
// and not beginning with a digit or "-".
func toolName(s string) string {
	s = llm.ToolName(s)
	if c := s[0]; c == '-' || c >= '0' && c <= '9' {
		return llm.ToolName("_" + s)
	}
	return s
}
