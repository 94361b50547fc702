package offline

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// command runs a command line: what follows "$" as it stands, what follows
// "run" without quotes around it and with the wishes said after it.
func command(m []string, tools toolbox) action {
	line, wishes := strings.TrimSpace(m[2]), []role(nil)
	how := ""
	if m[1] == "" {
		line, wishes, how = wished(line, tools)
	}
	if first, _, _ := strings.Cut(strings.ToLower(line), " "); first == "the" || first == "all" || first == "my" {
		return action{say: "I cannot tell which command that is. Write it as you would in a terminal: `run go test ./...`."}
	}
	if how == unable {
		return action{say: "This session's `shell` cannot run a command like that; leave out what comes after the command."}
	}
	return action{
		say:    "I will run " + code(shorten(line, 200)) + how + "; you may be asked first.",
		call:   tools.call("shell", append([]role{{commands, line}}, wishes...)...),
		report: outcome, failure: outcome,
	}
}

// unable is how a command is run that the tool has no argument for.
const unable = "unable"

// How much of a command's output is quoted: what matters is often the end.
const firstLines, lastLines = 4, 8

// outcome says how a command ended, and quotes what it wrote. The tool's own
// first line stands in square brackets before that.
func outcome(o domain.ToolOutput) string {
	head, body := heading(o.Text)
	if head == "" {
		return "That did not work: " + shorten(o.Text, 500)
	}
	wrote := excerpt(body, firstLines, lastLines)
	if wrote == "" || strings.TrimSpace(body) == "(no output)" {
		wrote = "It wrote nothing."
	}
	head, _, _ = strings.Cut(strings.TrimSuffix(head, "]"), "; since: ")
	said := sentence(head)
	switch m := regexp.MustCompile(`^\[(job \S+: )?exit code (\d+)( .*)?, (.+)$`).FindStringSubmatch(head); {
	case m == nil:
	case m[2] == "0":
		said = "It ended well: " + m[1] + "exit code 0, after " + m[4] + "."
	default:
		said = "It failed: " + m[1] + "exit code " + m[2] + m[3] + ", after " + m[4] + "."
	}
	if m := regexp.MustCompile(`^\[job (\S+) is running;`).FindStringSubmatch(head); m != nil {
		said = fmt.Sprintf("It runs as job %s. Say %s to see more of it, and %s to end it.",
			m[1], code("output of job "+m[1]), code("stop job "+m[1]))
	}
	return join([]string{said, wrote})
}

func output(m []string, tools toolbox) action {
	return action{
		say:  "I will look at what job " + code(m[1]) + " has written.",
		call: tools.call("shell_output", role{jobs, m[1]}), report: outcome, failure: outcome,
	}
}

func running(_ []string, tools toolbox) action {
	return action{say: "I will look at which commands run in the background.", call: tools.call("shell_output")}
}

func kill(m []string, tools toolbox) action {
	return action{
		say:  "I will stop job " + code(m[1]) + ".",
		call: tools.call("shell_kill", role{jobs, m[1]}), report: outcome, failure: outcome,
	}
}

// wished takes the wishes off the end of a request for a command, and then
// the quotes.
func wished(line string, tools toolbox) (command string, values []role, how string) {
	wish := regexp.MustCompile(`(?i)^(.+?),? (?:(in the background)|(with (?:the )?network)|for at most (\d{1,4}) ?(?:s|secs?|seconds?))[.!]?$`)
	for {
		m := wish.FindStringSubmatch(line)
		if m == nil {
			break
		}
		v, words := role{asides, true}, " in the background"
		switch {
		case m[3] != "":
			v, words = role{networks, true}, " with the network"
		case m[4] != "":
			n, _ := strconv.Atoi(m[4]) // digits alone, by the pattern
			v, words = role{times, n}, fmt.Sprintf(" for at most %s", countOf(n, "second"))
		}
		if !tools.takes("shell", v.names) {
			return line, nil, unable
		}
		line, values, how = m[1], append(values, v), words+how
	}
	return unquoted(line), values, how
}

// unquoted is a command line without the fence, backticks or quotes that
// were put around all of it.
func unquoted(line string) string {
	if inner, ok := strings.CutPrefix(line, "```"); ok {
		if inner, ok = strings.CutSuffix(inner, "```"); ok {
			if language, code, more := strings.Cut(inner, "\n"); more && !strings.ContainsAny(language, " \t") {
				inner = code
			}
			return strings.TrimSpace(inner)
		}
	}
	s := line
	if end := strings.TrimRight(s, ".!?"); strings.HasSuffix(end, "`") || strings.HasSuffix(end, `"`) || strings.HasSuffix(end, "”") {
		s = end
	}
	if inner := bare(s); inner != s && !strings.Contains(inner, string([]rune(s)[:1])) {
		return inner
	}
	return line
}
