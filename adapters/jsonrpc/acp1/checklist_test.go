package acp1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Lines of the conformance checklist that no test of tck_test.go shows, as far
// as this level can show them. Framing and envelopes are shown in jsonrpc.

func TestACP_4_13_013_absent_params(t *testing.T) {
	open(t, newWorld(), func(r *rig) { r.ok(methodList, ``) })
}

func TestACP_4_13_014_positional_params(t *testing.T) {
	open(t, newWorld(), func(r *rig) { r.fails(-32602, methodNew, `["/proj",[]]`) })
}

func TestACP_4_13_025_our_latest_version(t *testing.T) {
	for _, v := range []string{"0", "1", "2", "99"} {
		run(t, newWorld(), func(r *rig) {
			want(t, v, r.ok("initialize", `{"protocolVersion":`+v+`}`)["protocolVersion"], `1`)
		})
	}
}

func TestACP_4_13_026_version_is_an_integer(t *testing.T) {
	w := newWorld()
	w.set = func(p *Params) { p.Dialect = DialectACP }
	for _, p := range []string{``, `{}`, `{"protocolVersion":"1"}`, `{"protocolVersion":1.5}`} {
		run(t, w, func(r *rig) { r.fails(-32602, "initialize", p) })
	}
}

// What a client left out is not used, in every combination of what it offers.
func TestACP_4_13_027_every_combination_of_capabilities(t *testing.T) {
	for bits := range 8 {
		yes := func(bit int) bool { return bits&bit != 0 }
		w := newWorld()
		w.notes = []string{"note"}
		w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
			if files, ok := c.Files(); ok != (yes(1) || yes(2)) {
				t.Errorf("combination %b: files %v", bits, ok)
			} else if ok && !yes(1) {
				if _, err := files.ReadText(ctx, id, "/a"); !domain.HasCode(err, domain.Unsupported) {
					t.Errorf("combination %b: read: %v", bits, err)
				}
			} else if ok && !yes(2) {
				if err := files.WriteText(ctx, id, "/a", ""); !domain.HasCode(err, domain.Unsupported) {
					t.Errorf("combination %b: write: %v", bits, err)
				}
			}
			return domain.TurnOutcome{Stop: domain.StopEndTurn}, nil
		}
		run(t, w, func(r *rig) {
			notices := "null"
			if yes(4) {
				notices = "{}"
			}
			r.initialize(fmt.Sprintf(`{"fs":{"readTextFile":%v,"writeTextFile":%v},"session":{"notices":%s}}`, yes(1), yes(2), notices))
			id := r.newSession()
			if n := len(r.drain()); (n == 1) != yes(4) {
				t.Errorf("combination %b: %d notices", bits, n)
			}
			_, before := r.answer(r.prompt(id, "hi"))
			if len(before) != 0 {
				t.Errorf("combination %b: %d messages", bits, len(before))
			}
		})
	}
}

func TestACP_4_13_028_markers_are_objects(t *testing.T) {
	for value, yes := range map[string]bool{`{}`: true, `{"x":1}`: true, `null`: false, `true`: false, `[]`: false, `1`: false} {
		got := clientInfo(objectOf([]byte(`{"clientCapabilities":{"session":{"notices":`+value+`,"compaction":`+value+`},"subagents":`+value+`}}`)), false, nil)
		if got.Notices != yes || got.Compaction != yes || got.Subagents != yes {
			t.Errorf("%s is taken for %v", value, got.Notices)
		}
	}
}

func TestACP_4_13_030_before_initialize(t *testing.T) {
	w := newWorld()
	run(t, w, func(r *rig) {
		for _, m := range []string{methodNew, "session/prompt", methodList, "authenticate"} {
			r.fails(-32600, m, `{"cwd":"/proj","mcpServers":[]}`)
		}
		r.notify(methodUpdate, `{"sessionId":"s"}`)
		r.quiet()
		if len(w.created)+len(w.events) != 0 {
			t.Error("something was done before initialize")
		}
		r.initialize(`{}`)
	})
}

