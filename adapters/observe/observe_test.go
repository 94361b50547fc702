package observe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestObserve_LinesAndLevels(t *testing.T) {
	tests := []struct {
		name, level string
		event       domain.Event
		want        string // "" for silence
	}{
		{"turn done at info", "info", domain.TurnDone{Session: "s1", Stop: domain.StopEndTurn}, `"stop":"end_turn"`},
		{"turn done is silent at warn", "warn", domain.TurnDone{Session: "s1", Stop: domain.StopEndTurn}, ""},
		{"turn done says which, and whose", "info", domain.TurnDone{Session: "s1", Turn: "t1", Agent: "a1"}, `"session":"s1","turn":"t1","agent":"a1"`},
		{"permission says for which call", "debug", domain.PermissionDone{Turn: "t1", Call: "c1", Tool: "edit_file"}, `"turn":"t1","tool":"edit_file","call":"c1"`},
		{"failed turn at warn", "warn", domain.TurnDone{Session: "s1", Err: errors.New("boom")}, `"error":"boom"`},
		{"cancel names its cause", "info", domain.TurnDone{Stop: domain.StopCancelled, Cause: domain.CancelledByClient}, "cancelled by the client"},
		{"cancelled step is no warning", "warn", domain.StepDone{Err: domain.CancelledByClient}, ""},
		{"failed step is told with its turn alone", "info", domain.StepDone{Err: errors.New("cut")}, ""},
		{"failed step at debug", "debug", domain.StepDone{Err: errors.New("cut")}, "cut"},
		{"call at debug", "debug", domain.CallDone{Tool: "read_file", Status: domain.CallFailed}, `"tool":"read_file"`},
		{"permission at debug", "debug", domain.PermissionDone{Tool: "edit_file", Asked: true}, `"asked":true`},
		{"opened", "info", domain.SessionOpened{Session: "s1", How: "load"}, `"how":"load"`},
		{"released", "info", domain.SessionReleased{Session: "s1", How: "idle"}, `"how":"idle"`},
		{"noted", "info", domain.Noted{What: "the configuration was read again"}, "read again"},
		{"noted is silent at warn", "warn", domain.Noted{What: "the configuration was read again"}, ""},
		{"began", "debug", domain.TurnBegan{Session: "s1"}, "turn began"},
		{"trouble", "error", domain.Trouble{Where: "turns: late update", Err: errors.New("late")}, "turns: late update"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			l, err := New(Config{Out: &out, Level: tt.level, JSON: true})
			if err != nil {
				t.Fatal(err)
			}
			l.Observe(context.Background(), tt.event)
			l.Close()
			if tt.want == "" && out.Len() > 0 || !strings.Contains(out.String(), tt.want) {
				t.Errorf("logged %q, want %q", out.String(), tt.want)
			}
		})
	}
}

// Another level counts from the next entry on; one that is none changes
// nothing.
func TestSetLevel(t *testing.T) {
	var out bytes.Buffer
	l, err := New(Config{Out: &out, Level: "warn", JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	say := func(what string) { l.Observe(context.Background(), domain.Noted{What: what}) }
	say("one")
	if err := l.SetLevel("info"); err != nil {
		t.Fatal(err)
	}
	say("two")
	if err := l.SetLevel("loud"); err == nil {
		t.Error("loud is no level")
	}
	say("three")
	if err := l.SetLevel("off"); err != nil {
		t.Fatal(err)
	}
	say("four")
	l.Close()
	for what, want := range map[string]bool{"one": false, "two": true, "three": true, "four": false} {
		if got := strings.Contains(out.String(), `"`+what+`"`); got != want {
			t.Errorf("%s was written: %v, want %v", what, got, want)
		}
	}
}

// A field without a value is no field: "session=" at the end of a line reads
// like something that was lost.
func TestObserve_LeavesOutEmptyFields(t *testing.T) {
	events := []domain.Event{
		domain.TurnBegan{}, domain.TurnDone{}, domain.TurnDone{Session: "s1", Err: errors.New("boom")},
		domain.StepDone{}, domain.CallDone{}, domain.PermissionDone{}, domain.SessionOpened{}, domain.SessionReleased{},
		domain.Trouble{Where: "jsonrpc: not a message", Err: errors.New("boom")}, domain.Trouble{Where: "somewhere"},
	}
	for _, ev := range events {
		for _, json := range []bool{true, false} {
			var out bytes.Buffer
			l, err := New(Config{Out: &out, Level: "trace", JSON: json})
			if err != nil {
				t.Fatal(err)
			}
			l.Observe(context.Background(), ev)
			l.Close()
			line := out.String()
			if line == "" {
				t.Errorf("%#v left nothing", ev)
			}
			for _, empty := range []string{"= ", "=\n", `":""`, `":"/"`, "=/"} {
				if strings.Contains(line, empty) {
					t.Errorf("%#v is logged with an empty field: %s", ev, line)
				}
			}
		}
	}
}

func TestNew_OffWritesNothing(t *testing.T) {
	for _, json := range []bool{true, false} {
		var out bytes.Buffer
		l, err := New(Config{Out: &out, Level: "off", JSON: json})
		if err != nil {
			t.Fatal(err)
		}
		l.Observe(context.Background(), domain.Trouble{Where: "here", Err: errors.New("boom")})
		l.Observe(context.Background(), domain.TurnDone{Err: errors.New("boom")})
		l.Log().Error().Msg("a line of bootstrap")
		l.Close()
		if out.Len() > 0 {
			t.Errorf("json %v: off wrote %q", json, out.String())
		}
	}
}

func TestLogger_MasksSecrets(t *testing.T) {
	for _, json := range []bool{true, false} {
		var out bytes.Buffer
		l, err := New(Config{Out: &out, Level: "info", JSON: json, Secrets: func() []string { return []string{"sk-canary-123456", "abc"} }})
		if err != nil {
			t.Fatal(err)
		}
		l.Log().Error().Msg("provider said: bad key sk-canary-123456 for abc")
		l.Close()
		if strings.Contains(out.String(), "canary") || !strings.Contains(out.String(), "[secret]") {
			t.Errorf("json %v: line %q holds the secret or no mask", json, out.String())
		}
		if !strings.Contains(out.String(), "abc") {
			t.Errorf("json %v: a value too short to be a secret was masked: %q", json, out.String())
		}
	}
}

// TestMasker_Learns: a secret that becomes known later is masked from then on.
func TestMasker_Learns(t *testing.T) {
	var out bytes.Buffer
	known := []string{"first-secret"}
	m := &masker{out: &out, secrets: func() []string { return known }}
	for _, line := range []string{"first-secret second-secret", "again first-secret second-secret"} {
		if _, err := m.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		known = append(known, "second-secret")
	}
	if got, want := out.String(), "[secret] second-secret\nagain [secret] [secret]\n"; got != want {
		t.Errorf("written %q, want %q", got, want)
	}
}

func TestLogger_NeverBlocksOnAnUnreadPipe(t *testing.T) {
	r, w := io.Pipe() // nobody reads
	defer r.Close()
	l, err := New(Config{Out: w, Level: "info", JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 * ring {
		l.Log().Info().Msg("line")
	}
	l.Close()
}

func TestNew_RefusesAnUnknownLevel(t *testing.T) {
	if _, err := New(Config{Out: io.Discard, Level: "loud"}); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("err = %v, want one that names the level", err)
	}
}
