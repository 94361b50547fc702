package offline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// ask puts a question to the user, with the choices Yes and No unless others
// are named. What follows waits for a choice, and is left undone after No.
func ask(m []string, tools toolbox) action {
	question, options := bare(m[1]), []string{"Yes", "No"}
	if m[2] != "" {
		if options = alternatives(m[2]); len(options) < 2 {
			return action{say: "A question needs two choices or more: `ask Which colour? choices red, green or blue`."}
		}
	}
	return action{
		say:  "I have a question.",
		call: tools.call("ask_user", role{questions, question}, role{choices, options}),
		report: func(o domain.ToolOutput) string {
			if !slices.Contains(options, o.Text) {
				return "You chose none of the answers."
			}
			return "You answered: " + shorten(o.Text, 200)
		},
		failure: func(o domain.ToolOutput) string {
			why, _, _ := strings.Cut(o.Text, ". ")
			return "That did not work: " + shorten(why, 500)
		},
		stops: func(o domain.ToolOutput) bool {
			return !slices.Contains(options, o.Text) || m[2] == "" && o.Text == "No"
		},
	}
}

// alternatives cuts "A, B or C" into its parts, each once.
func alternatives(s string) []string {
	s = strings.TrimRight(strings.TrimSpace(s), ".?!")
	var out []string
	seen := make(map[string]bool)
	for _, part := range strings.Split(strings.ReplaceAll(s, " or ", ","), ",") {
		if part = bare(part); part != "" && !seen[part] {
			seen[part] = true
			out = append(out, part)
		}
	}
	return out
}

func escalate(m []string, tools toolbox) action {
	return action{
		say:  "I will call for a human.",
		call: tools.call("escalate_to_human", role{messages, bare(m[1])}), report: firstLine,
	}
}

// fetch reads a page; an address without a scheme is taken for https.
func fetch(m []string, tools toolbox) action {
	address := strings.TrimRight(bare(strings.TrimRight(m[1]+m[2], ".,!?")), ".,!?")
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	return action{
		say:  fmt.Sprintf("I will fetch %s; you may be asked first.", code(address)),
		call: tools.call("web_fetch", role{addresses, address}), report: page,
		failure: func(o domain.ToolOutput) string {
			why, text, _ := strings.Cut(o.Text, "\n")
			return join([]string{"That did not work: " + shorten(why, 500), excerpt(unwrapped(text), quotedLines, 0)})
		},
	}
}

// page quotes a page.
func page(o domain.ToolOutput) string {
	head, body := heading(o.Text)
	if head == "" {
		return quote(unwrapped(o.Text))
	}
	return join([]string{strings.Trim(head, "[]") + ".", excerpt(unwrapped(body), quotedLines, 0)})
}

// unwrapped is foreign text without the lines around it that tell a model
// whose it is: what is quoted is not followed anyway.
func unwrapped(text string) string {
	const mark = "[[foreign "
	_, after, found := strings.Cut(text, "\n"+mark)
	if !found {
		return text
	}
	_, inside, _ := strings.Cut(after, "\n")
	if end := strings.LastIndex(inside, mark); end >= 0 {
		inside = inside[:end]
	}
	return inside
}
