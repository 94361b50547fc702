package providers

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/providers.md")

// The table stands between these lines of the page.
const (
	tableBegin = "<!-- outcomes: made by go test ./test/providers -update -->\n"
	tableEnd   = "<!-- end of outcomes -->\n"
)

// checkPage compares the table of the page with what was found, or writes it.
func checkPage(t *testing.T, right map[string]bool) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "providers.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin)
	old, after, closed := strings.Cut(rest, tableEnd)
	if !ok || !closed {
		t.Fatalf("docs/providers.md has no place for the table: it needs the lines\n%s%s", tableBegin, tableEnd)
	}
	found := table(right)
	if *update {
		if err := os.WriteFile(path, []byte(before+tableBegin+found+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != found {
		t.Errorf("the table of docs/providers.md is not what was found; run: go test ./test/providers -update")
	}
}

// table is what was found, in Markdown.
func table(right map[string]bool) string {
	var b strings.Builder
	b.WriteString("\n| what the provider does | what the client sees |")
	for _, d := range dialects() {
		b.WriteString(" " + d.Name + " |")
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(dialects())) + "\n")
	for _, o := range outcomes() {
		b.WriteString("| " + o.name + " | " + o.want + " |")
		for _, d := range dialects() {
			if right[d.Name+"/"+o.name] {
				b.WriteString(" yes |")
			} else {
				b.WriteString(" **no** |")
			}
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}
