package acp1

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// frame is an update as it goes out.
func frame(u domain.Update, zeroclaw bool) []byte {
	s := sessionUpdate{id: "s1", update: u, zeroclaw: zeroclaw}
	return append(s.AppendJSON([]byte(`{"jsonrpc":"2.0","method":"session/update","params":`)), '}')
}

// updateJSON is the update part of it.
func updateJSON(t *testing.T, u domain.Update, zeroclaw bool) string {
	t.Helper()
	f := frame(u, zeroclaw)
	c := NewChecker()
	c.zeroclaw = zeroclaw
	if err := c.Agent(f); err != nil {
		t.Errorf("%T: %v\n%.400s", u, err, f)
	}
	return string(objectOf(objectOf(f)["params"])["update"])
}

func TestUpdates(t *testing.T) {
	text := func(s string) []domain.CallContent {
		return []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: s}}}
	}
	user := func(b domain.Block) domain.Update { return domain.UserMessage{ID: "m", Block: b} }
	const said = `{"sessionUpdate":"user_message_chunk","content":`
	cases := []struct {
		name string
		u    domain.Update
		want string
	}{
		{"text", domain.AgentText{ID: "m1", Text: "a\"\n<é>"}, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\"\n<é>"},"messageId":"m1"}`},
		{"text without an id", domain.AgentText{Text: "a"}, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"}}`},
		{"thought", domain.AgentThought{ID: "m1", Text: "a"}, `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"a"},"messageId":"m1"}`},
		{"user text", user(domain.Text{Text: "a"}), said + `{"type":"text","text":"a"},"messageId":"m"}`},
		{"user image", user(domain.Image{MIME: "image/png", Data: []byte("hi"), URI: "file:///a.png"}), said + `{"type":"image","mimeType":"image/png","data":"aGk=","uri":"file:///a.png"},"messageId":"m"}`},
		{"user audio", user(domain.Audio{Data: []byte("hi")}), said + `{"type":"audio","mimeType":"application/octet-stream","data":"aGk="},"messageId":"m"}`},
		{"user resource", user(domain.Resource{URI: "u", MIME: "text/x", Text: "a"}), said + `{"type":"resource","resource":{"uri":"u","mimeType":"text/x","text":"a"}},"messageId":"m"}`},
		{"user blob", user(domain.Resource{URI: "u", Blob: []byte("hi"), Binary: true}), said + `{"type":"resource","resource":{"uri":"u","blob":"aGk="}},"messageId":"m"}`},
		{"user link", user(domain.Link{URI: "zed:///a", Name: "n", Title: "T", Description: "D", MIME: "m/x", Size: 9}),
			said + `{"type":"resource_link","uri":"zed:///a","name":"n","title":"T","description":"D","mimeType":"m/x","size":9},"messageId":"m"}`},
		{"user link without a name", user(domain.Link{URI: "https://x/a/b"}), said + `{"type":"resource_link","uri":"https://x/a/b","name":"b"},"messageId":"m"}`},
		{"attachment", user(domain.Attachment{Path: "/proj/up loads/ab#.png", Name: "shot.png", MIME: "image/png", Size: 7, URI: "file:///tmp/shot.png"}),
			said + `{"type":"resource_link","uri":"file:///proj/up%20loads/ab%23.png","name":"shot.png","mimeType":"image/png","size":7,"_meta":{"berth":{"uri":"file:///tmp/shot.png"}}},"messageId":"m"}`},
		{"attachment without names", user(domain.Attachment{Path: "/p/uploads/ab.bin"}), said + `{"type":"resource_link","uri":"file:///p/uploads/ab.bin","name":"ab.bin"},"messageId":"m"}`},
		{"call", domain.CallOpened{ID: "c1", Name: "read_file", Title: "Read a.go", Kind: domain.KindRead, Status: domain.CallPending,
			Locations: []domain.Location{{Path: "/a.go", Line: 17}, {Path: "/b.go"}}, RawInput: []byte(`{"path":"/a.go"}`)},
			`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Read a.go","name":"read_file","kind":"read","status":"pending",` +
				`"locations":[{"path":"/a.go","line":17},{"path":"/b.go"}],"rawInput":{"path":"/a.go"}}`},
		{"call with what is missing filled in", domain.CallOpened{ID: "c1", Name: "x", Kind: "juggle"},
			`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"x","name":"x","kind":"other","status":"pending"}`},
		{"diff", domain.CallOpened{ID: "c", Title: "E", Kind: domain.KindEdit, Status: domain.CallInProgress, Content: []domain.CallContent{
			domain.Diff{Path: "/a", OldText: "x", NewText: "y"}, domain.Diff{Path: "/b", NewText: "n", Created: true}, domain.Diff{Path: "/c", OldText: "z"},
			domain.Diff{Path: "/d", NewText: "was empty"}}},
			`{"sessionUpdate":"tool_call","toolCallId":"c","title":"E","kind":"edit","status":"in_progress","content":[` +
				`{"type":"diff","path":"/a","oldText":"x","newText":"y"},{"type":"diff","path":"/b","oldText":null,"newText":"n"},` +
				`{"type":"diff","path":"/c","oldText":"z","newText":""},{"type":"diff","path":"/d","oldText":"","newText":"was empty"}]}`},
		{"delivery", domain.CallChanged{ID: "c", Status: domain.CallCompleted, Title: "Report", Content: append(text("ok"), domain.FileContent{
			File: domain.Attachment{Path: "/p/uploads/ab.pdf", URI: "attachment://deliver/ab.pdf", MIME: "application/pdf", Size: 2}, Title: "Report", Delivered: true, Data: []byte("hi")})},
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Report","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ok"}},` +
				`{"type":"content","content":{"type":"resource","resource":{"uri":"attachment://deliver/ab.pdf","mimeType":"application/pdf","blob":"aGk="}}}]}`},
		{"empty delivery", domain.CallChanged{ID: "c", Content: []domain.CallContent{domain.FileContent{
			File: domain.Attachment{URI: "attachment://deliver/e3.txt"}, Delivered: true, Data: []byte{}}}},
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"content","content":{"type":"resource","resource":{"uri":"attachment://deliver/e3.txt","blob":""}}}]}`},
		{"picture", domain.CallChanged{ID: "c", Content: []domain.CallContent{domain.FileContent{
			File: domain.Attachment{Path: "/p/a.png", Name: "a.png", MIME: "image/png"}, Data: []byte("hi")}}},
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"content","content":{"type":"image","mimeType":"image/png","data":"aGk="}}]}`},
		{"picture that nobody read", domain.CallChanged{ID: "c", Content: []domain.CallContent{domain.FileContent{
			File: domain.Attachment{Path: "/p/a.png", Name: "a.png", MIME: "image/png", Size: 9}}}},
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"content","content":{"type":"resource_link","uri":"file:///p/a.png","name":"a.png","mimeType":"image/png","size":9}}]}`},
		{"change of the status alone", domain.CallChanged{ID: "c", Status: domain.CallInProgress}, `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}`},
		{"change of all", domain.CallChanged{ID: "c", Status: domain.CallCompleted, Title: "T", Content: text("ok"), Locations: []domain.Location{}, RawOutput: []byte("{\n \"n\": 1 }")},
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"T","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ok"}}],"locations":[],"rawOutput":{"n":1}}`},
		{"content that is cleared", domain.CallChanged{ID: "c", Content: []domain.CallContent{}}, `{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[]}`},
		{"output that is no JSON", domain.CallChanged{ID: "c", RawOutput: []byte("a\xff{")}, `{"sessionUpdate":"tool_call_update","toolCallId":"c","rawOutput":"a�{"}`},
		{"output with bad UTF-8", domain.CallChanged{ID: "c", RawOutput: []byte("\"a\xff\"")}, `{"sessionUpdate":"tool_call_update","toolCallId":"c","rawOutput":"\"a�\""}`},
		{"plan", domain.PlanChanged{Entries: []domain.PlanEntry{{Content: "a", Priority: "high", Status: "in_progress"}, {Content: "b", Priority: "urgent", Status: "done"}}},
			`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"in_progress"},{"content":"b","priority":"medium","status":"pending"}]}`},
		{"empty plan", domain.PlanChanged{}, `{"sessionUpdate":"plan","entries":[]}`},
		{"usage", domain.UsageChanged{Used: 18250, Size: 200000, Cost: &domain.Cost{Amount: 0.042, Currency: "USD"}},
			`{"sessionUpdate":"usage_update","used":18250,"size":200000,"cost":{"amount":0.042,"currency":"USD"}}`},
		{"usage without a price", domain.UsageChanged{Used: -1, Size: 5}, `{"sessionUpdate":"usage_update","used":0,"size":5}`},
		{"a price that is no number", domain.UsageChanged{Used: 1, Size: 5, Cost: &domain.Cost{Amount: math.NaN(), Currency: "USD"}}, `{"sessionUpdate":"usage_update","used":1,"size":5}`},
		{"info", domain.InfoChanged{Title: "T", UpdatedAt: time.Date(2026, 11, 30, 10, 20, 0, 0, time.FixedZone("", 3600))},
			`{"sessionUpdate":"session_info_update","title":"T","updatedAt":"2026-11-30T09:20:00Z"}`},
		{"title", domain.InfoChanged{Title: "T"}, `{"sessionUpdate":"session_info_update","title":"T"}`},
		{"how a turn ended", domain.TurnEnded{Turn: "t1", Stop: domain.StopCancelled, Past: true},
			`{"sessionUpdate":"session_info_update","_meta":{"berth":{"turnId":"t1","stopReason":"cancelled"}}}`},
		{"how a turn failed", domain.TurnEnded{Turn: "t1", Why: "no route", Past: true},
			`{"sessionUpdate":"session_info_update","_meta":{"berth":{"turnId":"t1","error":"no route"}}}`},
		{"commands", domain.CommandsChanged{Commands: []domain.Command{{Name: "compact", Description: "C"}, {Name: "review", Description: "R", Hint: "branch"}}},
			`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"compact","description":"C"},{"name":"review","description":"R","input":{"hint":"branch"}}]}`},
		{"compaction begins", domain.CompactionChanged{ID: "c1", Status: domain.CompactionRunning, Summary: "early", Error: "no"},
			`{"sessionUpdate":"compaction_update","compactionId":"c1","status":"in_progress"}`},
		{"a piece of a summary", domain.CompactionText{ID: "c1", Text: "a\n"},
			`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c1","content":{"type":"text","text":"a\n"}}`},
		{"compaction ends", domain.CompactionChanged{ID: "c1", Status: domain.CompactionDone, Summary: "all", Error: "no"},
			`{"sessionUpdate":"compaction_update","compactionId":"c1","status":"completed","summary":[{"type":"text","text":"all"}]}`},
		{"compaction without a summary", domain.CompactionChanged{ID: "c1", Status: domain.CompactionDone},
			`{"sessionUpdate":"compaction_update","compactionId":"c1","status":"completed"}`},
		{"compaction fails", domain.CompactionChanged{ID: "c1", Status: domain.CompactionFailed, Summary: "x", Error: "why"},
			`{"sessionUpdate":"compaction_update","compactionId":"c1","status":"failed","error":"why"}`},
		{"compaction is cancelled", domain.CompactionChanged{ID: "c1", Status: domain.CompactionCancelled, Summary: "x", Error: "why"},
			`{"sessionUpdate":"compaction_update","compactionId":"c1","status":"cancelled"}`},
		{"notice", domain.Notice{Severity: "odd", Title: "T", Detail: "D"}, `{"sessionUpdate":"notice","severity":"info","title":"T","description":"D"}`},
		{"a notice for programs", domain.Notice{Severity: "error", Title: "T", Reason: domain.SessionTaken},
			`{"sessionUpdate":"notice","severity":"error","title":"T","_meta":{"berth":{"reason":"SESSION_TAKEN"}}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := updateJSON(t, c.u, false); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestUpdates_Zeroclaw(t *testing.T) {
	out := []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: "a"}}, domain.Diff{Path: "/x"}, domain.ContentBlock{Block: domain.Text{Text: "b"}}}
	const content = `"content":[{"type":"content","content":{"type":"text","text":"a"}},{"type":"diff","path":"/x","oldText":"","newText":""},{"type":"content","content":{"type":"text","text":"b"}}]`
	cases := []struct {
		name string
		u    domain.Update
		want string
	}{
		{"ended", domain.CallChanged{ID: "c", Status: domain.CallFailed, Content: out}, `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed",` + content + `,"rawOutput":"ab","body":"ab"}`},
		{"ended with output", domain.CallChanged{ID: "c", Status: domain.CallCompleted, Content: out, RawOutput: []byte(`{}`)},
			`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed",` + content + `,"rawOutput":{},"body":"ab"}`},
		{"on the way", domain.CallChanged{ID: "c", Status: domain.CallInProgress, Content: out}, `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress",` + content + `}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := updateJSON(t, c.u, true); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Whatever its size, an update makes a valid line that clients accept, and
// says what is missing.
func TestUpdates_TooLong(t *testing.T) {
	big := strings.Repeat("\x01é", 1<<20) // six bytes on the wire for one
	many := func(n int) (list []domain.CallContent) {
		for range n {
			list = append(list, domain.ContentBlock{Block: domain.Text{Text: big[:1<<17]}})
		}
		return list
	}
	var plan []domain.PlanEntry
	for range 5000 {
		plan = append(plan, domain.PlanEntry{Content: big[:4000]})
	}
	cases := []struct {
		name string
		u    domain.Update
		says string
	}{
		{"text", domain.AgentText{ID: "m", Text: big}, "bytes left out here]"},
		{"diff", domain.CallOpened{ID: "c", Title: "E", Content: []domain.CallContent{domain.Diff{Path: "/a", OldText: big, NewText: big}}}, "bytes left out here]"},
		{"many contents", domain.CallChanged{ID: "c", Content: many(5000)}, "more left out here]"},
		{"input", domain.CallOpened{ID: "c", Title: "E", RawInput: []byte(`"` + strings.Repeat("x", 2<<20) + `"`)}, `{"truncated":true,"bytes":2097154}`},
		{"image", domain.UserMessage{Block: domain.Image{MIME: "image/png", Data: make([]byte, 9<<20)}}, "[image image/png, 9437184 bytes, left out here]"},
		{"audio", domain.UserMessage{Block: domain.Audio{MIME: "audio/wav", Data: make([]byte, 9<<20)}}, "[audio audio/wav, 9437184 bytes, left out here]"},
		{"blob", domain.UserMessage{Block: domain.Resource{URI: "file:///b", Blob: make([]byte, 9<<20), Binary: true}}, `"type":"resource_link","uri":"file:///b"`},
		{"everything at once", domain.CallOpened{ID: domain.CallID(big), Title: big, Name: big, Content: append(many(50), domain.Diff{Path: "/" + big, OldText: big, NewText: big}),
			Locations: make([]domain.Location, 0), RawInput: []byte(big)}, "left out here]"},
		{"plan", domain.PlanChanged{Entries: plan}, `"plan"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := updateJSON(t, c.u, false); !strings.Contains(got, c.says) {
				t.Errorf("%.200s… does not say %s", got, c.says)
			}
		})
	}
}

