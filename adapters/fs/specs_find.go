package fs

import "github.com/berth-dev/berth/core/domain"

func globSpec() domain.ToolSpec {
	return domain.ToolSpec{
		Name: "glob", Kind: domain.KindSearch, ReadOnly: true,
		Description: "Finds files by name. The pattern is matched with the path below the directory it begins at: * and ? match within a name, " +
			"** any number of directories, [abc] and [a-z] one character, {a,b} either; **/*.go is every Go file, *.go only those directly there. " +
			"Paths come sorted, relative to the working directory; symbolic links are shown and not followed. " +
			"Directories are found when the pattern ends in /. What .gitignore and .ignore files leave out, hidden names and .git are not looked at.",
		Schema: []byte(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"For example **/*.go or src/**/*_test.{ts,tsx}; may be absolute"},` +
			`"path":{"type":"string","description":"Directory to begin at: absolute, or relative to the working directory. Default: the working directory"},` +
			`"hidden":{"type":"boolean","description":"Look at names that begin with a dot too. Default false, unless the pattern names one"},` +
			`"ignored":{"type":"boolean","description":"Look at what ignore files leave out too. Default false"},` +
			`"limit":{"type":"integer","minimum":1,"description":"How many paths to show. Default 500, maximum 5000"}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}

func searchSpec() domain.ToolSpec {
	return domain.ToolSpec{
		Name: "search", Kind: domain.KindSearch, ReadOnly: true,
		Description: "Searches the text of files for a regular expression and shows the lines that match, as path:line: text. " +
			"The syntax is RE2: no look-around and no references to groups; ^ and $ are the ends of a line. " +
			"Paths come sorted, relative to the working directory. What .gitignore and .ignore files leave out, hidden names, .git, " +
			"binary files and files of more than 4 MiB are not searched, and symbolic links are not followed. " +
			"It reads the disk: unsaved changes in the user's editor are only seen when path is that file.",
		Schema: []byte(`{"type":"object","properties":{` +
			`"pattern":{"type":"string","description":"Regular expression, for example func \\w+Handler\\( ; lines end in \\n"},` +
			`"path":{"type":"string","description":"Directory or file to search: absolute, or relative to the working directory. Default: the working directory"},` +
			`"glob":{"type":"string","description":"Only files whose name (*.go, *.{ts,tsx}) or path below the directory (src/**/*.go) matches; with ! in front only the others"},` +
			`"case_insensitive":{"type":"boolean","description":"Default false"},` +
			`"literal":{"type":"boolean","description":"The pattern is plain text, not a regular expression. Default false"},` +
			`"multiline":{"type":"boolean","description":"A match may span lines; (?s) lets . match line breaks. Default false, unless the pattern holds a line break"},` +
			`"context":{"type":"integer","minimum":0,"description":"How many lines to show around each match. Default 0, maximum 20"},` +
			`"output":{"type":"string","enum":["content","files","count"],"description":"Matching lines (default), only the paths of files that match, or paths with the number of matches"},` +
			`"limit":{"type":"integer","minimum":1,"description":"How many matches to show, default 100, maximum 1000; or how many files, default 500, maximum 5000"},` +
			`"hidden":{"type":"boolean","description":"Search names that begin with a dot too. Default false"},` +
			`"ignored":{"type":"boolean","description":"Search what ignore files leave out too. Default false"}},` +
			`"required":["pattern"],"additionalProperties":false}`),
	}
}
