package streamhttp_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestCuts has a client lose its stream at random moments, while another
// stream goes on: with Last-Event-ID it reads everything, in order, once.
func TestCuts(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP 1": false, "HTTP 2": true} {
		t.Run(name, func(t *testing.T) {
			const messages = 3000
			r := newRig(t)
			if h2 {
				r.useHTTP2()
			}
			id, server := r.open()
			rnd := rand.New(rand.NewPCG(1, 2))
			sizes := make([]string, messages)
			for i := range sizes {
				sizes[i] = repeat(rnd.IntN(600))
			}
			var writing sync.WaitGroup
			defer writing.Wait()
			writing.Go(func() {
				for i, pad := range sizes {
					if server.frames.Write([]byte(update("s1", fmt.Sprint(i, pad)))) != nil ||
						server.frames.Write([]byte(result(fmt.Sprint(i), "{}"))) != nil {
						return
					}
				}
			})
			main, one := r.listen(id, ""), r.listen(id, "s1", "Last-Event-ID", "0")
			cuts := 0
			for i, pad := range sizes {
				one.want(update("s1", fmt.Sprint(i, pad)))
				main.want(result(fmt.Sprint(i), "{}"))
				if rnd.IntN(50) == 0 {
					cuts++
					one.close()
					one = r.listen(id, "s1", "Last-Event-ID", one.last)
				}
			}
			if cuts < 20 {
				t.Errorf("only %d cuts", cuts)
			}
		})
	}
}
