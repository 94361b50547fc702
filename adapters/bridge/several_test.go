package bridge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/bridge"
)

// TestSeveral cuts the socket of a gateway without links with several prompts
// open, of which some have ended when it is back.
func TestSeveral(t *testing.T) {
	asks := func(id int, words string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":%q}]}}`, id, words)
	}
	answer := func(id int, turn, stop string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":%q,"_meta":{"berth":{"turnId":%q}}}}`, id, stop, turn)
	}
	awaits := func(id int, turn string) string {
		if turn != "" {
			turn = fmt.Sprintf(`,"turnId":%q`, turn)
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"_berth/session/await","params":{"sessionId":"s"%s}}`, id, turn)
	}
	unknown := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32002,"message":"none","data":{"reason":"NOT_FOUND","sessionId":"s"}}}`, id)
	}
	refused := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32603,"message":"The connection to the gateway was lost before the turn's end was told, `+
			`and the turn does not run any more. What it did is in the session; send the prompt again if nothing of it is there.",`+
			`"data":{"reason":"CONNECTION_LOST","sessionId":"s"}}}`, id)
	}
	loaded := func(meta string) string {
		return `{"jsonrpc":"2.0","id":"bridge-2","result":{` + meta + `}}`
	}
	const newest = `{"jsonrpc":"2.0","id":"bridge-3","method":"_berth/session/await","params":{"sessionId":"s"}}`
	// lose answers one prompt, loses the socket with others open, and brings the
	// next gateway to where it loads the session.
	lose := func(t *testing.T, r *rig, words ...string) *socket {
		t.Helper()
		g := r.open()
		r.say(asks(2, "old"))
		want(t, g, asks(2, "old"))
		write(t, g, chunk("old-m1", "x"), answer(2, "old", "end_turn"))
		want(t, r.editor, chunk("old-m1", "x"))
		want(t, r.editor, answer(2, "old", "end_turn"))
		for i, w := range words {
			r.say(asks(3+i, w))
			want(t, g, asks(3+i, w))
		}
		write(t, g, chunk("one-m1", "Hel"))
		want(t, r.editor, chunk("one-m1", "Hel"))
		g.Cut()
		g = r.back()
		want(t, g, fmt.Sprintf(reload, 2))
		write(t, g, said("old-u", "old"), chunk("old-m1", "x"))
		return g
	}
	t.Run("all have ended", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second")
			write(t, g, said("one-u", "fi"), said("one-u", "rst"), chunk("one-m1", "Hello"), over("one"), said("two-u", "second"), chunk("two-m1", "Bye"), loaded(""))
			want(t, r.editor, chunk("one-m1", "lo"))
			want(t, g, awaits(3, "one"))
			silent(t, g)
			silent(t, r.editor) // the second turn comes behind the answer to the first
			write(t, g, answer(3, "one", "cancelled"))
			want(t, r.editor, answer(3, "one", "cancelled"))
			want(t, r.editor, chunk("two-m1", "Bye"))
			want(t, g, awaits(4, "two"))
			write(t, g, answer(4, "two", "end_turn"))
			want(t, r.editor, answer(4, "two", "end_turn"))
		})
	})
	t.Run("lost again before they are answered", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second")
			history := []string{said("one-u", "first"), chunk("one-m1", "Hello"), said("two-u", "second"), chunk("two-m1", "Bye")}
			write(t, g, append(history, loaded(""))...)
			want(t, r.editor, chunk("one-m1", "lo"))
			want(t, g, awaits(3, "one"))
			g.Cut()
			want(t, r.editor, chunk("two-m1", "Bye")) // once
			g = <-r.dialed
			want(t, g, fmt.Sprintf(helloAgain, 3))
			write(t, g, `{"jsonrpc":"2.0","id":"bridge-3",`+offer)
			want(t, g, fmt.Sprintf(reload, 4))
			write(t, g, append(history, `{"jsonrpc":"2.0","id":"bridge-4","result":{}}`)...)
			want(t, g, awaits(3, "one"))
			write(t, g, answer(3, "one", "end_turn"))
			want(t, r.editor, answer(3, "one", "end_turn"))
			want(t, g, awaits(4, "two"))
			write(t, g, answer(4, "two", "end_turn"))
			want(t, r.editor, answer(4, "two", "end_turn"))
		})
	})
	t.Run("with the same words", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "go on", "go on")
			write(t, g, said("one-u", "go on"), said("two-u", "go on"), loaded(""))
			want(t, g, awaits(3, "one"))
			write(t, g, answer(3, "one", "end_turn"))
			want(t, r.editor, answer(3, "one", "end_turn"))
			want(t, g, awaits(4, "two"))
		})
	})
	t.Run("the last runs", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second")
			write(t, g, said("one-u", "first"), said("two-u", "second"), chunk("two-m1", "By"), loaded(`"_meta":{"berth":{"running":"two"}}`))
			want(t, g, awaits(3, "one"))
			write(t, g, chunk("two-m1", "e"), answer(3, "one", "refusal")) // which goes on meanwhile
			want(t, r.editor, answer(3, "one", "refusal"))
			want(t, r.editor, chunk("two-m1", "By"))
			want(t, r.editor, chunk("two-m1", "e"))
			want(t, g, awaits(4, "two"))
			write(t, g, answer(4, "two", "end_turn"))
			want(t, r.editor, answer(4, "two", "end_turn"))
		})
	})
	t.Run("one has ended, one runs, one waits", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second", "third")
			write(t, g, said("one-u", "first"), said("two-u", "second"), loaded(`"_meta":{"berth":{"running":"two","queued":[{"turnId":"three"}]}}`))
			want(t, g, awaits(3, "one"))
			write(t, g, answer(3, "one", "end_turn"))
			want(t, r.editor, answer(3, "one", "end_turn"))
			want(t, g, awaits(4, "two"))
			want(t, g, awaits(5, "three"))
		})
	})
	t.Run("a cancel of one that has ended is not for the next", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			const cancel = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`
			g := r.open()
			r.say(asks(3, "first"))
			want(t, g, asks(3, "first"))
			r.say(cancel)
			want(t, g, cancel)
			r.say(asks(4, "second"))
			want(t, g, asks(4, "second"))
			g.Cut()
			g = r.back()
			want(t, g, fmt.Sprintf(reload, 2))
			write(t, g, said("one-u", "first"), said("two-u", "second"), loaded(`"_meta":{"berth":{"running":"two"}}`))
			want(t, g, awaits(3, "one"))
			write(t, g, answer(3, "one", "cancelled"))
			want(t, g, awaits(4, "two"))
			silent(t, g)
		})
	})
	t.Run("the last never arrived", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second")
			write(t, g, said("one-u", "first"), chunk("one-m1", "Hello"), loaded(""))
			want(t, r.editor, chunk("one-m1", "lo"))
			want(t, g, awaits(3, "one"))
			write(t, g, answer(3, "one", "end_turn"))
			want(t, r.editor, answer(3, "one", "end_turn"))
			want(t, g, newest)
			write(t, g, strings.Replace(answer(4, "one", "end_turn"), `"id":4`, `"id":"bridge-3"`, 1))
			want(t, g, asks(4, "second"))
			write(t, g, answer(4, "two", "end_turn"))
			want(t, r.editor, answer(4, "two", "end_turn"))
		})
	})
	t.Run("the last never arrived and the first runs", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second", "third")
			write(t, g, said("one-u", "first"), loaded(`"_meta":{"berth":{"running":"one"}}`))
			want(t, g, awaits(3, "one"))
			want(t, g, asks(4, "second"))
			want(t, g, asks(5, "third"))
			silent(t, r.editor)
		})
	})
	t.Run("none arrived", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second")
			write(t, g, loaded(""))
			want(t, g, newest)
			write(t, g, strings.Replace(unknown(4), `"id":4`, `"id":"bridge-3"`, 1))
			want(t, g, asks(3, "first"))
			want(t, g, asks(4, "second"))
			silent(t, r.editor)
		})
	})
	t.Run("one ended before it began", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second")
			write(t, g, said("one-u", "first"), loaded(""))
			want(t, g, awaits(3, "one"))
			write(t, g, answer(3, "one", "end_turn"))
			want(t, r.editor, answer(3, "one", "end_turn"))
			want(t, g, newest)
			write(t, g, strings.Replace(answer(4, "two", "cancelled"), `"id":4`, `"id":"bridge-3"`, 1))
			want(t, g, awaits(4, ""))
			write(t, g, answer(4, "two", "cancelled"))
			want(t, r.editor, answer(4, "two", "cancelled"))
			silent(t, g)
		})
	})
	for name, history := range map[string][]string{
		"it cannot be said which is there": {said("one-u", "go on"), chunk("one-m1", "Hello")},
		"another's is there":               {said("one-u", "go on"), chunk("one-m1", "Hello"), said("x-u", "by another")},
		"messages have no ids":             {strings.Replace(said("one-u", "go on"), `,"messageId":"one-u"`, "", 1), chunk("one-m1", "Hello"), said("two-u", "go on")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
				g := lose(t, r, "go on", "go on")
				write(t, g, append(history, loaded(""))...)
				want(t, r.editor, chunk("one-m1", "lo"))
				want(t, r.editor, refused(3))
				want(t, g, awaits(4, ""))
			})
		})
	}
	t.Run("a gateway that does not show the history", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			resumes := func(s string) string {
				return strings.Replace(s, `"loadSession":true`, `"sessionCapabilities":{"resume":{}}`, 1)
			}
			r.say(hello)
			g := <-r.dialed
			want(t, g, hello)
			write(t, g, resumes(welcome))
			want(t, r.editor, resumes(welcome))
			r.answered(g, newSession, isNew)
			for i, w := range []string{"first", "second"} {
				r.say(asks(3+i, w))
				want(t, g, asks(3+i, w))
			}
			g.Cut()
			g = <-r.dialed
			want(t, g, fmt.Sprintf(helloAgain, 1))
			write(t, g, resumes(`{"jsonrpc":"2.0","id":"bridge-1",`+offer))
			want(t, g, strings.Replace(fmt.Sprintf(reload, 2), "session/load", "session/resume", 1))
			write(t, g, loaded(""))
			want(t, r.editor, refused(3))
			want(t, g, awaits(4, ""))
		})
	})
	t.Run("a gateway that knows of the newest alone", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := lose(t, r, "first", "second")
			write(t, g, said("one-u", "first"), said("two-u", "second"), loaded(""))
			want(t, g, awaits(3, "one"))
			write(t, g, unknown(3))
			want(t, r.editor, refused(3))
			want(t, g, awaits(4, "two"))
			write(t, g, answer(4, "two", "end_turn"))
			want(t, r.editor, answer(4, "two", "end_turn"))
		})
	})
}

// TestEnding_Awaited says that a gateway which ends while it is asked for the end
// of a turn does not have that turn done again by the next.
func TestEnding_Awaited(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		const asks = `{"jsonrpc":"2.0","id":2,"method":"_berth/session/await","params":{"sessionId":"s","turnId":"t"}}`
		g := r.open()
		r.say(prompt)
		want(t, g, prompt)
		g.Cut()
		g = r.back()
		want(t, g, fmt.Sprintf(reload, 2))
		write(t, g, `{"jsonrpc":"2.0","id":"bridge-2","result":{"_meta":{"berth":{"running":"t"}}}}`)
		want(t, g, asks)
		write(t, g, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The agent is shutting down","data":{"reason":"SHUTTING_DOWN"}}}`)
		silent(t, r.editor)
		g.Cut()
		g = <-r.dialed
		want(t, g, fmt.Sprintf(helloAgain, 3))
		write(t, g, `{"jsonrpc":"2.0","id":"bridge-3",`+offer)
		want(t, g, fmt.Sprintf(reload, 4))
		write(t, g, said("t-u", "go"), `{"jsonrpc":"2.0","id":"bridge-4","result":{}}`)
		want(t, g, `{"jsonrpc":"2.0","id":2,"method":"_berth/session/await","params":{"sessionId":"s"}}`)
		write(t, g, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The turn was interrupted"}}`)
		want(t, r.editor, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The turn was interrupted"}}`)
		silent(t, g)
	})
}
