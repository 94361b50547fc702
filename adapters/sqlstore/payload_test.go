package sqlstore

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
)

// The suite (porttest.Store) proves that every record comes back. These tests
// are about the stored form itself.

func sample() []domain.Record {
	call := domain.ModelCall{ID: "c1", ProviderID: "call_1", Name: "read_file", Args: []byte(`{"path":"a\n.txt"}`)}
	cost := domain.MicroUSD(1500)
	return []domain.Record{
		domain.UserSaid{Turn: "t1", ID: "m1", Blocks: []domain.Block{
			domain.Text{Text: "hello \"you\"\n"},
			domain.Resource{URI: "file:///a", Blob: []byte{0xff, 0}, Binary: true},
			domain.Attachment{Path: "/w/uploads/x.png", SHA256: "abc", MIME: "image/png", Size: math.MaxInt64},
		}},
		domain.AssistantSaid{
			Turn: "t1", Model: domain.ModelRef{Provider: "p", Model: "m/n"}, Parts: []domain.MessagePart{{ID: "m2", Text: "hi"}, {ID: "m3", Thought: true}},
			Calls: []domain.ModelCall{call}, Opaque: &domain.Opaque{Provider: "p", Data: []byte{1, 0xfe}}, Finish: domain.FinishCalls,
			Usage: domain.Usage{Input: math.MinInt64, Output: -1}, Window: 1,
		},
		domain.CallBegan{Turn: "t1", Call: call, Update: domain.CallOpened{
			ID: "c1", Kind: domain.KindRead, Status: domain.CallPending, Locations: []domain.Location{{Path: "/a", Line: 3}},
			Content: []domain.CallContent{domain.Diff{Path: "/a", NewText: "n", Created: true}, domain.ContentBlock{Block: domain.Link{URI: "u", Size: 2}}},
		}},
		domain.PermissionGiven{Turn: "t1", Call: "c1", Outcome: domain.Selected, Option: "allow-once", Rules: []domain.Rule{{Allow: true, Tool: "edit_file", Scope: "/w"}}},
		domain.CallFinished{Turn: "t1", Call: "c1", Failed: true, Text: "no", Content: []domain.CallContent{}},
		domain.PlanSet{Turn: "t1", Entries: []domain.PlanEntry{{Content: "x", Priority: "high", Status: "pending"}}},
		domain.TitleSet{Title: "A title"},
		domain.ClientEvent{Type: "e", Payload: []byte(`[1, 2]`), ForModel: true},
		domain.UserSaid{Turn: "t2", ID: "m4", Command: "compact"},
		domain.AssistantSaid{Turn: "t1", Agent: "a", Cost: &cost, Estimate: 9},
		domain.CallFinished{Turn: "t1", Call: "c1", Text: "no", Limit: 1},
		domain.Compacted{
			Turn: "t1", ID: "k1", Agent: "a", Model: domain.ModelRef{Provider: "p", Model: "m"}, Trimmed: 5, Through: 4, Largest: 3,
			Summary: "s", Plain: &domain.Failure{Code: domain.CostLimit, Msg: "no"}, Cancelled: true, Before: 2, After: 1, Window: 9,
			Usage: domain.Usage{Input: 1}, Cost: new(domain.MicroUSD),
		},
		domain.Streamed{
			Turn: "t1", Agent: "a", Model: domain.ModelRef{Provider: "p", Model: "m"},
			Parts: []domain.MessagePart{{ID: "m2", Text: "hel"}, {ID: "m3", Thought: true, Text: "h"}},
		},
		domain.TurnFinished{Turn: "t1", Stop: domain.StopMaxTurnRequests, Failure: &domain.Failure{Code: domain.RateLimited, Msg: "wait"}, Usage: domain.Usage{CachedRead: 4}},
	}
}