// TestUpdates_ADeliveryIsNeverCut: it is the one message of ours that may be
// longer than 10 MiB, and everything else in it keeps its bounds.
func TestUpdates_ADeliveryIsNeverCut(t *testing.T) {
	data := bytes.Repeat([]byte{0xA5, 1, 2}, domain.MaxBlobBytes/3+1)[:domain.MaxBlobBytes]
	file := domain.FileContent{File: domain.Attachment{URI: "attachment://deliver/ab.bin"}, Title: "T", Delivered: true, Data: data}
	long := domain.ContentBlock{Block: domain.Text{Text: strings.Repeat("x", 2<<20)}}
	for _, zeroclaw := range []bool{false, true} {
		got := updateJSON(t, domain.CallChanged{ID: "c", Status: domain.CallCompleted, Content: []domain.CallContent{long, file, long}}, zeroclaw)
		if !strings.Contains(got, `"blob":"`+base64.StdEncoding.EncodeToString(data)+`"}}`) {
			t.Errorf("zeroclaw %t: the file is not whole in %d bytes", zeroclaw, len(got))
		}
		if most := base64.StdEncoding.EncodedLen(len(data)) + 3<<20; len(got) > most {
			t.Errorf("zeroclaw %t: %d bytes, more than %d", zeroclaw, len(got), most)
		}
		var u struct{ Body string }
		if err := json.Unmarshal([]byte(got), &u); err != nil || len(u.Body) > bodyLimit+100 {
			t.Errorf("body of %d bytes, %v", len(u.Body), err)
		}
	}
	got := updateJSON(t, domain.CallChanged{ID: "c", Content: []domain.CallContent{domain.FileContent{
		File: domain.Attachment{Path: "/p/a.png", MIME: "image/png"}, Data: data}}}, false)
	if !strings.Contains(got, `"type":"resource_link","uri":"file:///p/a.png"`) || len(got) > 1000 {
		t.Errorf("a picture too large for a message: %.200s…", got)
	}
}

