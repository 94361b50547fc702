package offline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// answer decides what to say and do next. The newest user message is a list
// of actions; each reply carries out those up to and including the next call,
// and how many calls the turn has already made says where it stands.
func (g grammar) answer(req domain.ModelRequest) reply {
	turn := newestTurn(req.Messages)
	actions := g.program(turn.text, newToolbox(req.Tools), req.Messages[:turn.at])
	var parts []string
	i, stop := 0, failed(turn.outputs)
	for done := 0; done < turn.calls && i < len(actions); i++ {
		if actions[i].call == nil {
			continue
		}
		if done++; done == turn.calls {
			parts = append(parts, report(actions[i], turn.outputs))
			stop = stop || actions[i].stops != nil && slices.ContainsFunc(turn.outputs, actions[i].stops)
		}
	}
	if stop {
		if left := len(actions) - i; left > 0 {
			parts = append(parts, "I stop here; what was to follow is left undone.")
		}
		return reply{text: join(parts)}
	}
	var r reply
	for ; i < len(actions); i++ {
		a := actions[i]
		parts = append(parts, a.say)
		if a.thought != "" {
			r.thought = a.thought
		}
		if a.call != nil {
			r.calls = []domain.ModelCall{*a.call}
			break
		}
	}
	if r.text = join(parts); r.text == "" && r.calls == nil {
		r.text = "Done."
	}
	return r
}

// join puts paragraphs together.
func join(parts []string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "\n\n")
}

// turn is the newest user message and what was done about it.
type turn struct {
	at      int // its place in the conversation
	text    string
	calls   int
	outputs []domain.ToolOutput // of the last call
}

func newestTurn(msgs []domain.ModelMessage) turn {
	var t turn
	for i, msg := range msgs {
		switch msg := msg.(type) {
		case domain.UserInput:
			t = turn{at: i, text: typed(domain.PromptText(msg.Blocks))}
		case domain.ModelReply:
			if len(msg.Calls) > 0 {
				t.calls++
				t.outputs = nil
			}
		case domain.ToolOutput:
			t.outputs = append(t.outputs, msg)
		}
	}
	return t
}

func failed(outputs []domain.ToolOutput) bool {
	for _, o := range outputs {
		if o.Failed {
			return true
		}
	}
	return false
}

// program is the list of actions a message asks for.
func (g grammar) program(text string, tools toolbox, before []domain.ModelMessage) []action {
	if strings.TrimSpace(text) == "" {
		return []action{{say: "You sent nothing that I could act on. Say `help` for what I understand."}}
	}
	var actions []action
	for _, part := range g.split(text) {
		actions = append(actions, g.understand(part, tools, before)...)
	}
	return actions
}

// split cuts a message into requests: "A then B", or one a line. A piece that
// is no request belongs to the one before it, as in "write note: first this
// then that", and so does what follows "if A; then" in a command. Quotes keep their content
// together.
func (g grammar) split(text string) []string {
	var parts []string
	var seps []string
	start := 0
	cut := func(end, next int) {
		parts = append(parts, text[start:end])
		seps = append(seps, text[end:next])
		start = next
	}
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '`') && strings.IndexByte(text[i+1:], c) >= 0:
			quote = c
		case c == '\n':
			cut(i, i+1)
		case len(text)-i > len(" then ") && strings.EqualFold(text[i:i+len(" then ")], " then "):
			cut(i, i+len(" then "))
		}
	}
	parts = append(parts, text[start:])
	out := parts[:1]
	for i, part := range parts[1:] {
		if g.find(part) != nil && !g.condition(out[len(out)-1]) {
			last := strings.TrimRight(out[len(out)-1], " \t\r\n,;")
			if cutAnd, ok := strings.CutSuffix(last, " and"); ok {
				last = strings.TrimRight(cutAnd, " ,;")
			}
			out[len(out)-1] = last
			out = append(out, part)
			continue
		}
		out[len(out)-1] += seps[i] + part
	}
	return out
}

// find returns the request a part is, nil when it is none.
func (g grammar) find(part string) *request {
	for i := range g.requests {
		if g.requests[i].match.MatchString(strings.TrimSpace(part)) {
			return &g.requests[i]
		}
	}
	return nil
}

// condition reports whether a part is a command whose last word so far is a
// condition of the shell's, which a "then" belongs to.
func (g grammar) condition(part string) bool {
	r := g.find(part)
	if r == nil || r.tool != "shell" || !strings.HasSuffix(part, ";") {
		return false
	}
	words := strings.Fields(part)
	return slices.Contains(words, "if") || slices.Contains(words, "elif")
}