// A capability is true exactly if its method works.
func TestACP_4_13_031_advertised_is_served(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		w := newWorld()
		w.volatile = volatile
		run(t, w, func(r *rig) {
			can := r.initialize(`{}`).in("agentCapabilities")
			session := can.in("sessionCapabilities")
			served := map[string]bool{
				methodLoad: can.flag("loadSession"), methodResume: session.has("resume"), methodList: session.has("list"),
				methodDelete: session.has("delete"), "session/close": session.has("close"), "logout": can.in("auth").has("logout"),
				"session/fork": session.has("fork"),
			}
			for method, yes := range served {
				m, _ := r.answer(r.start(method, `{"sessionId":"gone","cwd":"/proj","mcpServers":[]}`))
				if missing := m.Error != nil && m.Error.Code == -32601; missing == yes {
					t.Errorf("%s is advertised: %v; answer %s %v", method, yes, m.Result, m.Error)
				}
			}
		})
	}
}

func TestACP_4_13_034_a_way_to_sign_in(t *testing.T) {
	run(t, newWorld(), func(r *rig) {
		if len(elementsOf(r.initialize(`{}`)["authMethods"])) == 0 {
			t.Error("authMethods is empty")
		}
	})
}

func TestACP_4_13_035_second_initialize(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		id := r.newSession()
		r.fails(-32600, "initialize", `{"protocolVersion":0}`)
		r.ok("session/prompt", `{"sessionId":"`+id+`","prompt":"hi"}`)
		r.fails(-32002, "session/prompt", `{"sessionId":"gone","prompt":"hi"}`) // still the acp dialect
	})
}

func TestACP_4_13_038_no_auth_error_without_a_cause(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		for _, call := range [][2]string{
			{"session/prompt", `{"sessionId":"gone","prompt":"hi"}`}, {methodLoad, `{"sessionId":"gone","cwd":"/p"}`},
			{"session/stop", `{"sessionId":"gone"}`}, {methodNew, `{"cwd":"x"}`}, {methodUpdate, `{"sessionId":"gone"}`},
		} {
			if m, _ := r.answer(r.start(call[0], call[1])); m.Error == nil || m.Error.Code == -32000 {
				t.Errorf("%s: %v", call[0], m.Error)
			}
		}
	})
}

func TestACP_4_13_045_cwd_is_absolute(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		for _, cwd := range []string{"project", "./project", "..", "~/project", ""} {
			r.fails(-32602, methodNew, `{"cwd":"`+cwd+`","mcpServers":[]}`)
		}
	})
}

func TestACP_4_13_050_the_list_sent_is_complete(t *testing.T) {
	w := newWorld()
	open(t, w, func(r *rig) {
		id := r.ok(methodNew, `{"cwd":"/proj","mcpServers":[],"additionalDirectories":["/a"]}`).text("sessionId")
		for _, m := range []string{methodLoad, methodResume} {
			r.ok("session/close", `{"sessionId":"`+id+`"}`)
			r.ok(m, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`)
		}
		for _, o := range w.opened {
			if len(o.Dirs.Additional) != 0 {
				t.Errorf("opened with %v", o.Dirs.Additional)
			}
		}
	})
}

func TestACP_4_13_056_nothing_before_the_session_is_known(t *testing.T) {
	w := newWorld()
	w.notes = []string{"note"}
	w.commands = []domain.Command{{Name: "compact", Description: "C"}}
	run(t, w, func(r *rig) {
		r.initialize(`{"session":{"notices":{}}}`)
		for range 10 {
			_, before := r.answer(r.start(methodNew, `{"cwd":"/proj","mcpServers":[]}`))
			for _, m := range before {
				if id := objectOf(m.Params).text("sessionId"); !r.knows(id) {
					t.Errorf("an update of session %s came before its response", id)
				}
			}
		}
	})
}

func TestACP_4_13_058_unknown_session_is_not_found(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		e := r.fails(-32002, methodLoad, `{"sessionId":"s-none","cwd":"/proj","mcpServers":[]}`)
		want(t, "data", e.Data, `{"reason":"SESSION_NOT_FOUND","sessionId":"s-none"}`)
		contains(t, e.Message, "Resource not found", "s-none")
	})
}

func TestACP_4_13_060_nothing_follows_load(t *testing.T) {
	w := newWorld()
	w.history = history()
	w.notes = []string{"note"}
	w.commands = []domain.Command{{Name: "compact", Description: "C"}}
	run(t, w, func(r *rig) {
		r.initialize(`{"session":{"notices":{}}}`)
		id := r.newSession()
		r.ok("session/close", `{"sessionId":"`+id+`"}`)
		m, before := r.answer(r.start(methodLoad, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`))
		if !isObject(m.Result) || !strings.HasSuffix(kindsOf(before), historyKinds+" available_commands_update notice") {
			t.Errorf("result %s after %s", m.Result, kindsOf(before))
		}
		time.Sleep(time.Minute)
		r.quiet()
	})
}

