//go:build unix

package fs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/core/domain"
)

// swaps is how often, at least, a directory changes places with a link while
// an operation is tried.
var swaps = flag.Int64("swaps", 1000, "how often names change places while each file operation is tried")

// swapped is an operation that is tried while ws/dir changes places with a
// link to the outside. n numbers the tries.
type swapped struct {
	dir   string
	tries int
	set   func(r *rig)
	did   string // what an answer says when the operation took place
	try   func(r *rig, n int) string
}

func swappedOperations() map[string]swapped {
	return map[string]swapped{
		"read": {dir: "d", did: "INSIDE", tries: 2000, try: func(r *rig, _ int) string { return r.attempt("read_file", "path", "d/secret.txt") }},
		"read far below": {dir: "d", did: "INSIDE", tries: 2000, try: func(r *rig, _ int) string {
			return r.attempt("read_file", "path", "d/../d/./../d/secret.txt")
		}},
		"list": {dir: "d", did: "secret.txt", tries: 2000, try: func(r *rig, _ int) string { return r.attempt("list_directory", "path", "d") }},
		"write": {dir: "d", did: "Wrote", tries: 300, try: func(r *rig, n int) string {
			return r.attempt("write_file", "path", "d/secret.txt", "content", fmt.Sprint("OVERWRITTEN E", n))
		}},
		"create": {dir: "d", did: "Created", tries: 300, try: func(r *rig, n int) string {
			return r.attempt("write_file", "path", fmt.Sprintf("d/sub%d/new.txt", n), "content", "OVERWRITTEN")
		}},
		"edit": {dir: "d", did: "Edited", tries: 300, try: func(r *rig, n int) string {
			return r.attempt("edit_file", "path", "d/secret.txt", "old_text", "E", "new_text", fmt.Sprint("E", n%10), "replace_all", true)
		}},
		"move out of and into": {dir: "d", did: "Moved", tries: 300, try: func(r *rig, _ int) string {
			return r.attempt("move_file", "source", "d/secret.txt", "destination", "kept") +
				r.attempt("read_file", "path", "kept") +
				r.attempt("move_file", "source", "kept", "destination", "d/secret.txt")
		}},
		"move over": {dir: "d", did: "replacing", tries: 300, try: func(r *rig, n int) string {
			return r.attempt("write_file", "path", "kept", "content", fmt.Sprint("MOVED E", n)) +
				r.attempt("move_file", "source", "kept", "destination", "d/secret.txt", "overwrite", true)
		}},
		"move a directory": {
			dir: "d", did: "Moved", tries: 300, set: func(r *rig) { r.write("out/sub/keep", "SECRET"); r.write("ws/d/sub/keep", "INSIDE") },
			try: func(r *rig, _ int) string {
				return r.attempt("move_file", "source", "d/sub", "destination", "kept") +
					r.attempt("read_file", "path", "kept/keep") +
					r.attempt("move_file", "source", "kept", "destination", "d/sub")
			},
		},
		"delete": {dir: "d", did: "Deleted", tries: 300, try: func(r *rig, _ int) string {
			return r.attempt("delete_file", "path", "d/secret.txt") +
				r.attempt("write_file", "path", "d/secret.txt", "content", "INSIDE E")
		}},
		"delete a directory": {
			dir: "d", did: "Deleted", tries: 300, set: func(r *rig) { r.write("out/sub/keep", "SECRET") },
			try: func(r *rig, _ int) string {
				return r.attempt("delete_file", "path", "d/sub", "recursive", true) +
					r.attempt("write_file", "path", "d/sub/keep", "content", "INSIDE E")
			},
		},
		"deliver": {dir: "d", tries: 300, did: `"delivered":true`, set: func(r *rig) {
			r.policy.AutoApprove = append(r.policy.AutoApprove, domain.ToolRule{Tool: "deliver_file"}) // by its name it would be asked about
		}, try: func(r *rig, _ int) string {
			return r.attempt("deliver_file", "path", "d/secret.txt")
		}},
		"deliver by way of uploads": {dir: "uploads", tries: 300, did: `"delivered":true`, try: func(r *rig, n int) string {
			return r.attempt("write_file", "path", "given", "content", fmt.Sprint("GIVEN ", n)) + r.attempt("deliver_file", "path", "given")
		}},
		"judge": {dir: "d", tries: 2000, try: func(r *rig, _ int) string {
			p := r.disk.Judge(context.Background(), r.session, "", "d/secret.txt")
			if p.Where == domain.WhereInside && p.Path != r.at("ws/d/secret.txt") && p.Path != r.at("ws/l/secret.txt") {
				return "SECRET: judged " + p.Path
			}
			return ""
		}},
		"upload": {dir: "uploads", tries: 300, try: func(r *rig, n int) string {
			blob := domain.Resource{Binary: true, Blob: fmt.Append(nil, n)}
			_, err := NewBlobs(r.disk).Store(context.Background(), r.session, []domain.Resource{blob})
			return errorText(err)
		}},
		"resolve": {dir: "d", tries: 2000, try: func(r *rig, _ int) string {
			s, err := NewRoots(r.disk).Resolve(context.Background(), domain.Agent{Alias: "default", Workspace: r.at("agent")},
				domain.Directories{Cwd: r.at("ws/d")})
			if err == nil && s.Cwd != r.at("ws/d") && s.Cwd != r.at("out") {
				return "SECRET: resolved to " + s.Cwd
			}
			return errorText(err)
		}},
	}
}

