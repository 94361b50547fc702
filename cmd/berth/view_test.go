package main

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/acpclient"
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
