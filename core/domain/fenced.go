package domain

import "strings"

// Fenced returns text as a block of code in a language, "" for none: in a
// fence longer than any in the text, so that the text cannot end it.
func Fenced(lang, text string) string {
	run, most := 0, 2
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	fence := strings.Repeat("`", most+1)
	return fence + lang + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}
