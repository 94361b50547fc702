package fs

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// maxNeighbours bounds how many names are compared for a suggestion.
const maxNeighbours = 2000

// missing is the error for a target that does not exist, with names that may
// have been meant.
func missing(sp *space, t *target) error {
	show := sp.display(t)
	if len(t.missing) > 0 {
		return domain.Errorf(domain.NotFound, "%s does not exist, nor does the directory it would be in", show)
	}
	if names := neighbours(t); len(names) > 0 {
		return domain.Errorf(domain.NotFound, "%s does not exist; beside it there is %s", show, strings.Join(names, ", "))
	}
	return domain.Errorf(domain.NotFound, "%s does not exist", show)
}

// neighbours are up to three names in the target's directory that look like
// the missing one.
func neighbours(t *target) []string {
	f, err := t.dir.readable()
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(maxNeighbours)
	slices.Sort(names)
	var like []string
	for _, n := range names {
		if alike(t.name, n) {
			if like = append(like, printable(n)); len(like) == 3 {
				break
			}
		}
	}
	return like
}

// alike reports whether two names differ in case, in their suffix, or in at
// most two characters.
func alike(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return true
	}
	stemA, _, _ := strings.Cut(a, ".")
	stemB, _, _ := strings.Cut(b, ".")
	if len(stemA) > 2 && stemA == stemB {
		return true
	}
	return len(a) > 3 && distance(a, b, 2) <= 2
}

// distance is how many bytes must be put in, taken out or changed to make a
// into b; anything above most may be returned as most+1.
func distance(a, b string, most int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > most || len(a) > 255 || len(b) > 255 {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left, diag := i+1, i
		for j := range len(b) {
			step := diag
			if a[i] != b[j] {
				step = 1 + min(diag, row[j+1], left)
			}
			diag = row[j+1]
			row[j], left = left, step
		}
		row[len(b)] = left
	}
	return row[len(b)]
}
