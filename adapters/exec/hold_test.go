//go:build unix

package exec

import (
	"os"
	"strings"
	"testing"
)

// TestNoHelperOfHelpers: a program that forgot to call Supervise, started as
// a helper, starts no helper of its own; otherwise it would never end.
func TestNoHelperOfHelpers(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{superviseName, "0", "/bin/sh", "sh"}
	r := newRig(t)
	r.open()
	if res := r.shell("touch ran"); !res.Failed || !strings.Contains(res.Text, "Nothing was run") {
		t.Errorf("%q", res.Text)
	}
	if _, err := os.Stat(r.at("ws/ran")); err == nil {
		t.Error("it ran")
	}
}
