package domain

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What is kept of a reply that goes on for long is never copied while it comes
// in: not what came before, nor itself.
func TestConversation_StreamedCost(t *testing.T) {
	const pieces, piece = 200, 64 << 10
	c := NewConversation(0)
	c.Add(Entry{Seq: 1, Record: UserSaid{Turn: "t"}})
	text := strings.Repeat("0123456789abcdef", piece/16)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range pieces {
		c.Add(Entry{Seq: Seq(i + 2), Record: Streamed{Turn: "t", Parts: []MessagePart{{ID: "m", Text: text}}}})
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > pieces*piece/4 {
		t.Errorf("%d bytes in %d pieces took %d bytes of memory", pieces*piece, pieces, took)
	}
	said, ok := c.Settle()[0].(AssistantSaid)
	if !ok || len(said.Parts) != 1 || said.Parts[0].Text != strings.Repeat(text, pieces) {
		t.Errorf("the reply is not what was streamed: %s", fmt.Sprintf("%.80v", said))
	}
}
