package acceptance

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestDemo: the story is played to its end, commands are part of it where the
// session runs them, and nothing is left behind.
func TestDemo(t *testing.T) {
	home, temp := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(t.Context(), binary, "demo")
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+temp, "TMP="+temp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	story := string(out)
	for _, want := range []string{
		"spawned and initialized",
		"Try one of these",
		"The harbour opens at 7.",
		"1 match in 1 ",
		"The plan is carried out.",
		"on disk: The harbour opens at 6.",
		"stop reason: cancelled",
		"the process is gone",
		"updates replayed",
		"That was berth acp",
	} {
		if !strings.Contains(story, want) {
			t.Errorf("%q is missing", want)
		}
	}
	// What confines commands is said exactly where they are run.
	if confined := regexp.MustCompile(`(?m)^· commands run `).MatchString(story); confined {
		for _, want := range []string{
			"4 notes.md", "harbour open at 8", "the demo answers: Allow once\n  harbour open at 6\n", "on disk, log.txt: closed",
		} {
			if !strings.Contains(story, want) {
				t.Errorf("%q is missing", want)
			}
		}
	}
	for _, dir := range []string{home, temp} {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind in %s: %v, %v", dir, left, err)
		}
	}
	if t.Failed() {
		t.Log(story)
	}
}
