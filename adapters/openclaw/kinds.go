package openclaw

import (
	"strings"
	"unicode"

	"github.com/berth-dev/berth/core/domain"
)

// kinds are the words in tools' names that tell what they do.
func kinds() []struct {
	kind  domain.ToolKind
	words string
} {
	return []struct {
		kind  domain.ToolKind
		words string
	}{
		{domain.KindEdit, " write edit patch apply_patch create insert replace "},
		{domain.KindDelete, " delete remove rm unlink "},
		{domain.KindMove, " move rename mv "},
		{domain.KindFetch, " fetch http url browser browse download web "},
		{domain.KindSearch, " search find grep glob list ls tree "},
		{domain.KindExecute, " exec run bash shell sh process spawn command terminal execution "},
		{domain.KindRead, " read view cat open get show "},
		{domain.KindThink, " think plan reflect "},
	}
}

// kindOf tells what a tool does by whole words of its name.
func kindOf(name string) domain.ToolKind {
	if strings.Contains(name, "search") { // web_search searches
		return domain.KindSearch
	}
	for _, w := range wordsOf(name) {
		for _, k := range kinds() {
			if strings.Contains(k.words, " "+w+" ") {
				return k.kind
			}
		}
	}
	return domain.KindOther
}

// wordsOf are the words of a name in snake_case, kebab-case or camelCase.
func wordsOf(name string) []string {
	var out strings.Builder
	low := false
	for _, r := range name {
		if unicode.IsUpper(r) && low {
			out.WriteByte(' ')
		}
		low = unicode.IsLower(r)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out.WriteRune(unicode.ToLower(r))
		} else {
			out.WriteByte(' ')
		}
	}
	return strings.Fields(out.String())
}
