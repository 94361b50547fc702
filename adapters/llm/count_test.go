package llm

import (
	"encoding/json"
	"testing"
)

func TestCount(t *testing.T) {
	for _, c := range []struct {
		json string
		want Count
	}{
		{`10`, 10}, {`10.0`, 10}, {`10.9`, 10}, {`1e3`, 1000}, {`"10"`, 10}, {`"1.5e1"`, 15},
		{`0`, 0}, {`-1`, 0}, {`"-1"`, 0}, {`1e30`, 0}, {`9223372036854775807`, 0}, {`99999999999999999999999`, 0}, {`1e999`, 0},
		{`null`, 0}, {`true`, 0}, {`"many"`, 0}, {`""`, 0}, {`"NaN"`, 0}, {`"Inf"`, 0}, {`{}`, 0}, {`[1]`, 0},
	} {
		var got struct {
			N Count `json:"n"`
		}
		got.N = 7
		if err := json.Unmarshal([]byte(`{"n":`+c.json+`}`), &got); err != nil || got.N != c.want && c.json != "null" {
			t.Errorf("%s is %d, %v, want %d", c.json, got.N, err, c.want)
		}
	}
}
