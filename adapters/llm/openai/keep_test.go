package openai

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestDetails: pieces of one block of reasoning are put together, whatever the
// server cut, and pieces of others are not.
func TestDetails(t *testing.T) {
	for name, c := range map[string]struct {
		pieces string
		want   string
	}{
		"whole":            {`{"type":"reasoning.text","text":"a","x":1}`, `[{"type":"reasoning.text","text":"a","x":1}]`},
		"in pieces":        {`{"type":"reasoning.text","text":"a","index":0}|{"type":"reasoning.text","text":"b","index":0}`, `[{"index":0,"text":"ab","type":"reasoning.text"}]`},
		"of a summary":     {`{"type":"reasoning.summary","summary":"a"}|{"type":"reasoning.summary","summary":"b"}`, `[{"summary":"ab","type":"reasoning.summary"}]`},
		"signed last":      {`{"type":"reasoning.text","text":"a","signature":null}|{"type":"reasoning.text","signature":"s"}`, `[{"signature":"s","text":"a","type":"reasoning.text"}]`},
		"in a character":   {`{"type":"reasoning.text","text":"\ud83d"}|{"type":"reasoning.text","text":"\ude00"}`, `[{"text":"😀","type":"reasoning.text"}]`},
		"of two blocks":    {`{"type":"reasoning.text","text":"a","index":0}|{"type":"reasoning.text","text":"b","index":1}`, `[{"type":"reasoning.text","text":"a","index":0},{"type":"reasoning.text","text":"b","index":1}]`},
		"of two kinds":     {`{"type":"reasoning.text","text":"a"}|{"type":"reasoning.encrypted","data":"d"}|{"type":"reasoning.encrypted","data":"d"}`, `[{"type":"reasoning.text","text":"a"},{"type":"reasoning.encrypted","data":"d"},{"type":"reasoning.encrypted","data":"d"}]`},
		"objects differ":   {`{"type":"reasoning.text","text":"a","o":{}}|{"type":"reasoning.text","text":"b","o":{}}`, `[{"type":"reasoning.text","text":"a","o":{}},{"type":"reasoning.text","text":"b","o":{}}]`},
		"text is none":     {`{"type":"reasoning.text","text":7}|{"type":"reasoning.text","text":"b"}`, `[{"type":"reasoning.text","text":7},{"type":"reasoning.text","text":"b"}]`},
		"next text is one": {`{"type":"reasoning.text","text":"a"}|{"type":"reasoning.text","text":[]}|{"type":"reasoning.text","text":"b"}`, `[{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","text":[]},{"type":"reasoning.text","text":"b"}]`},
		"no object":        {`7|{"type":"reasoning.text","text":"b"}`, `[7,{"type":"reasoning.text","text":"b"}]`},
		"null":             {`null|null`, `[null,null]`},
	} {
		t.Run(name, func(t *testing.T) {
			var k keepsake
			for p := range strings.SplitSeq(c.pieces, "|") {
				k.detail(json.RawMessage(p))
			}
			k.settle()
			if got, err := json.Marshal(k.Details); err != nil || string(got) != c.want {
				t.Errorf("%s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

// TestDetails_Long: a long thought costs what its pieces cost, not what all of
// it costs with each of them.
func TestDetails_Long(t *testing.T) {
	grow := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var k keepsake
		for i := range n {
			k.detail(json.RawMessage(fmt.Sprintf(`{"type":"reasoning.text","text":"%064d","index":0}`, i)))
		}
		k.settle()
		runtime.ReadMemStats(&after)
		if len(k.Details) != 1 || len(k.Details[0]) < 64*n {
			t.Fatalf("%d details", len(k.Details))
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := grow(200), grow(4000); many > 40*few {
		t.Errorf("%d bytes for 200 pieces, %d for 4000", few, many)
	}
}