func TestCut(t *testing.T) {
	cases := []struct {
		s     string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc\n[… 1 bytes left out here]"},
		{"aéé", 2, "a\n[… 4 bytes left out here]"},
		{"a日本", 3, "a\n[… 6 bytes left out here]"},
		{"a日本", 4, "a日\n[… 3 bytes left out here]"},
		{"\x80\x80\x80\x80\x80\x80", 4, "\x80\x80\x80\x80\n[… 2 bytes left out here]"},
	}
	for _, c := range cases {
		if got := cut(c.s, c.limit); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.limit, got, c.want)
		}
	}
}

func TestVisible(t *testing.T) {
	notices := domain.ClientInfo{Notices: true}
	cases := []struct {
		name string
		u    domain.Update
		info domain.ClientInfo
		want domain.Update // nil when hidden
	}{
		{"turn started", domain.TurnStarted{}, notices, nil},
		{"turn ended", domain.TurnEnded{Turn: "t", Stop: domain.StopCancelled}, notices, nil},
		{
			"turn that had ended", domain.TurnEnded{Turn: "t", Stop: domain.StopCancelled, Past: true}, domain.ClientInfo{},
			domain.TurnEnded{Turn: "t", Stop: domain.StopCancelled, Past: true},
		},
		{"usage of an unknown window", domain.UsageChanged{Used: 5}, notices, nil},
		{"info that changes nothing", domain.InfoChanged{}, notices, nil},
		{"a compaction", domain.CompactionChanged{ID: "c"}, domain.ClientInfo{Compaction: true}, domain.CompactionChanged{ID: "c"}},
		{"a compaction where it is unknown", domain.CompactionChanged{ID: "c"}, notices, nil},
		{"a summary", domain.CompactionText{ID: "c", Text: "a"}, domain.ClientInfo{Compaction: true}, domain.CompactionText{ID: "c", Text: "a"}},
		{"a summary where it is unknown", domain.CompactionText{ID: "c", Text: "a"}, notices, nil},
		{"a notice", domain.Notice{Severity: "info", Title: "T"}, notices, domain.Notice{Severity: "info", Title: "T"}},
		{"a notice without a title", domain.Notice{Severity: "error"}, notices, nil},
		{"a hint where notices are unknown", domain.Notice{Severity: "warning", Title: "T"}, domain.ClientInfo{}, nil},
		{"an error where notices are unknown", domain.Notice{Severity: "error", Title: "T"}, domain.ClientInfo{}, domain.AgentText{Text: "T\n\n"}},
		{"with its detail", domain.Notice{Severity: "error", Title: "T", Detail: "D"}, domain.ClientInfo{}, domain.AgentText{Text: "T: D\n\n"}},
		{"text", domain.AgentText{Text: "a"}, domain.ClientInfo{}, domain.AgentText{Text: "a"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, shown := visible(c.u, c.info)
			if shown != (c.want != nil) || shown && got != c.want {
				t.Errorf("got %#v, %v; want %#v", got, shown, c.want)
			}
		})
	}
}

