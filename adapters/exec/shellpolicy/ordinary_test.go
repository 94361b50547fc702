package shellpolicy

import (
	"os"
	"strings"
	"testing"
)

// What people let agents look at all day asks nothing: at most one in a
// hundred of the lines of testdata/ordinary-reads.txt.
func TestOrdinaryReads_AskNothing(t *testing.T) {
	raw, err := os.ReadFile("testdata/ordinary-reads.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	asked, lines := 0, strings.Split(strings.TrimSpace(string(raw)), "\n")
	for _, line := range lines {
		if a := r.analyze(t, r.fill(line)); classOf(a) != "R0" {
			asked++
			t.Logf("%s %q: %s%s", classOf(a), line, a.Forbidden, a.Reason)
		}
	}
	t.Logf("%d of %d lines ask", asked, len(lines))
	if len(lines) < 150 || asked*100 > len(lines) {
		t.Errorf("%d of %d lines ask", asked, len(lines))
	}
}
