package offline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

func read(m []string, tools toolbox) action {
	path := fileName(m[1])
	first, _ := strconv.Atoi(m[2]) // digits alone, by the pattern
	last, _ := strconv.Atoi(m[3])
	values := []role{{paths, path}}
	say := "I will read " + code(path) + "."
	if first > 0 {
		values = append(values, role{offsets, first})
		say = fmt.Sprintf("I will read %s from line %d.", code(path), first)
		if last == 0 {
			last = first
		}
		values = append(values, role{limits, max(1, last-first+1)})
	}
	return action{say: say, call: tools.call("read_file", values...)}
}

func list(m []string, tools toolbox) action {
	dir := fileName(m[1])
	if dir == "" {
		dir = "."
	}
	return action{say: "I will look at what is in " + code(dir) + ".", call: tools.call("list_directory", role{paths, dir})}
}

func write(m []string, tools toolbox) action {
	path, text := fileName(m[1]), strings.TrimRight(bare(m[2]), "\n")+"\n"
	return action{
		say:  "I will write " + code(path) + ". You will see the change and be asked first, unless this session may write freely.",
		call: tools.call("write_file", role{paths, path}, role{contents, text}), report: firstLine,
	}
}

func create(m []string, tools toolbox) action {
	path := fileName(m[1])
	return action{
		say:  "I will create " + code(path) + ", without content. To give it some: " + code("write "+path+": some text") + ".",
		call: tools.call("write_file", role{paths, path}, role{contents, ""}), report: firstLine,
	}
}

func edit(m []string, tools toolbox) action {
	path := fileName(m[1])
	return action{
		say: "I will change " + code(path) + ". You will see the difference and be asked first, unless this session may write freely.",
		call: tools.call("edit_file", role{paths, path},
			role{edits, []map[string]any{{"old_text": bare(m[2]), "new_text": bare(m[3])}}}),
		report: firstLine,
	}
}

func editIn(m []string, tools toolbox) action { return edit([]string{"", m[3], m[1], m[2]}, tools) }

func move(m []string, tools toolbox) action {
	from, to := fileName(m[1]+m[3]), fileName(m[2]+m[4])
	return action{
		say:  "I will move " + code(from) + " to " + code(to) + ".",
		call: tools.call("move_file", role{froms, from}, role{tos, to}), report: firstLine,
	}
}

func remove(m []string, tools toolbox) action {
	path := fileName(m[1])
	return action{say: "I will delete " + code(path) + ".", call: tools.call("delete_file", role{paths, path}), report: firstLine}
}

func deliver(m []string, tools toolbox) action {
	path := fileName(m[1])
	return action{
		say: "I will hand you " + code(path) + ".", call: tools.call("deliver_file", role{paths, path}),
		report: func(o domain.ToolOutput) string {
			var told struct{ URI, Title string }
			if json.Unmarshal([]byte(o.Text), &told) != nil || told.URI == "" {
				return firstLine(o)
			}
			return fmt.Sprintf("Here is %s: %s", code(told.Title), told.URI)
		},
	}
}

// find looks for files by name; a pattern without a directory is looked for
// in every directory.
func find(m []string, tools toolbox) action {
	pattern, values := bare(m[1]), []role(nil)
	say := "I will look for files like " + code(pattern)
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	values = append(values, role{patterns, pattern})
	if m[2] != "" {
		dir := fileName(m[2])
		say += " in " + code(dir)
		values = append(values, role{paths, dir})
	}
	return action{say: say + ".", call: tools.call("glob", values...), report: found}
}

// search looks for a text in files. It is taken literally unless it stands
// between slashes; a place with wildcards is a pattern of file names.
func search(m []string, tools toolbox) action {
	text := bare(m[1])
	say, pattern := "I will search for "+code(text), regexp.QuoteMeta(text)
	if len(text) > 2 && strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") {
		pattern = text[1 : len(text)-1]
		say = "I will search for the regular expression " + code(pattern)
	}
	values := []role{{patterns, pattern}}
	if m[2] != "" {
		place, where := fileName(m[2]), paths
		if strings.ContainsAny(place, "*?[{") {
			where = globs
		}
		say += " in " + code(place)
		values = append(values, role{where, place})
	}
	return action{say: say + ".", call: tools.call("search", values...), report: found}
}
