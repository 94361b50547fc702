package metrics

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/operations.md")

const (
	head = "<!-- metrics: this table is made from the code, go test ./adapters/metrics -update writes it -->\n"
	foot = "<!-- end of metrics -->\n"
)

// TestPage keeps the table of docs/operations.md what a scrape shows.
func TestPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range New(Config{}).Families() {
		labels := "–"
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.Name, f.Kind, labels, strings.ReplaceAll(f.Help, "|", "\\|"))
	}
	table.WriteString("\n")
	path := filepath.Join("..", "..", "docs", "operations.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), head)
	now, after, closed := strings.Cut(rest, foot)
	if !ok || !closed {
		t.Fatal("docs/operations.md has no place for the table")
	}
	if now == table.String() {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+head+table.String()+foot+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("docs/operations.md is not what a scrape shows; run: go test ./adapters/metrics -run TestPage -update")
}

// Names follow the conventions of Prometheus, so that people find them.
func TestFamilies_Names(t *testing.T) {
	name := regexp.MustCompile(`^(berth|go|process)_[a-z0-9_]+$`)
	seen := map[string]bool{}
	for _, f := range New(Config{}).Families() {
		total := strings.HasSuffix(f.Name, "_total")
		switch {
		case !name.MatchString(f.Name) || seen[f.Name]:
			t.Errorf("%s is no name, or the second of its kind", f.Name)
		case f.Kind == Counter != total:
			t.Errorf("%s is a %s", f.Name, f.Kind)
		case f.Kind == Histogram && !strings.HasSuffix(f.Name, "_seconds"):
			t.Errorf("%s has no unit", f.Name)
		case f.Help == "" || strings.HasSuffix(f.Help, "."):
			t.Errorf("the help of %s is %q", f.Name, f.Help)
		}
		for i := 1; i < len(f.Buckets); i++ {
			if f.Buckets[i] <= f.Buckets[i-1] {
				t.Errorf("the bounds of %s do not grow", f.Name)
			}
		}
		seen[f.Name] = true
	}
}