// TestSwaps guards T64: while a directory and a link to the outside change
// places, no operation ever reads, lists or writes outside.
func TestSwaps(t *testing.T) {
	for name, op := range swappedOperations() {
		t.Run(name, func(t *testing.T) { playSwaps(t, op) })
	}
}

func playSwaps(t *testing.T, op swapped) {
	r := newRig(t)
	r.write("ws/"+op.dir+"/secret.txt", "INSIDE E")
	r.symlink("ws/l", r.at("out"))
	if op.set != nil {
		op.set(r)
	}
	r.open()
	outside := tree(t, r.at("out"))
	var count atomic.Int64
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- exchange(r.at("ws/"+op.dir), r.at("ws/l"), &count, stop) }()
	did := 0
	for n := 0; n < op.tries || (count.Load() < *swaps || did == 0 && n < 50*op.tries) && len(ended) == 0; n++ {
		text := op.try(r, n)
		if strings.Contains(text, "SECRET") {
			t.Errorf("told: %s", text)
			break
		}
		if strings.Contains(text, op.did) {
			did++
		}
	}
	close(stop)
	if err := <-ended; errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("this file system exchanges no names: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if names := tree(t, r.at("out")); !slices.Equal(names, outside) || r.read("out/secret.txt") != "SECRET" {
		t.Errorf("out holds %v", names)
	}
	if t.Logf("%d exchanges, it took place %d times", count.Load(), did); did == 0 {
		t.Error("it never took place")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// attempt runs a call without judging its verdict.
func (r *rig) attempt(tool string, pairs ...any) string {
	p, err := r.tools[tool].Prepare(context.Background(), domain.ToolCall{Session: r.session.ID, Name: tool, Args: args(pairs...)})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = p.Close() }()
	if v := domain.Decide(r.policy, nil, p.Plan().Access); v.Verdict != domain.Allow {
		return v.Reason
	}
	res, err := p.Run(context.Background(), nil)
	if err != nil {
		return err.Error()
	}
	text := res.Text
	for _, c := range res.Content {
		if f, ok := c.(domain.FileContent); ok {
			text += string(f.Data)
		}
	}
	return text
}

// exchange swaps two names until it is stopped, an even number of times.
func exchange(a, b string, count *atomic.Int64, stop <-chan struct{}) error {
	for {
		for range 2 {
			if err := swapNames(a, b); err != nil {
				return err
			}
			count.Add(1)
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}
