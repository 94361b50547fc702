package fs

import "github.com/berth-dev/berth/core/domain"

// specs are what the model is told about the tools. Names and schemas are
// stable: conversations and remembered rules outlive a release.
type specs struct{ read, write, edit, list, move, remove, deliver, glob, search domain.ToolSpec }

func newSpecs() specs {
	return specs{
		glob: globSpec(), search: searchSpec(),
		read: domain.ToolSpec{
			Name: "read_file", Kind: domain.KindRead, ReadOnly: true,
			Description: "Reads a text file. The first line of the result, in square brackets, says which lines follow, how many there are, " +
				"and how to get more; the text itself follows without line numbers, lines ended by \\n. " +
				"At most 2000 lines or 256 KiB come at once. Read a file before you change it. An image (PNG, JPEG, GIF, WebP) is shown to the user.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"File to read: absolute, or relative to the working directory"},` +
				`"offset":{"type":"integer","minimum":1,"description":"First line to return, counted from 1. Default 1"},` +
				`"limit":{"type":"integer","minimum":1,"description":"How many lines to return. Default and maximum 2000"}},` +
				`"required":["path"],"additionalProperties":false}`),
		},
		write: domain.ToolSpec{
			Name: "write_file", Kind: domain.KindEdit,
			Description: "Creates a text file, or replaces the whole content of one; missing directories are made. " +
				"To change part of a file use edit_file. The line endings and byte-order mark of an existing file are kept. " +
				"Fails when the file was changed by someone else since you read it.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"File to write: absolute, or relative to the working directory"},` +
				`"content":{"type":"string","description":"The complete new content"}},` +
				`"required":["path","content"],"additionalProperties":false}`),
		},
		edit: domain.ToolSpec{
			Name: "edit_file", Kind: domain.KindEdit,
			Description: "Replaces exact pieces of text in a file; everything else stays as it is, byte for byte. " +
				"Each old_text must occur exactly once, including whitespace and indentation, unless replace_all is set: " +
				"include enough lines around the change. Edits are applied in order, all or none. " +
				"Fails when the file was changed by someone else since you read it.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"File to change: absolute, or relative to the working directory"},` +
				`"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{` +
				`"old_text":{"type":"string","description":"The text to replace, exactly as it is in the file"},` +
				`"new_text":{"type":"string","description":"The text to put in its place"},` +
				`"replace_all":{"type":"boolean","description":"Replace every occurrence. Default false"}},` +
				`"required":["old_text","new_text"],"additionalProperties":false}}},` +
				`"required":["path","edits"],"additionalProperties":false}`),
		},
		move: domain.ToolSpec{
			Name: "move_file", Kind: domain.KindMove,
			Description: "Moves or renames a file, a directory or a symbolic link (the link itself, never what it points to). " +
				"destination is the whole new path, not the directory to move into; missing directories are made. " +
				"Fails when the destination exists, unless overwrite is set; a directory is never replaced.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"source":{"type":"string","description":"What to move: absolute, or relative to the working directory"},` +
				`"destination":{"type":"string","description":"Its new path, with the new name"},` +
				`"overwrite":{"type":"boolean","description":"Replace a file that has that name. Default false"}},` +
				`"required":["source","destination"],"additionalProperties":false}`),
		},
		remove: domain.ToolSpec{
			Name: "delete_file", Kind: domain.KindDelete,
			Description: "Deletes a file, a symbolic link (never what it points to) or an empty directory; with recursive, a directory and everything in it. " +
				"It cannot be undone.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"What to delete: absolute, or relative to the working directory"},` +
				`"recursive":{"type":"boolean","description":"Delete a directory that is not empty. Default false"}},` +
				`"required":["path"],"additionalProperties":false}`),
		},
		deliver: domain.ToolSpec{
			// What it writes is the session's own copy of what the client gets.
			Name: "deliver_file", Kind: domain.KindOther, ReadOnly: true,
			Description: "Hands a finished file (a report, an image, an archive; at most 10 MiB) to the user's client, whole. " +
				"The result's uri names what was delivered: to refer to it in your answer, cite exactly that uri.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"File to deliver: absolute, or relative to the working directory"},` +
				`"mimeType":{"type":"string","description":"Its MIME type. Default: told by the content"},` +
				`"title":{"type":"string","description":"What the user sees it called. Default: the file name"}},` +
				`"required":["path"],"additionalProperties":false}`),
		},
		list: domain.ToolSpec{
			Name: "list_directory", Kind: domain.KindRead, ReadOnly: true,
			Description: "Lists what is directly in a directory, directories first: names ending in / are directories, " +
				"-> shows where a symbolic link points, files have their size. Hidden files are included. At most 1000 entries are shown.",
			Schema: []byte(`{"type":"object","properties":{` +
				`"path":{"type":"string","description":"Directory to list: absolute, or relative to the working directory. Default: the working directory"}},` +
				`"additionalProperties":false}`),
		},
	}
}
