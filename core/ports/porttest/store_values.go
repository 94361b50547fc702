package porttest

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func valueChecks() []check[StoreHarness] {
	return []check[StoreHarness]{
		{"record-types", "every kind of record comes back exactly as it was appended", recordTypesKept},
		{"record-nil-empty", "a list that is empty and one that is not there mean different things", nilAndEmptyKept},
		{"record-file-bytes", "a journal names the files that were shown and does not grow by them", fileBytesLeftOut},
		{"record-unknown", "a record of a kind this version does not know is kept byte for byte", unknownKept},
		{"record-big", "a record of 8 MiB is kept", bigKept},
		{"text-kept", "NUL, emoji and everything else that is text is kept", textKept},
		{"text-invalid", "text that is not UTF-8 is refused in every field, not mended in silence", textRefused},
		{"bytes-kept", "bytes are kept whatever they are", bytesKept},
		{"times", "times are kept to the microsecond and come back in UTC", timesKept},
		{"no-aliasing", "nobody can change stored data through a value he still holds", noAliasing},
	}
}

func recordTypesKept(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	var want []domain.Record
	for seed := range 7 {
		for _, rec := range recordTypes() {
			want = append(want, filled(rec, seed+1))
		}
	}
	for _, rec := range recordTypes() {
		if _, ok := rec.(domain.Unknown); !ok {
			want = append(want, rec) // all fields zero
		}
	}
	r.append(id, 0, want...)
	r.wantEntries(id, want...)
}

// fileBytesLeftOut: a journal names the files that were shown and never holds
// them.
func fileBytesLeftOut(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	shown := func(data []byte) domain.CallFinished {
		f := domain.FileContent{File: domain.Attachment{Path: "/p/a", Size: 3}, Title: "t", Delivered: true, Data: data}
		return domain.CallFinished{Call: "c", Content: []domain.CallContent{f}}
	}
	rec := shown([]byte("abc"))
	r.append(id, 0, rec)
	r.wantEntries(id, shown(nil))
	if f := rec.Content[0].(domain.FileContent); string(f.Data) != "abc" {
		t.Errorf("storing took the bytes from the one who still shows them: %q", f.Data)
	}
}

func nilAndEmptyKept(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	recs := []domain.Record{
		domain.CallFinished{Call: "a"},
		domain.CallFinished{Call: "b", Content: []domain.CallContent{}, Locations: []domain.Location{}, RawOutput: []byte{}},
		domain.UserSaid{Blocks: []domain.Block{}},
		domain.AssistantSaid{Parts: []domain.MessagePart{}, Calls: []domain.ModelCall{}, Opaque: &domain.Opaque{}},
		domain.AssistantSaid{Parts: []domain.MessagePart{{}}, Calls: []domain.ModelCall{{Args: []byte{}}, {}}},
		domain.PlanSet{Entries: []domain.PlanEntry{}},
		domain.PermissionGiven{Rules: []domain.Rule{}},
		domain.PermissionGiven{Rules: []domain.Rule{{Words: []string{}}, {}}},
		domain.TurnFinished{Failure: &domain.Failure{}},
		domain.AssistantSaid{Cost: new(domain.MicroUSD)},
		domain.Compacted{Plain: &domain.Failure{}, Cost: new(domain.MicroUSD)},
	}
	r.append(id, 0, recs...)
	r.wantEntries(id, recs...)
}

func unknownKept(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	recs := []domain.Record{
		domain.Unknown{Kind: "hologram", Version: 3, Payload: []byte("{\"b\":1, \"a\":2.50, \"a\":\"\\u00e9\"}\n")},
		domain.Unknown{Kind: "raw", Version: 1, Payload: []byte{0, 1, 0xff, 0xfe, 0}},
		domain.Unknown{Kind: "text", Version: 1 << 30, Payload: []byte("plain text")},
		said("known"),
		domain.Unknown{Kind: "user_said", Version: 99, Payload: []byte(`{"from":"the future"}`)},
	}
	r.append(id, 0, recs...)
	r.wantEntries(id, recs...)
}

func bigKept(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	const size = 8 << 20
	recs := []domain.Record{
		said(strings.Repeat("0123456\n", size/8)),
		domain.CallFinished{Call: "c", Text: strings.Repeat("é", size/2)},
		domain.UserSaid{Blocks: []domain.Block{domain.Image{Data: bytes.Repeat([]byte{0, 0xff, 1}, size/3)}}},
		said("small"),
	}
	r.append(id, 0, recs...)
	got := r.entries(id, 0)
	if len(got) != len(recs) {
		t.Fatalf("the journal holds %d records, want %d", len(got), len(recs))
	}
	for i, e := range got {
		if !reflect.DeepEqual(e.Record, recs[i]) { // without printing megabytes
			t.Errorf("big record %d (%T) came back changed", i+1, e.Record)
		}
	}
}