func TestACP_4_13_069_close_of_a_closed_session(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		id := r.newSession()
		r.ok("session/close", `{"sessionId":"`+id+`"}`)
		r.ok("session/close", `{"sessionId":"`+id+`"}`)
		r.ok(methodLoad, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`)
	})
}

func TestACP_4_13_073_cursor_ends(t *testing.T) {
	w := newWorld()
	w.pageSize = 3
	open(t, w, func(r *rig) {
		for range 7 {
			r.newSession()
		}
		seen := map[string]bool{}
		cursor := "null"
		for pages := 1; ; pages++ {
			page := r.ok(methodList, `{"cursor":`+cursor+`}`)
			for _, row := range elementsOf(page["sessions"]) {
				seen[objectOf(row).text("sessionId")] = true
			}
			if page["nextCursor"] == nil {
				if pages != 3 || len(seen) != 7 {
					t.Errorf("%d sessions on %d pages", len(seen), pages)
				}
				return
			}
			cursor = string(page["nextCursor"])
		}
	})
}

func TestACP_4_13_074_foreign_cursor(t *testing.T) {
	open(t, newWorld(), func(r *rig) { r.fails(-32602, methodList, `{"cursor":"eyJ2IjoxLCJvZmZzZXQiOjF9"}`) })
}

func TestACP_4_13_085_no_partial_turn(t *testing.T) {
	w := newWorld()
	open(t, w, func(r *rig) {
		id := r.newSession()
		for _, prompt := range []string{`[]`, `[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"aGk="}]`} {
			r.fails(-32602, "session/prompt", `{"sessionId":"`+id+`","prompt":`+prompt+`}`)
		}
		if len(w.prompts) != 0 {
			t.Errorf("%d turns began", len(w.prompts))
		}
	})
}

func TestACP_4_13_086_any_scheme(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		id := r.newSession()
		for _, uri := range []string{"zed:///agent/x", "https://a/b", "docs/readme.md", "file:///a%20b#L3", ""} {
			r.ok("session/prompt", `{"sessionId":"`+id+`","prompt":[{"type":"resource_link","name":"n","uri":"`+uri+`"}]}`)
		}
	})
}

func TestACP_4_13_088_no_echo(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		_, before := r.answer(r.prompt(r.newSession(), "hi"))
		if got := kindsOf(before); got != "agent_message_chunk" {
			t.Errorf("updates: %s", got)
		}
	})
}

func TestACP_4_13_091_every_stop_reason(t *testing.T) {
	for _, stop := range []domain.Stop{domain.StopEndTurn, domain.StopMaxTokens, domain.StopMaxTurnRequests, domain.StopRefusal, domain.StopCancelled} {
		w := newWorld()
		w.turn = func(context.Context, ports.Client, domain.SessionID, domain.Prompt) (domain.TurnOutcome, error) {
			return domain.TurnOutcome{Stop: stop}, nil
		}
		open(t, w, func(r *rig) {
			m, _ := r.answer(r.prompt(r.newSession(), "hi"))
			want(t, "stopReason", objectOf(m.Result)["stopReason"], `"`+stop.String()+`"`)
		})
	}
}

func TestACP_4_13_095_slash_is_text(t *testing.T) {
	w := newWorld()
	open(t, w, func(r *rig) {
		id := r.newSession()
		for _, text := range []string{"/nosuch do it", "/", "//x", "/etc/hosts is odd"} {
			r.answer(r.prompt(id, text))
			if got := w.prompts[len(w.prompts)-1].Blocks[0]; got != (domain.Text{Text: text}) {
				t.Errorf("%q reached the turn as %v", text, got)
			}
		}
	})
}

func TestACP_4_13_103_cancel_with_nothing_running(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		id := r.newSession()
		r.notify("session/cancel", `{"sessionId":"`+id+`"}`)
		r.notify("session/cancel", `{"sessionId":"gone"}`)
		r.notify("session/cancel", `{"sessionId":"a/b"}`)
		r.quiet()
		m, _ := r.answer(r.prompt(id, "hi"))
		want(t, "stopReason", objectOf(m.Result)["stopReason"], `"end_turn"`)
	})
}

func TestACP_4_13_104_cancel_races_with_the_end(t *testing.T) {
	w := newWorld()
	open(t, w, func(r *rig) {
		id := r.newSession()
		for range 100 {
			p := r.prompt(id, "hi")
			r.notify("session/cancel", `{"sessionId":"`+id+`"}`)
			m, _ := r.answer(p)
			if got := objectOf(m.Result).text("stopReason"); got != "cancelled" && got != "end_turn" {
				t.Fatalf("result %s, error %v", m.Result, m.Error)
			}
			r.quiet() // exactly one answer
		}
	})
}

func TestACP_4_13_108_cancel_of_a_foreign_id(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		r.notify("$/cancel_request", `{"requestId":"zzz"}`)
		r.notify("$/cancel_request", `{}`)
		r.quiet()
	})
}

func TestACP_4_13_111_cancel_covers_what_waits(t *testing.T) {
	w := newWorld()
	w.turn = waits
	open(t, w, func(r *rig) {
		id := r.newSession()
		first, second := r.prompt(id, "one"), r.prompt(id, "two")
		r.notify("session/cancel", `{"sessionId":"`+id+`"}`)
		m, _ := r.answer(first)
		for _, m := range []jsonrpc.Message{m, r.lateAnswer(second)} {
			want(t, "stopReason", objectOf(m.Result)["stopReason"], `"cancelled"`)
		}
	})
}

func TestACP_4_13_117_text_is_wrapped(t *testing.T) {
	contains(t, updateJSON(t, domain.CallChanged{ID: "c", Content: []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: "a"}}}}, false),
		`"content":[{"type":"content","content":{"type":"text","text":"a"}}]`)
}

func TestACP_4_13_118_new_files_have_no_old_text(t *testing.T) {
	contains(t, updateJSON(t, domain.CallChanged{ID: "c", Content: []domain.CallContent{domain.Diff{Path: "/a", NewText: "n", Created: true}}}, false),
		`{"type":"diff","path":"/a","oldText":null,"newText":"n"}`)
}

// 124 and 127: only a known, selected option is an approval.
func TestACP_4_13_124_and_127_denials(t *testing.T) {
	answers := []string{
		`"result":{"outcome":{"outcome":"selected","optionId":"root"}}`, `"result":{"outcome":{"outcome":"granted","optionId":"allow-once"}}`,
		`"result":null`, `"error":{"code":-32601,"message":"no"}`, `"error":{"code":1,"message":"x"}`,
		`"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}},"error":{"code":1,"message":"x"}`,
	}
	for _, answer := range answers {
		w := newWorld()
		var got domain.Decision
		w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
			var err error
			got, err = c.Ask(ctx, editRequest(id))
			return domain.TurnOutcome{Stop: domain.StopEndTurn}, err
		}
		open(t, w, func(r *rig) {
			p := r.prompt(r.newSession(), "go")
			q := r.next()
			r.send(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + answer + `}`)
			if m, _ := r.answer(p); m.Error != nil {
				t.Errorf("%s: the turn failed: %v", answer, m.Error)
			}
		})
		if got.Outcome != domain.Unanswered || got.Note == "" {
			t.Errorf("%s: decision %+v", answer, got)
		}
	}
}

