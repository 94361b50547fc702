package bootstrap

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/exec"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

var update = flag.Bool("update", false, "write docs/tools.md")

// TestToolsPage keeps docs/tools.md what models are really told: it is made
// from the descriptions of a session's tools.
func TestToolsPage(t *testing.T) {
	if !exec.FindShell().Bash {
		t.Skip("the page describes the shell as bash, which is not here")
	}
	got := toolsPage(t)
	path := filepath.Join("..", "docs", "tools.md")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("docs/tools.md is not what the tools say; run: go test ./bootstrap -run TestToolsPage -update")
	}
}

const toolsHead = `# Tools

What a session's model can call. This page is made from the descriptions that models get.

Every call goes the same way: it is *prepared* (paths resolved, the line parsed, nothing changed), announced to the
client with its title, places and difference, decided on once, and only then run, exactly as it was prepared.
[security.md](security.md) says what is decided, [configuration.md](configuration.md) how to change it:
` + "`deny`, `always_ask` and `auto_approve` take these names. Beside these there is `update_plan`, which sets the\nplan that the client shows and changes nothing else." + `

`

// toolsPage writes the page.
func toolsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(toolsHead)
	specs := allSpecs(t)
	b.WriteString("| tool | kind | asks in `supervised` |\n|---|---|---|\n")
	for _, s := range specs {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", s.Name, s.Name, s.Kind, asks(s))
	}
	for _, s := range specs {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", s.Name, strings.ReplaceAll(s.Description, "<", "&lt;"))
		b.WriteString(arguments(t, s))
	}
	return b.String()
}

// asks says when a tool asks, as the policy tests prove it.
func asks(s domain.ToolSpec) string {
	switch s.Name {
	case "shell":
		return "unless it is a proven read"
	case "deliver_file":
		return "for files that look secret"
	case "web_fetch":
		return "for each host"
	case "ask_user", "escalate_to_human":
		return "it is itself a question"
	case "update_plan", "shell_output", "shell_kill":
		return "never"
	}
	if s.ReadOnly {
		return "never"
	}
	return "yes"
}

// object is the part of a schema that the page tells.
type object struct {
	Properties map[string]struct {
		Type        any
		Description string
		Items       object
	}
	Required []string
}

func arguments(t *testing.T, s domain.ToolSpec) string {
	var schema object
	if err := json.Unmarshal(s.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if len(schema.Properties) == 0 {
		return "No arguments.\n"
	}
	var b strings.Builder
	b.WriteString("| argument | type | meaning |\n|---|---|---|\n")
	rows(&b, "", schema)
	return b.String()
}

// rows writes a row for each member of an object, what is required first, and
// below a list of objects what each of these holds.
func rows(b *strings.Builder, of string, schema object) {
	names := make([]string, 0, len(schema.Properties))
	for n := range schema.Properties {
		names = append(names, n)
	}
	rank := func(n string) int {
		if i := slices.Index(schema.Required, n); i >= 0 {
			return i
		}
		return len(schema.Required)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b)) })
	for _, n := range names {
		p := schema.Properties[n]
		must, means := "", p.Description
		if slices.Contains(schema.Required, n) {
			must = " (required)"
		}
		if len(p.Items.Properties) > 0 {
			means = cmp.Or(means, "Each of them:")
		}
		fmt.Fprintf(b, "| `%s%s`%s | %v | %s |\n", of, n, must, p.Type, strings.ReplaceAll(cmp.Or(means, "–"), "|", "\\|"))
		rows(b, of+n+"[].", p.Items)
	}
}

// allSpecs are the tools of a session in the order a model gets them.
func allSpecs(t *testing.T) []domain.ToolSpec {
	cfg := load(t, "[store]\ndriver = \"memory\"\n")
	o := defaults()
	now := newCurrent(cfg)
	disk := newDisk(cfg, now)
	session := domain.Session{ID: "s", Agent: "default", Cwd: t.TempDir(), Workspace: t.TempDir()}
	var specs []domain.ToolSpec
	for _, source := range newTools(&o, cfg, disk, newCommands(&o, now, disk, o.clock, o.ids), quiet{}) {
		set, err := source.Open(t.Context(), session, nobody{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range set.Tools() {
			specs = append(specs, tool.Spec())
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
	return specs
}

type quiet struct{}

func (quiet) Observe(context.Context, domain.Event) {}

// nobody is a client that is not there.
type nobody struct{}

func (nobody) Send(context.Context, domain.SessionID, domain.Update) error {
	return domain.Disconnected
}
func (nobody) Ask(context.Context, domain.PermissionRequest) (domain.Decision, error) {
	return domain.Decision{}, domain.Disconnected
}
func (nobody) Info() domain.ClientInfo    { return domain.ClientInfo{} }
func (nobody) Files() (ports.Files, bool) { return nil, false }