func textKept(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.session(1)
	row.Title, row.CwdGiven, row.Client = "a\x00b 🚢 é", "/a b/☃", "c\"\\'\n"
	row.Label, row.Key = "l'; DROP TABLE sessions; --", "k%_\""
	row.Additional = []string{"/a\",\"b", "", "/\\"}
	r.create(row)
	r.wantSame(r.load(row.ID), row, "the session")
	var recs []domain.Record
	for _, text := range []string{
		"", " ", "\x00", "a\x00", "\x00a", "🚢", "e\u0301", "\u2028\u2029", "\ufeff", "\ufffd", "\\", `\"`, `\u0041`, "\\\x00",
		`{"json":[1,2]}`, "line\nline\r\n\ttab\v\f\b\a\x1b[0m\x7f", "</script>", strings.Repeat("\x00", 5000), strings.Repeat("\"", 5000),
	} {
		recs = append(recs, said(text))
	}
	recs = append(recs, domain.TitleSet{Title: "t\x00🚢"})
	r.append(row.ID, 0, recs...)
	r.wantEntries(row.ID, recs...)
	row = r.load(row.ID)
	r.wantSame(row.Title, "t\x00🚢", "the title")
}

func textRefused(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	for _, rec := range recordTypes() {
		for k := 0; ; k++ {
			bad, ok := withText(rec, k, "fine until \xff here")
			if !ok {
				break
			}
			_, err := r.store.Append(r.ctx, id, 0, bad)
			r.wantCode(err, domain.InvalidArgument, fmt.Sprintf("append of %T with its text %d not UTF-8", rec, k))
		}
	}
	for _, bad := range []string{"\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "a\xe2\x98"} {
		_, err := r.store.Append(r.ctx, id, 0, said(bad))
		r.wantCode(err, domain.InvalidArgument, fmt.Sprintf("append of %q", bad))
	}
	r.wantEntries(id)
}

func bytesKept(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	var recs []domain.Record
	for _, b := range [][]byte{nil, {}, {0}, {0xff}, all, []byte(`{"path": "a.txt",  "n": 1e3}`), []byte("{\"t\":\"\\ud83d\\ude00\x00\"}\n")} {
		recs = append(recs,
			domain.AssistantSaid{Calls: []domain.ModelCall{{ID: "c", Args: b}}, Opaque: &domain.Opaque{Provider: "p", Data: b}},
			domain.ClientEvent{Type: "e", Payload: b},
			domain.CallBegan{Update: domain.CallOpened{RawInput: b}},
			domain.CallFinished{RawOutput: b, Content: []domain.CallContent{domain.ContentBlock{Block: domain.Resource{Blob: b, Binary: true}}}},
		)
	}
	r.append(id, 0, recs...)
	r.wantEntries(id, recs...)
}

func timesKept(t TB, h StoreHarness) {
	r := h.open(t)
	east := time.FixedZone("east", 14*60*60)
	for i, at := range []time.Time{
		time.Date(2026, 11, 30, 23, 59, 59, 999999999, time.UTC),
		time.Date(2026, 11, 30, 23, 59, 59, 999999999, east),
		time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999500, time.UTC),
		time.Date(2038, 1, 19, 3, 14, 8, 1000, time.UTC),
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
		{},
	} {
		row := r.session(i)
		row.CreatedAt, row.UpdatedAt = at, at.Add(time.Microsecond)
		r.create(row)
		got := r.load(row.ID)
		if want := micro(row.CreatedAt); !got.CreatedAt.Equal(want) || got.CreatedAt.Location() != time.UTC {
			t.Errorf("created at %v came back as %v", row.CreatedAt, got.CreatedAt)
		}
		if want := micro(row.UpdatedAt); !got.UpdatedAt.Equal(want) || got.UpdatedAt.Location() != time.UTC {
			t.Errorf("updated at %v came back as %v", row.UpdatedAt, got.UpdatedAt)
		}
	}
}

func noAliasing(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.session(1)
	r.create(row)
	row.Additional[0] = "/scribbled"
	r.wantSame(r.load(row.ID), r.session(1), "the session after its list was overwritten")
	r.load(row.ID).Additional[0] = "/scribbled"
	r.list(domain.SessionQuery{}).Sessions[0].Additional[0] = "/scribbled"
	r.wantSame(r.load(row.ID), r.session(1), "the session after a read list was overwritten")

	var recs, want []domain.Record
	for _, rec := range recordTypes() {
		recs, want = append(recs, filled(rec, 1)), append(want, filled(rec, 1))
	}
	r.append(row.ID, 0, recs...)
	for i, rec := range recs {
		scribble(reflect.ValueOf(rec))
		recs[i] = nil
	}
	r.wantEntries(row.ID, want...)
	for _, e := range r.entries(row.ID, 0) {
		scribble(reflect.ValueOf(e.Record))
	}
	r.wantEntries(row.ID, want...)
}