// TestPayload_Golden pins the stored form: what is written today must be
// readable for ever.
func TestPayload_Golden(t *testing.T) {
	want := []string{
		`user_said {"turn":"t1","id":"m1","blocks":[{"type":"text","text":"hello \"you\"\n"},{"type":"resource","uri":"file:///a","data":{"b64":"/wA="},"binary":true},{"type":"attachment","path":"/w/uploads/x.png","sha256":"abc","mime":"image/png","size":9223372036854775807}]}`,
		`assistant_said {"turn":"t1","provider":"p","model":"m/n","parts":[{"id":"m2","text":"hi"},{"id":"m3","thought":true}],"calls":[{"id":"c1","provider_id":"call_1","name":"read_file","args":"{\"path\":\"a\\n.txt\"}"}],"opaque":{"provider":"p","data":{"b64":"Af4="}},"finish":"calls","usage":{"input":-9223372036854775808,"output":-1},"window":1}`,
		`call_began {"turn":"t1","call":{"id":"c1","provider_id":"call_1","name":"read_file","args":"{\"path\":\"a\\n.txt\"}"},"update":{"id":"c1","kind":"read","status":"pending","content":[{"type":"diff","path":"/a","new_text":"n","created":true},{"type":"content","block":{"type":"link","uri":"u","size":2}}],"locations":[{"path":"/a","line":3}]}}`,
		`permission_given {"turn":"t1","call":"c1","outcome":"selected","option":"allow-once","rules":[{"allow":true,"tool":"edit_file","scope":"/w"}]}`,
		`call_finished {"turn":"t1","call":"c1","failed":true,"text":"no","content":[]}`,
		`plan_set {"turn":"t1","entries":[{"content":"x","priority":"high","status":"pending"}]}`,
		`title_set {"title":"A title"}`,
		`client_event {"type":"e","payload":"[1, 2]","for_model":true}`,
		`user_said {"turn":"t2","id":"m4","command":"compact"}`,
		`assistant_said {"turn":"t1","agent":"a","cost":{"micro_usd":1500},"estimate":9}`,
		`call_finished {"turn":"t1","call":"c1","text":"no","limit":1}`,
		`compacted {"turn":"t1","id":"k1","agent":"a","provider":"p","model":"m","trimmed":5,"through":4,"largest":3,"summary":"s","plain":{"code":"cost limit","msg":"no"},"cancelled":true,"before":2,"after":1,"window":9,"usage":{"input":1},"cost":{}}`,
		`streamed {"turn":"t1","agent":"a","provider":"p","model":"m","parts":[{"id":"m2","text":"hel"},{"id":"m3","thought":true,"text":"h"}]}`,
		`turn_finished {"turn":"t1","stop":"max_turn_requests","failure":{"code":"rate limited","msg":"wait"},"usage":{"cached_read":4}}`,
	}
	for i, rec := range sample() {
		p, err := encode(rec)
		if err != nil {
			t.Fatalf("%T: %v", rec, err)
		}
		if diff := cmp.Diff(want[i], p.kind+" "+p.text); diff != "" {
			t.Errorf("%T is stored as (-want +got)\n%s", rec, diff)
		}
		if p.version != 1 || !json.Valid([]byte(p.text)) {
			t.Errorf("%T: version %d, JSON %v", rec, p.version, json.Valid([]byte(p.text)))
		}
		got, err := decode(p.kind, p.version, p.text)
		if err != nil {
			t.Fatalf("%T: %v", rec, err)
		}
		if diff := cmp.Diff(rec, got); diff != "" {
			t.Errorf("%T came back changed (-want +got)\n%s", rec, diff)
		}
	}
}