func TestACP_4_13_127_disconnect_is_a_denial(t *testing.T) {
	w := newWorld()
	asked := make(chan domain.Decision, 1)
	w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
		d, err := c.Ask(ctx, editRequest(id))
		asked <- d
		return domain.TurnOutcome{}, err
	}
	open(t, w, func(r *rig) {
		r.prompt(r.newSession(), "go")
		r.next()
		r.end()
		if d := <-asked; d.Outcome == domain.Selected {
			t.Errorf("decision %+v", d)
		}
	})
}

// The commands come right after the response of new and resume, and before that
// of load; clients of the ZeroClaw dialect know none.
func TestACP_4_13_064_096_commands_are_told(t *testing.T) {
	for dialect, version := range map[string]string{"acp": "1", "zeroclaw": "0"} {
		w := newWorld()
		w.commands = []domain.Command{{Name: "compact", Description: "C", Hint: "h"}}
		run(t, w, func(r *rig) {
			r.ok("initialize", `{"protocolVersion":`+version+`,"clientCapabilities":{}}`)
			told := func() {
				t.Helper()
				if dialect == "acp" {
					if got := kindsOf([]jsonrpc.Message{r.next()}); got != "available_commands_update" {
						t.Errorf("told %s", got)
					}
				}
				r.quiet()
			}
			m, _ := r.answer(r.start(methodNew, `{"cwd":"/proj","mcpServers":[]}`))
			id := objectOf(m.Result).text("sessionId")
			told()
			for _, method := range []string{methodLoad, methodResume} {
				r.ok("session/close", `{"sessionId":"`+id+`"}`)
				m, before := r.answer(r.start(method, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`))
				if !isObject(m.Result) {
					t.Fatalf("%s: %s", method, m.Result)
				}
				switch got := kindsOf(before); {
				case method == methodLoad && dialect == "acp" && got != "available_commands_update", (method != methodLoad || dialect != "acp") && got != "":
					t.Errorf("%s of %s: before the response came %q", dialect, method, got)
				case method == methodResume:
					told()
				default:
					r.quiet()
				}
			}
		})
	}
}

func TestACP_4_13_146_compactions_only_where_they_are_shown(t *testing.T) {
	for offered, kinds := range map[string]string{
		`{"session":{"compaction":{}}}`: "compaction_update compaction_summary_chunk compaction_update", `{"session":{"notices":{}}}`: "", `{}`: "",
	} {
		w := newWorld()
		w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
			return domain.TurnOutcome{Stop: domain.StopEndTurn}, errors.Join(
				c.Send(ctx, id, domain.CompactionChanged{ID: "k", Status: domain.CompactionRunning}),
				c.Send(ctx, id, domain.CompactionText{ID: "k", Text: "so far"}),
				c.Send(ctx, id, domain.CompactionChanged{ID: "k", Status: domain.CompactionDone, Summary: "so far"}))
		}
		run(t, w, func(r *rig) {
			r.initialize(offered)
			_, before := r.answer(r.prompt(r.newSession(), "hi"))
			if got := kindsOf(before); got != kinds {
				t.Errorf("offered %s: sent %s", offered, got)
			}
		})
	}
}

func TestACP_4_13_145_notices_only_where_they_are_shown(t *testing.T) {
	for offered, kind := range map[string]string{`{"session":{"notices":{}}}`: "notice", `{}`: "agent_message_chunk"} {
		w := newWorld()
		w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
			return domain.TurnOutcome{Stop: domain.StopEndTurn}, c.Send(ctx, id, domain.Notice{Severity: "error", Title: "The store is full"})
		}
		run(t, w, func(r *rig) {
			r.initialize(offered)
			_, before := r.answer(r.prompt(r.newSession(), "hi"))
			if got := kindsOf(before); got != kind {
				t.Errorf("offered %s: sent %s", offered, got)
			}
		})
	}
}