// understand turns one part of a message into actions.
func (g grammar) understand(part string, tools toolbox, before []domain.ModelMessage) []action {
	part = strings.TrimSpace(part)
	r := g.find(part)
	if r == nil {
		return []action{{say: g.puzzled(part)}}
	}
	if r.tool != "" {
		if _, ok := tools[r.tool]; !ok {
			return []action{{say: fmt.Sprintf("`%s` needs the tool `%s`, which this session does not have.", r.form, r.tool)}}
		}
	}
	m := r.match.FindStringSubmatch(part)
	switch {
	case r.perform != nil:
		return []action{r.perform(m, tools)}
	case r.tool == "update_plan":
		return g.plan(m[1], tools, before)
	}
	return []action{{say: history(before)}}
}

// puzzled answers what it does not understand, with the nearest it does.
func (g grammar) puzzled(part string) string {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(part, "/ ")), " ")
	for _, r := range g.requests {
		if word, _, _ := strings.Cut(r.form, " "); first != "" && strings.TrimRight(word, ":") == strings.TrimRight(first, ":") {
			return fmt.Sprintf("I understand this one as `%s`, but not the way you wrote it. Say `help` for examples.", r.form)
		}
	}
	intro := "I am not a language model, so I did not understand that."
	if strings.HasPrefix(part, "/") {
		intro = fmt.Sprintf("There is no command `%s` here, and I am not a language model that could guess what you mean.", shorten(strings.Fields(part)[0], 40))
	}
	var forms []string
	for _, r := range g.requests {
		forms = append(forms, "- `"+r.form+"`")
	}
	return intro + " I understand:\n\n" + strings.Join(forms, "\n") + "\n\nSay `help` for examples."
}

// plan shows a plan and, when it understands every step, carries it out,
// ticking off the steps.
func (g grammar) plan(text string, tools toolbox, before []domain.ModelMessage) []action {
	var steps []string
	for _, s := range strings.FieldsFunc(text, func(c rune) bool { return c == ';' || c == '\n' }) {
		if s = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(s), "-*•")); s != "" {
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 || len(steps) > 50 {
		return []action{{say: "A plan has 1 to 50 steps, separated by semicolons: `plan: list; read README.md`."}}
	}
	able := true
	for _, s := range steps {
		r := g.find(s)
		able = able && r != nil && r.tool != "update_plan" && (r.tool == "" || tools[r.tool].Name != "")
	}
	show := func(say string, current int) action {
		return action{say: say, call: tools.call("update_plan", role{entries, ticked(steps, current)}), report: silentReport}
	}
	if !able {
		a := show(fmt.Sprintf("A plan of %s. I cannot carry out all of them, so I only keep the list.", countOf(len(steps), "step")), -1)
		a.report = func(domain.ToolOutput) string {
			return "The plan is kept with the session. A plan whose steps I understand I carry out: `plan: list; count to 20`."
		}
		return []action{a}
	}
	first := show(fmt.Sprintf("A plan of %s.", countOf(len(steps), "step")), 0)
	first.thought = "I understand every step, so I can carry the plan out and tick the steps off."
	actions := []action{first}
	for i, s := range steps {
		actions = append(actions, g.understand(s, tools, before)...)
		actions = append(actions, show("", i+1))
	}
	return append(actions, action{say: "The plan is carried out."})
}

// ticked are the entries of a plan whose steps before current are done; -1
// means that none is begun.
func ticked(steps []string, current int) []map[string]string {
	var out []map[string]string
	for i, s := range steps {
		status := "pending"
		switch {
		case i < current:
			status = "completed"
		case i == current:
			status = "in_progress"
		}
		out = append(out, map[string]string{"content": shorten(s, 120), "status": status, "priority": "medium"})
	}
	return out
}

// history says what the conversation held before this message.
func history(before []domain.ModelMessage) string {
	var asked []string
	calls := 0
	for _, msg := range before {
		switch msg := msg.(type) {
		case domain.UserInput:
			asked = append(asked, "- "+code(shorten(typed(domain.PromptText(msg.Blocks)), 80)))
		case domain.ModelReply:
			calls += len(msg.Calls)
		}
	}
	if len(asked) == 0 {
		return "This is the first message of the session."
	}
	const most = 20
	total, which := len(asked), ""
	if n := total - most; n > 0 {
		which, asked = fmt.Sprintf(" The last %d:", most), asked[n:]
	}
	return fmt.Sprintf("Before this you sent %s, and I made %s.%s\n\n%s",
		countOf(total, "message"), countOf(calls, "tool call"), which, strings.Join(asked, "\n"))
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