// TestDecode_Tolerates lists what may stand in a payload that this code did
// not write itself.
func TestDecode_Tolerates(t *testing.T) {
	for name, tt := range map[string]struct {
		kind, body string
		want       domain.Record
	}{
		"an unknown member":  {kindTitleSet, `{"color":{"a":[1,-2.5e3,"x\"}",true,null],"b":{}},"title":"t","n":null}`, domain.TitleSet{Title: "t"}},
		"white space":        {kindTitleSet, " {\n\t\"title\" : \"t\" ,\r \"x\" : [ ] } ", domain.TitleSet{Title: "t"}},
		"any order":          {kindUserSaid, `{"blocks":[{"text":"x","type":"text"}],"turn":"t"}`, domain.UserSaid{Turn: "t", Blocks: []domain.Block{domain.Text{Text: "x"}}}},
		"every escape":       {kindTitleSet, `{"title":"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00\ud83d"}`, domain.TitleSet{Title: "\"\\/\b\f\n\r\t\x00é😀\ufffd"}},
		"a flag that is off": {kindClientEvent, `{"type":"e","for_model":false}`, domain.ClientEvent{Type: "e"}},
		"a number for a name": {
			kindTurnFinished, `{"stop":77,"failure":{"code":-1}}`, domain.TurnFinished{Stop: 77, Failure: &domain.Failure{Code: -1}},
		},
		"a later version": {kindTitleSet + "", `{"title":{"text":"t"}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			version := 1
			if tt.want == nil {
				version, tt.want = 2, domain.Unknown{Kind: tt.kind, Version: 2, Payload: []byte(tt.body)}
			}
			got, err := decode(tt.kind, version, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecode_Refuses(t *testing.T) {
	for name, tt := range map[string]struct{ kind, body string }{
		"nothing":              {kindTitleSet, ``},
		"a cut payload":        {kindTitleSet, `{"title":"t"`},
		"a cut string":         {kindTitleSet, `{"title":"t\"}`},
		"something behind":     {kindTitleSet, `{"title":"t"}x`},
		"no colon":             {kindTitleSet, `{"title" "t"}`},
		"no comma":             {kindTitleSet, `{"title":"t" "x":1}`},
		"the wrong type":       {kindTitleSet, `{"title":1}`},
		"a bad escape":         {kindTitleSet, `{"title":"\x"}`},
		"a bad code":           {kindTitleSet, `{"title":"\u12g4"}`},
		"a cut code":           {kindTitleSet, `{"title":"\u12"}`},
		"an unknown block":     {kindUserSaid, `{"blocks":[{"type":"hologram"}]}`},
		"a block in a block":   {kindUserSaid, `{"blocks":[{"block":{"type":"text"}}]}`},
		"an unknown content":   {kindCallFinished, `{"content":[{"type":"text"}]}`},
		"an unknown stop":      {kindTurnFinished, `{"stop":"lunch"}`},
		"bad base64":           {kindClientEvent, `{"payload":{"b64":"*"}}`},
		"a number too big":     {kindAssistantSaid, `{"window":9223372036854775808}`},
		"a number too long":    {kindAssistantSaid, `{"window":00000000000000000000001}`},
		"no number":            {kindAssistantSaid, `{"window":-}`},
		"a list that ends ill": {kindPlanSet, `{"entries":[{},]}`},
		"an open skipped list": {kindTitleSet, `{"x":[[[`},
		"a skipped nothing":    {kindTitleSet, `{"x":,}`},
	} {
		t.Run(name, func(t *testing.T) {
			rec, err := decode(tt.kind, 1, tt.body)
			if !errors.Is(err, errPayload) {
				t.Errorf("decode gave %#v, %v", rec, err)
			}
		})
	}
}

func TestEncode_Refuses(t *testing.T) {
	for name, rec := range map[string]domain.Record{
		"nil":                         nil,
		"a pointer":                   &domain.TitleSet{},
		"a nil block":                 domain.UserSaid{Blocks: []domain.Block{nil}},
		"content without a block":     domain.CallFinished{Content: []domain.CallContent{domain.ContentBlock{}}},
		"nil content of an update":    domain.CallBegan{Update: domain.CallOpened{Content: []domain.CallContent{nil}}},
		"an unknown kind we know":     domain.Unknown{Kind: kindTitleSet, Version: 1, Payload: []byte("{}")},
		"an unknown without a kind":   domain.Unknown{Version: 1},
		"an unknown kind, not UTF-8":  domain.Unknown{Kind: "\xff"},
		"a name that is not UTF-8":    domain.AssistantSaid{Finish: "\xff"},
		"a message that is not UTF-8": domain.TurnFinished{Failure: &domain.Failure{Msg: "\xff"}},
	} {
		if p, err := encode(rec); !domain.HasCode(err, domain.InvalidArgument) {
			t.Errorf("%s: encode gave %+v, %v", name, p, err)
		}
	}
}

func TestChecksum_CoversEverything(t *testing.T) {
	var s summer
	base := recordRow{at: 1, kind: "k", ver: 1, body: strings.Repeat("x", 3000)}
	sum := s.checksum("id", 1, base)
	if again := s.checksum("id", 1, base); again != sum {
		t.Fatalf("the same record gave %d and %d", sum, again)
	}
	for name, changed := range map[string]int64{
		"id":      s.checksum("ie", 1, base),
		"place":   s.checksum("id", 2, base),
		"time":    s.checksum("id", 1, recordRow{at: 2, kind: base.kind, ver: base.ver, body: base.body}),
		"kind":    s.checksum("id", 1, recordRow{at: 1, kind: "l", ver: base.ver, body: base.body}),
		"version": s.checksum("id", 1, recordRow{at: 1, kind: "k", ver: 2, body: base.body}),
		"body":    s.checksum("id", 1, recordRow{at: 1, kind: "k", ver: 1, body: base.body[1:] + "y"}),
		"borders": s.checksum("dx", 1, recordRow{at: 1, kind: "ki", ver: 1, body: base.body[1:]}),
	} {
		if changed == sum {
			t.Errorf("another %s has the same checksum", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	kinds := []string{
		kindUserSaid, kindAssistantSaid, kindCallBegan, kindPermissionGiven, kindCallFinished,
		kindPlanSet, kindTitleSet, kindClientEvent, kindTurnFinished,
	}
	for i, rec := range sample() {
		p, err := encode(rec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, p.text)
	}
	f.Fuzz(func(t *testing.T, kind int, body string) {
		rec, err := decode(kinds[uint(kind)%uint(len(kinds))], 1, body)
		if err != nil {
			return
		}
		// What can be read can be written again, to the same, unless the body
		// held what is never written.
		p, err := encode(rec)
		if err != nil {
			return
		}
		again, err := decode(p.kind, p.version, p.text)
		if err != nil {
			t.Fatalf("%s reads, is written as %s, and that does not read: %v", body, p.text, err)
		}
		if diff := cmp.Diff(rec, again); diff != "" {
			t.Errorf("(-first +second)\n%s", diff)
		}
	})
}
