package porttest

import (
	"testing"
	"testing/synctest"
)

// Bubble adapts a *testing.T like T, and runs every case in a synctest bubble:
// waits cost no time and are exact, and a goroutine that outlives its case
// fails it. The adapter must reach nothing outside the bubble, so a network is
// replaced by one in memory.
func Bubble(t *testing.T) TB { return bubble{tb{t}} }

type bubble struct{ tb }

func (b bubble) Run(name string, fn func(TB)) bool {
	return b.T.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { fn(tb{t}) })
	})
}
