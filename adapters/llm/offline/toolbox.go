package offline

import (
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

// toolbox is the tools of a request, by name.
type toolbox map[string]domain.ToolSpec

func newToolbox(specs []domain.ToolSpec) toolbox {
	box := make(toolbox, len(specs))
	for _, s := range specs {
		box[s.Name] = s
	}
	return box
}

// role is a value for a call, with the names its argument may have. The model
// takes the first the tool's schema knows, so that it fits tools that were
// not written for it.
type role struct {
	names names
	value any
}

// names are what an argument may be called, the likeliest first.
type names string

// The arguments of the tools it uses.
const (
	paths     names = "path file_path file directory dir"
	contents  names = "content text contents"
	edits     names = "edits"
	patterns  names = "pattern query regex text"
	globs     names = "glob include"
	commands  names = "command cmd"
	times     names = "timeout_secs timeout"
	asides    names = "background run_in_background"
	networks  names = "network"
	jobs      names = "job id job_id"
	questions names = "question prompt message"
	choices   names = "options choices"
	messages  names = "message summary reason text question"
	froms     names = "source from source_path old_path path"
	tos       names = "destination to destination_path new_path"
	addresses names = "url uri"
	offsets   names = "offset line start_line"
	limits    names = "limit lines count"
	entries   names = "entries plan"
)

// call makes a call of a tool. A value no argument fits is left out.
func (t toolbox) call(tool string, values ...role) *domain.ModelCall {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	// A schema that cannot be read is taken for one that knows the likeliest
	// names.
	known := json.Unmarshal(t[tool].Schema, &schema) == nil && len(schema.Properties) > 0
	args := make(map[string]any, len(values))
	for _, v := range values {
		all := fields(string(v.names))
		at := 0
		if known {
			at = slices.IndexFunc(all, func(n string) bool {
				_, taken := args[n]
				return schema.Properties[n] != nil && !taken
			})
		}
		if at >= 0 {
			args[all[at]] = v.value
		}
	}
	data, err := json.Marshal(args)
	if err != nil {
		data = []byte("{}") // texts, numbers and lists of them always marshal
	}
	return &domain.ModelCall{Name: tool, Args: data}
}

// takes reports whether a tool has an argument of one of these names.
func (t toolbox) takes(tool string, n names) bool {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t[tool].Schema, &schema) != nil {
		return false
	}
	return slices.ContainsFunc(fields(string(n)), func(name string) bool { return schema.Properties[name] != nil })
}
