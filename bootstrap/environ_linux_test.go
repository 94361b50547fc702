package bootstrap

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestForgetVariables: what is blanked is gone from what the kernel shows, the
// rest of the block is untouched, and the program still has its own.
func TestForgetVariables(t *testing.T) {
	if os.Getenv("FORGET_CHILD") != "" {
		before, _ := os.ReadFile("/proc/self/environ")
		err := forgetVariables([]string{"FORGET_KEY", "FORGET_EMPTY", "FORGET_NONE", "FORGET_LAST"})
		after, _ := os.ReadFile("/proc/self/environ")
		want := strings.NewReplacer("FORGET_KEY=canary=1", "FORGET_KEY="+strings.Repeat("\x00", 8), "FORGET_LAST=canary2", "FORGET_LAST="+strings.Repeat("\x00", 7)).Replace(string(before))
		if err != nil || string(after) != want || string(before) == want {
			t.Errorf("%v: the block was\n%q\nand is\n%q\nwant\n%q", err, before, after, want)
		}
		if os.Getenv("FORGET_KEY") != "canary=1" || !slices.Contains(os.Environ(), "FORGET_LAST=canary2") {
			t.Error("the program lost its variables")
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestForgetVariables$", "-test.v")
	cmd.Env = []string{"FORGET_CHILD=1", "FORGET_KEY=canary=1", "NOT_FORGET_KEY=canary3", "FORGET_EMPTY=", "FORGET_KEYS=canary4", "FORGET_LAST=canary2"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestValuesOf(t *testing.T) {
	for name, tt := range map[string]struct {
		block string
		want  []span
	}{
		"nothing":                  {"", nil},
		"one":                      {"A=bc\x00", []span{{2, 2}}},
		"without its end":          {"A=bc", []span{{2, 2}}},
		"a value with a sign":      {"X=1\x00A=b=c\x00Y=2\x00", []span{{6, 3}}},
		"twice":                    {"A=b\x00A=c\x00", []span{{2, 1}, {6, 1}}},
		"blanked already":          {"A=\x00\x00\x00\x00B=1\x00", nil},
		"a name that begins alike": {"AA=b\x00", nil},
		"no variable":              {"A\x00", nil},
	} {
		if got := valuesOf([]byte(tt.block), []string{"A"}); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
