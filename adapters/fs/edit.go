package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// maxEdits bounds the edits of one call.
const maxEdits = 1000

// editTool is edit_file.
type editTool struct{ w *workspace }

// edit is one replacement.
type edit struct {
	old, put string
	all      bool
}

// Spec describes edit_file.
func (t editTool) Spec() domain.ToolSpec { return t.w.specs.edit }

// Prepare finds the texts to replace and works out what the file will be.
func (t editTool) Prepare(ctx context.Context, call domain.ToolCall) (ports.Prepared, error) {
	a := parseArgs("edit_file", call.Args, "path (string)", "edits (array of {old_text, new_text, replace_all})")
	path := a.text(true, "", "path")
	edits := parseEdits(a)
	if err := a.done(); err != nil {
		return nil, err
	}
	return t.w.prepare(ctx, "edit_file", path, func(c content, show string) (made, error) {
		return edited(c, show, edits)
	})
}

// parseEdits takes the list, or a single edit written beside the path.
func parseEdits(a *arguments) []edit {
	raw, listed := a.take("edits")
	_, hasOld := a.members["old_text"]
	_, hasNew := a.members["new_text"]
	switch {
	case listed && (hasOld || hasNew):
		a.fail(`give either "edits" or one "old_text" with "new_text", not both`)
		return nil
	case !listed && (hasOld || hasNew):
		e := takeEdit(a)
		return []edit{e}
	case !listed:
		a.fail(`"edits" is missing`)
		return nil
	}
	// Some models write the list as a string that holds it.
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = []byte(inner)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		a.fail(`"edits" must be an array of objects, not %s`, kindOfJSON(raw))
		return nil
	}
	if len(items) == 0 || len(items) > maxEdits {
		a.fail(`"edits" holds %d edits; 1 to %d are possible`, len(items), maxEdits)
		return nil
	}
	edits := make([]edit, 0, len(items))
	for i, item := range items {
		one := parseArgs(fmt.Sprintf("edit_file: edits[%d]", i), item, "old_text (string)", "new_text (string)", "replace_all (boolean)")
		edits = append(edits, takeEdit(one))
		if err := one.done(); err != nil && a.err == nil {
			a.err = err
		}
	}
	return edits
}

func takeEdit(a *arguments) edit {
	e := edit{old: a.text(true, "", "old_text"), put: a.text(true, "", "new_text"), all: a.flag("replace_all")}
	switch {
	case a.err != nil:
	case e.old == "":
		a.fail("old_text is empty; to create a file or to replace all of it use write_file")
	case e.old == e.put:
		a.fail("old_text and new_text are the same; there is nothing to change")
	case strings.IndexByte(e.put, 0) >= 0:
		a.fail("new_text holds a NUL character; this tool writes text only")
	}
	return e
}

// edited applies edits one after the other, all or none.
func edited(c content, show string, edits []edit) (made, error) {
	if !c.exists {
		return made{}, domain.Errorf(domain.NotFound, "there is no such file; to create it use write_file")
	}
	if i := bytes.IndexByte(c.raw, 0); i >= 0 {
		return made{}, domain.Errorf(domain.Denied, "it is binary (a NUL byte at offset %d); this tool edits text only", i)
	}
	raw, count := c.raw, 0
	var places []string
	for i, e := range edits {
		d := newDoc(raw)
		next, at, err := d.apply(e)
		if err != nil && len(edits) > 1 {
			err = domain.Errorf(domain.CodeOf(err), "edits[%d]: %v (no edit of this call was applied)", i, err)
		}
		if err != nil {
			return made{}, err
		}
		raw, count = next, count+len(at)
		if len(raw) > maxWhole {
			return made{}, errLarge(int64(len(raw)))
		}
		if len(places) < 20 {
			places = append(places, strconv.Itoa(lineOf(d.text, at[0])))
		}
	}
	text := fmt.Sprintf("Edited %s: %s, at line %s.", show, plural(count, "replacement"), strings.Join(places, ", "))
	return made{raw, text}, nil
}

// apply makes one edit and returns the new bytes and the offsets in text
// where it applied.
func (d *doc) apply(e edit) ([]byte, []int, error) {
	old, at := d.find(strings.TrimPrefix(e.old, string(bom)))
	put := strings.ReplaceAll(strings.TrimPrefix(e.put, string(bom)), "\r\n", "\n")
	switch {
	case len(at) == 0:
		return nil, nil, d.notFound(e)
	case len(at) > 1 && !e.all:
		return nil, nil, d.ambiguous(at)
	}
	out := make([]byte, 0, len(d.raw)+len(at)*max(0, len(put)-len(old)))
	from := 0
	for _, start := range at {
		out, from = d.replace(out, from, start, start+len(old), put)
	}
	return append(out, d.raw[from:]...), at, nil
}

// find returns where a text occurs, as it is or with LF line ends.
func (d *doc) find(old string) (string, []int) {
	if old == "" {
		return old, nil
	}
	at := occurrences(d.text, old)
	if plain := strings.ReplaceAll(old, "\r\n", "\n"); len(at) == 0 && plain != old {
		return plain, occurrences(d.text, plain)
	}
	return old, at
}

// occurrences returns the offsets of a text, without overlaps.
func occurrences(text []byte, want string) []int {
	var at []int
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(want))
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + len(want)
	}
}
