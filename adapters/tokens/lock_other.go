//go:build !unix

package tokens

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// How long a lock may be held, and how often one that is held is looked at.
const (
	lockLimit = 5 * time.Second
	lockPoll  = 20 * time.Millisecond
)

// lock makes a lock file that unlock removes. One that is older than any
// change takes was left behind.
func lock(path string) (unlock func(), err error) {
	limit := time.NewTimer(2 * lockLimit)
	defer limit.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err == nil {
			_ = f.Close()
			return func() { _ = os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > lockLimit {
			_ = os.Remove(path)
			continue
		}
		select {
		case <-poll.C:
		case <-limit.C:
			return nil, errors.New("another process holds it")
		}
	}
}
