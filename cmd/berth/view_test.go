package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/acpclient"
	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// TestViewPermission: a question shows why it is asked, and not again what the
// call showed; one more line takes no more room than saying so.
func TestViewPermission(t *testing.T) {
	say := func(texts ...string) []acpclient.ToolContent {
		list := make([]acpclient.ToolContent, len(texts))
		for i, text := range texts {
			list[i].Type, list[i].Content.Type, list[i].Content.Text = "content", "text", text
		}
		return list
	}
	var out strings.Builder
	v := newView(&out)
	v.update(acpclient.Update{Kind: "tool_call", ToolCallID: "c", Title: "rm -r x", Content: say("Directory: /w\n2\n3\n4\n5\n6\n7\n8\n9")})
	req := acpclient.PermissionRequest{}
	req.ToolCall.ToolCallID, req.ToolCall.Title = "c", "rm -r x"
	req.ToolCall.Content = say("deletes a tree", "Directory: /w\n2\n3\n4\n5\n6\n7\n8\n9")
	v.permission(req)
	want := "→ rm -r x\n  Directory: /w\n  2\n  3\n  4\n  5\n  6\n  7\n  8\n  9\n? rm -r x\n  deletes a tree\n"
	if out.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", out.String(), want)
	}
}

// TestViewLive: output is shown line by line while it comes, and not again
// when the call ends.
func TestViewLive(t *testing.T) {
	fenced := func(text string) string { return "```\n" + strings.TrimSuffix(text, "\n") + "\n```" }
	for _, c := range []struct {
		name  string
		comes []string
		final string
		want  string
	}{
		{"line by line", []string{fenced("one\n"), fenced("one\ntwo\n")}, fenced("[exit code 0]\none\ntwo\nthree\n"),
			"  one\n  two\n✓ t\n  [exit code 0]\n  three\n"},
		{"all of it at once", nil, fenced("[exit code 0]\none\n"), "✓ t\n  [exit code 0]\n  one\n"},
		{"nothing", nil, "", "✓ t\n"},
		{"the same again", []string{"one\n", "one\n"}, "one\n", "  one\n✓ t\n"},
		{"a line that grows", []string{"o", "one\ntwo"}, "one\ntwo\n", "  o\n  one\n  two\n✓ t\n"},
		{"the beginning is lost", []string{"one\ntwo\n", "two\nthree\n"}, "[exit code 0]\none\n[... 4 bytes left out ...]\nthree\n",
			"  one\n  two\n  three\n✓ t\n  [exit code 0]\n"},
		{"something else", []string{"one\n"}, "other\n", "  one\n✓ t\n  other\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			v := newView(&out)
			send := func(kind, status, text string) {
				u := acpclient.Update{Kind: kind, ToolCallID: "c", Title: "t", Status: status}
				if text != "" {
					u.Content = []acpclient.ToolContent{{Type: "content"}}
					u.Content[0].Content.Type, u.Content[0].Content.Text = "text", text
				}
				v.update(u)
			}
			send("tool_call", "pending", "")
			for _, text := range c.comes {
				send("tool_call_update", "", text)
			}
			send("tool_call_update", "completed", c.final)
			if got := strings.TrimPrefix(out.String(), "→ t\n"); got != c.want {
				t.Errorf("shown:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// TestViewHistory: of a history it is shown how a turn ended that did not end by
// itself, and a turn that failed is set apart from what comes after.
func TestViewHistory(t *testing.T) {
	const session = `{"sessionId":"s","update":%s}`
	for _, c := range []struct{ name, update, want string }{
		{"cancelled", `{"sessionUpdate":"session_info_update","_meta":{"berth":{"turnId":"t","stopReason":"cancelled"}}}`, "half\n· stopped: cancelled\nnext"},
		{"failed", `{"sessionUpdate":"session_info_update","_meta":{"berth":{"turnId":"t","error":"no route"}}}`, "half\nnext"},
		{"a title", `{"sessionUpdate":"session_info_update","title":"T"}`, "halfnext"},
		{"something of another agent's", `{"sessionUpdate":"session_info_update","title":"T","_meta":{"berth":[1]}}`, "halfnext"},
		{"nothing", `{"sessionUpdate":"session_info_update","_meta":null}`, "halfnext"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			v := newView(&out)
			ours, theirs := io.Pipe()
			defer theirs.Close()
			shown := make(chan struct{}, 3)
			acpclient.Connect(jsonrpc.NewStdio(ours, io.Discard, 0), acpclient.Info{}, acpclient.Handlers{Update: func(u acpclient.Update) {
				v.update(u)
				shown <- struct{}{}
			}})
			for _, u := range []string{
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"half"}}`, c.update,
				`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"next"}}`,
			} {
				fmt.Fprintf(theirs, `{"jsonrpc":"2.0","method":"session/update","params":`+session+"}\n", u)
				<-shown
			}
			if out.String() != c.want {
				t.Errorf("shown %q, want %q", out.String(), c.want)
			}
		})
	}
}
