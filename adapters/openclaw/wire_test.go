package openclaw

import (
	"strings"
	"testing"
)

// TestParse_Halves has frames with halves of characters, as JavaScript writes
// them when a text was cut between the two.
func TestParse_Halves(t *testing.T) {
	for in, want := range map[string]string{
		`a\ud83d`:              "a\uFFFD",
		`\ud83db`:              "\uFFFDb",
		`\ude00`:               "\uFFFD",
		`\ud83d\ud83d\ude00`:   "\uFFFD😀",
		`\ud83d\ude00\ude00`:   "😀\uFFFD",
		`\\ud83d \ud83d`:       `\ud83d ` + "\uFFFD",
		`\ud83d\u0041`:         "\uFFFDA",
		`\uD83D\n\uDE00\\\"é€`: "\uFFFD\n\uFFFD\\\"é€",
	} {
		got, err := parse([]byte(`{"type":"event","event":"` + in + `"}`))
		if err != nil || got.event != want {
			t.Errorf("%s: %q, %v, want %q", in, got.event, err, want)
		}
	}
	for _, in := range []string{`\`, `\u`, `\ud8`, `\ud83`, `\ud83d`, `\ud83d\u`, `\ud83d\`, `\\`} {
		if _, err := parse([]byte(`{"type":"` + in)); err == nil {
			t.Errorf("%s: taken", in)
		}
	}
}

// TestParse_Odd has members of wrong types: they count as left out, and the
// rest counts.
func TestParse_Odd(t *testing.T) {
	tests := []struct{ name, frame, want string }{
		{"a wait with a fraction", `{"code":"UNAVAILABLE","message":"wait","retryAfterMs":250.5}`, "UNAVAILABLE: wait"},
		{"a message that is none", `{"code":"FORBIDDEN","message":5}`, "FORBIDDEN: the gateway gave no reason"},
		{"words alone", `"no"`, "UNAVAILABLE: no"},
		{"nothing", `null`, "UNAVAILABLE: the gateway gave no reason"},
		{"details of another kind", `{"code":"A","message":"b","details":["x"]}`, "A: b"},
		{"what a terminal would obey", `{"code":"A\u001b[2J","message":"b\nc\u0007\u009b"}`, `A\u001b[2J: b c\u0007\u009b`},
		{"a long one", `{"code":"A","message":"` + strings.Repeat("é", 1<<20) + `"}`, "A: " + strings.Repeat("é", mostWords/2) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, err := parse([]byte(`{"type":"res","id":"1","ok":false,"error":` + tt.frame + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := in.refusal().Error(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	for in, want := range map[string]int64{
		`1`: 1, `-1.9`: -1, `1e3`: 1000, `1e400`: mostNumber, `-1e400`: -mostNumber, `1e300`: mostNumber, `"1"`: 0, `null`: 0, ``: 0,
	} {
		if got := number([]byte(in)); got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
	if d := (&RPCError{RetryAfterMs: 1 << 62}).after(); d <= 0 || d.Hours() > 1 {
		t.Errorf("a wait of %s", d)
	}
}
