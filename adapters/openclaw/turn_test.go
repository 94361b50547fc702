package openclaw

import (
	"strings"
	"testing"
)

// TestHeld holds more than there is room for: the end of the run is kept, and
// what was left out is in doubt.
func TestHeld(t *testing.T) {
	piece := runEvent{"agent", fields{"stream": []byte(`"assistant"`)}, 10}
	end := runEvent{"chat", fields{"state": []byte(`"final"`)}, 10}
	large := runEvent{"agent", fields{"stream": []byte(`"tool"`)}, mostHeldSize}
	tests := []struct {
		name   string
		events func(give func(runEvent))
		want   int
	}{
		{"many", func(give func(runEvent)) {
			for range 2 * mostHeld {
				give(piece)
			}
		}, mostHeld + 1},
		{"large ones", func(give func(runEvent)) { give(piece); give(large); give(piece) }, 4},
		{"ends without end", func(give func(runEvent)) {
			for range 2 * mostHeld {
				give(end)
			}
		}, mostHeld},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := newTurn(nil, &session{}, "r")
			turn.holding, turn.said.unsettled = 1, false
			tt.events(turn.event)
			turn.event(end)
			turn.event(end)
			if len(turn.held) != tt.want || turn.heldSize > mostHeldSize+end.size {
				t.Errorf("%d events of %d bytes are held, want %d", len(turn.held), turn.heldSize, tt.want)
			}
			var kinds strings.Builder
			for _, e := range turn.held {
				kinds.WriteString(e.kind)
			}
			if !strings.Contains(kinds.String(), "chat") || !turn.said.unsettled {
				t.Errorf("the end is not kept, or there is no doubt")
			}
		})
	}
}
