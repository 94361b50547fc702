package domain_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/berth-dev/berth/core/domain"
)

func TestStopFor(t *testing.T) {
	boom := errors.New("boom")
	gone := fmt.Errorf("send: %w", Disconnected)
	cases := []struct {
		name     string
		cause    error
		loop     Stop
		err      error
		want     Stop
		wantFail bool
	}{
		{"a turn that ended by itself", nil, StopEndTurn, nil, StopEndTurn, false},
		{"each stop is reported as it is", nil, StopMaxTokens, nil, StopMaxTokens, false},
		{"a cause wins over the loop", CancelledByClient, StopEndTurn, nil, StopCancelled, false},
		{"a cause wins over an error", ProcessEnding, 0, boom, StopCancelled, false},
		{"a wrapped cause is a cause", fmt.Errorf("x: %w", SessionClosed), 0, boom, StopCancelled, false},
		{"an error alone is an error", nil, 0, boom, 0, true},
		{"an error that says the client has gone is a cancel", nil, 0, gone, StopCancelled, false},
		{"a foreign cause is none", io.EOF, 0, boom, 0, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := StopFor(c.cause, c.loop, c.err)
			if got != c.want || (err != nil) != c.wantFail {
				t.Errorf("StopFor = %v, %v; want %v, failing %v", got, err, c.want, c.wantFail)
			}
		})
	}
}

func TestStop_Names(t *testing.T) {
	for s, name := range map[Stop]string{
		StopEndTurn: "end_turn", StopCancelled: "cancelled", StopMaxTokens: "max_tokens",
		StopMaxTurnRequests: "max_turn_requests", StopRefusal: "refusal",
	} {
		if s.String() != name {
			t.Errorf("%d is called %q, want %q", s, s.String(), name)
		}
		if back, ok := ParseStop(name); !ok || back != s {
			t.Errorf("ParseStop(%q) = %v, %v", name, back, ok)
		}
	}
	if _, ok := ParseStop(""); ok {
		t.Error("the empty name is no stop")
	}
}

