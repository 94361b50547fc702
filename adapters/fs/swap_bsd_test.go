//go:build unix && !linux

package fs

import (
	"errors"
	"os"
)

// swapNames swaps two names in three steps.
func swapNames(a, b string) error {
	return errors.Join(os.Rename(a, a+".x"), os.Rename(b, a), os.Rename(a+".x", b))
}