// FuzzUpdate: whatever bytes a model or a tool produces, the frame is valid.
func FuzzUpdate(f *testing.F) {
	f.Add("text", []byte(`{"a":1}`), int64(3))
	f.Add("\xff\u2028\x00", []byte("{\n}"), int64(-1))
	f.Add(strings.Repeat("\x1f", 100), []byte("nul\x00"), int64(1<<40))
	f.Fuzz(func(t *testing.T, s string, raw []byte, n int64) {
		for _, u := range []domain.Update{
			domain.AgentText{ID: domain.MessageID(s), Text: s},
			domain.UserMessage{Block: domain.Resource{URI: s, MIME: s, Text: s}},
			domain.UserMessage{Block: domain.Image{MIME: s, Data: raw}},
			domain.UserMessage{Block: domain.Attachment{Path: "/" + s, Name: s, URI: s, Size: n}},
			domain.CallOpened{ID: "c" + domain.CallID(s), Name: s, Title: "t" + s, Kind: domain.ToolKind(s), RawInput: raw,
				Locations: []domain.Location{{Path: "/" + s, Line: int(n)}}, Content: []domain.CallContent{domain.Diff{Path: "/" + s, OldText: s, NewText: s}}},
			domain.CallChanged{ID: "c", Status: domain.CallCompleted, Title: s, RawOutput: raw},
			domain.CompactionChanged{ID: "c" + domain.CompactionID(s), Status: domain.CompactionDone, Summary: s},
			domain.CompactionText{ID: "c" + domain.CompactionID(s), Text: s},
			domain.PlanChanged{Entries: []domain.PlanEntry{{Content: s, Priority: s, Status: s}}},
			domain.UsageChanged{Used: n, Size: n, Cost: &domain.Cost{Amount: float64(n) / 3, Currency: "USD"}},
			domain.InfoChanged{Title: s},
			domain.Notice{Severity: s, Title: "t" + s, Detail: s},
		} {
			for _, zeroclaw := range []bool{false, true} {
				c := NewChecker()
				c.zeroclaw = zeroclaw
				if out := frame(u, zeroclaw); !json.Valid(out) {
					t.Fatalf("%T: not JSON: %q", u, out)
				} else if err := c.Agent(out); err != nil {
					t.Fatalf("%T: %v\n%q", u, err, out)
				}
			}
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	cases := []struct {
		name string
		u    domain.Update
	}{
		{"text", domain.AgentText{ID: "0197f0c2-1111-7000-8000-000000000001-m3", Text: "The rounding happens twice, "}},
		{"thought", domain.AgentThought{ID: "0197f0c2-1111-7000-8000-000000000001-m2", Text: "Two roundings, the inner one is wrong."}},
		{"call_in_progress", domain.CallChanged{ID: "0197f0c2-1111-7000-8000-000000000001-c1", Status: domain.CallInProgress}},
		{"call_completed", domain.CallChanged{ID: "0197f0c2-1111-7000-8000-000000000001-c1", Status: domain.CallCompleted,
			Content: []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: "41 lines of total.go"}}}, RawOutput: []byte(`{"lines":41}`)}},
		{"call_opened", domain.CallOpened{ID: "c1", Name: "edit_file", Title: "Edit total.go", Kind: domain.KindEdit, Status: domain.CallPending,
			Content:   []domain.CallContent{domain.Diff{Path: "/proj/total.go", OldText: "return round(round(x))\n", NewText: "return round(x)\n"}},
			Locations: []domain.Location{{Path: "/proj/total.go", Line: 17}}, RawInput: []byte(`{"path":"/proj/total.go"}`)}},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				s := &sessionUpdate{id: "0197f0c2-1111-7000-8000-000000000001", update: c.u}
				buf = s.AppendJSON(buf[:0])
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}

func BenchmarkPrompt(b *testing.B) {
	raw := []byte(`[{"type":"text","text":"Make total() round once"},{"type":"resource","resource":{"uri":"file:///proj/b.bin","blob":"` +
		strings.Repeat("QUJD", 1<<18) + `"}}]`)
	for _, c := range []struct {
		name string
		raw  []byte
	}{{"text", []byte(`[{"type":"text","text":"Make total() round once"}]`)}, {fmt.Sprintf("blob_%dKiB", len(raw)>>10), raw}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.raw)))
			for b.Loop() {
				r := contentReader{maxBlobs: 32 << 20}
				if _, err := r.prompt(c.raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