func TestParseModelRef(t *testing.T) {
	for in, want := range map[string]ModelRef{
		"openai/gpt-5":           {Provider: "openai", Model: "gpt-5"},
		"openrouter/meta/llama3": {Provider: "openrouter", Model: "meta/llama3"},
	} {
		got, err := ParseModelRef(in)
		if err != nil || got != want || got.String() != in {
			t.Errorf("ParseModelRef(%q) = %+v, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "x", "/", "x/", "/x"} {
		if _, err := ParseModelRef(bad); !HasCode(err, InvalidArgument) {
			t.Errorf("ParseModelRef(%q) gives %v, want an invalid argument", bad, err)
		}
	}
	if s := (ModelRef{}).String(); s != "" {
		t.Errorf("the zero reference prints %q", s)
	}
}

func TestSessionID_Valid(t *testing.T) {
	for _, ok := range []SessionID{"a", "019ad0e2-6b1c-7cc3-98a6-0a4f1c1d2e3f", "A-9", SessionID(strings.Repeat("x", 64))} {
		if !ok.Valid() {
			t.Errorf("%q should name a session", ok)
		}
	}
	for _, bad := range []SessionID{"", "a b", "a/b", "..", "é", "a\x00", "a_b", SessionID(strings.Repeat("x", 65))} {
		if bad.Valid() {
			t.Errorf("%q must not name a session", bad)
		}
	}
}

func TestSession(t *testing.T) {
	s := Session{ID: "a", Key: "k", Agent: "x", Cwd: "/c", Additional: []string{"/d", "/c", "/w"}, Workspace: "/w"}
	if got := s.Roots(); !slices.Equal(got, []string{"/c", "/d", "/w"}) {
		t.Errorf("roots are %v", got)
	}
	if err := s.Validate(); err != nil {
		t.Errorf("a whole session is refused: %v", err)
	}
	for name, change := range map[string]func(*Session){
		"id": func(s *Session) { s.ID = "a b" }, "key": func(s *Session) { s.Key = "" },
		"agent": func(s *Session) { s.Agent = "" }, "cwd": func(s *Session) { s.Cwd = "" },
	} {
		bad := s
		change(&bad)
		if err := bad.Validate(); !HasCode(err, InvalidArgument) {
			t.Errorf("a session with a bad %s passes: %v", name, err)
		}
	}
	for limit, want := range map[int]int{-1: 50, 0: 50, 1: 1, 200: 200, 201: 200} {
		if got := (SessionQuery{Limit: limit}).PageSize(); got != want {
			t.Errorf("a limit of %d gives pages of %d, want %d", limit, got, want)
		}
	}
}

func TestTitleFrom(t *testing.T) {
	long := strings.Repeat("wörd ", 40)
	cases := []struct {
		name   string
		blocks []Block
		want   string
	}{
		{"nothing", nil, ""},
		{"the first line", []Block{Text{Text: "  fix  the\ttest \nplease"}}, "fix the test"},
		{"leading blank lines are skipped", []Block{Text{Text: "\n\n  fix\n"}}, "fix"},
		{"the first block with text", []Block{Link{Name: "a"}, Text{Text: " \n "}, Text{Text: "go"}, Text{Text: "on"}}, "go"},
		{"no text at all", []Block{Image{MIME: "image/png"}}, ""},
		{"80 characters are kept", []Block{Text{Text: strings.Repeat("é", 80)}}, strings.Repeat("é", 80)},
		{"81 are cut", []Block{Text{Text: strings.Repeat("é", 81)}}, strings.Repeat("é", 79) + "…"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := TitleFrom(c.blocks); got != c.want {
				t.Errorf("title %q, want %q", got, c.want)
			}
		})
	}
	if got := TitleFrom([]Block{Text{Text: long}}); utf8.RuneCountInString(got) > 80 || !utf8.ValidString(got) || strings.Contains(got, " …") {
		t.Errorf("a long title became %q", got)
	}
}

func TestPromptText(t *testing.T) {
	got := PromptText([]Block{
		Text{Text: "a"},
		Text{},
		Resource{URI: "file:///x.go", MIME: "text/x-go", Text: "package x"},
		Resource{URI: "file:///b", MIME: "application/zip", Binary: true},
		Link{Name: "n", URI: "zed:///n"},
		Attachment{Path: "/w/uploads/1.png", MIME: "image/png"},
		Attachment{Path: "/w/uploads/2.pdf", MIME: "application/pdf", Name: "doc"},
		Image{MIME: "image/png"},
		Audio{MIME: "audio/wav"},
		Text{Text: "z"},
	})
	want := strings.Join([]string{
		"a", "<resource uri=\"file:///x.go\" type=\"text/x-go\">\npackage x\n</resource>",
		"[Resource: file:///b application/zip]", "[Link: n] zed:///n", "[IMAGE: /w/uploads/1.png]",
		"[Document: doc] /w/uploads/2.pdf", "[Image: image/png]", "[Audio: audio/wav]", "z",
	}, "\n\n")
	if got != want {
		t.Errorf("prompt text:\n%s\nwant:\n%s", got, want)
	}
}

func TestPrompt_Usable(t *testing.T) {
	for _, blocks := range [][]Block{{Text{Text: " a"}}, {Link{URI: "u"}}, {Text{}, Resource{}}} {
		if !(Prompt{Blocks: blocks}).Usable() {
			t.Errorf("%v can be answered", blocks)
		}
	}
	for _, blocks := range [][]Block{nil, {Text{}}, {Text{Text: " \t\r\n"}, Text{}}} {
		if (Prompt{Blocks: blocks}).Usable() {
			t.Errorf("%v cannot be answered", blocks)
		}
	}
}

func TestErrors(t *testing.T) {
	hidden := errors.New("disk on fire")
	wrapped := WrapError(StoreUnavailable, hidden, "The store cannot be written")
	outer := fmt.Errorf("append record: %w", wrapped)
	if CodeOf(outer) != StoreUnavailable || !HasCode(outer, StoreUnavailable) || !errors.Is(outer, &Error{Code: StoreUnavailable}) {
		t.Errorf("the code is lost in %v", outer)
	}
	if errors.Is(outer, &Error{Code: Internal}) || HasCode(outer, Internal) {
		t.Error("another code matches")
	}
	if errors.Is(outer, &Error{Code: StoreUnavailable, Msg: "The store cannot be written"}) {
		t.Error("a target with a message of its own must not match by code")
	}
	if wrapped.Msg != "The store cannot be written" || !errors.Is(wrapped, hidden) {
		t.Errorf("the cause must be hidden from Msg and found by Is: %q", wrapped.Msg)
	}
	if got := wrapped.Error(); got != "The store cannot be written: disk on fire" {
		t.Errorf("for the log it reads %q", got)
	}
	shown := Errorf(NotFound, "no file: %w", hidden)
	if shown.Error() != "no file: disk on fire" || !errors.Is(shown, hidden) {
		t.Errorf("Errorf with a cause reads %q", shown.Error())
	}
	if CodeOf(nil) != Internal || HasCode(nil, Internal) || CodeOf(hidden) != Internal || HasCode(hidden, Internal) {
		t.Error("uncoded errors are internal and have no code")
	}
	base := NoSession("s1")
	more := base.With("a", 1)
	_ = base.With("b", 2)
	if len(base.Details) != 1 || len(more.Details) != 2 || more.Details[1] != (Detail{Key: "a", Value: 1}) {
		t.Errorf("With changed its receiver: %v, %v", base.Details, more.Details)
	}
	if !strings.Contains(base.Msg, "s1") || base.Code != SessionNotFound {
		t.Errorf("NoSession says %q with code %v", base.Msg, base.Code)
	}
}

func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	for i, c := range Codes() {
		if int(c) != i || c.String() == "" || seen[c.String()] {
			t.Errorf("code %d prints %q", c, c.String())
		}
		seen[c.String()] = true
	}
	if last := Codes()[len(Codes())-1]; last != ShuttingDown {
		t.Errorf("the last code is %v; a code has no name", last)
	}
	if got := Code(99).String(); got != "code 99" {
		t.Errorf("an unknown code prints %q", got)
	}
	if CancelledByClient.Error() == Disconnected.Error() {
		t.Error("two causes read the same")
	}
}
