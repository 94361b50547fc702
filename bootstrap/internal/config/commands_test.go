package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

func out(t *testing.T, run func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := run(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPath(t *testing.T) {
	o := options(t, "broken [")
	if got := out(t, func(b *bytes.Buffer) error { return Path(b, o, false) }); got != filepath.Join(o.Home, ".config/berth/config.toml")+"\n" {
		t.Errorf("path %q", got)
	}
	if got := out(t, func(b *bytes.Buffer) error { return Path(b, o, true) }); !strings.Contains(got, `"exists": true`) {
		t.Errorf("JSON %s", got)
	}
}

func TestList(t *testing.T) {
	o := options(t, "[providers.openai]\napi_key = \"env:K\"\n[bridge]\ntoken = \"t\"\n", "BERTH_ACP__DIALECT=acp")
	o.Flags = map[string]string{"acp.max_sessions": "7"}
	text := out(t, func(b *bytes.Buffer) error { return List(b, o, false) })
	lines := map[string]string{}
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Fields(l)
		lines[f[0]] = strings.ReplaceAll(strings.Join(f[1:], " "), o.Home, "~")
	}
	for k, want := range map[string]string{
		"acp.dialect": `"acp" $BERTH_ACP__DIALECT`, "acp.max_sessions": "7 --max-sessions", "acp.busy": `"auto" default`, "acp.default_agent": "(unset) default",
		"bridge.token": `"[secret]" ~/.config/berth/config.toml:4:9`, "providers.openai.api_key": `"env:K" ~/.config/berth/config.toml:2:11`, "agents.default.skills": "[] default",
	} {
		if lines[k] != want {
			t.Errorf("%s: %s, want %s", k, lines[k], want)
		}
	}
	var list []Setting
	if err := json.Unmarshal([]byte(out(t, func(b *bytes.Buffer) error { return List(b, o, true) })), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != len(lines) || list[0] != (Setting{Key: "acp.busy", Value: "auto", Origin: "default"}) {
		t.Errorf("%d of %d, first %+v", len(list), len(lines), list[0])
	}
}

func TestGet(t *testing.T) {
	o := options(t, everything, "DSN=x")
	for path, want := range map[string]string{
		"acp.max_sessions":                           "11\n",
		"acp.dialect":                                "zeroclaw\n",
		"agents.main.model":                          "lab/org/model-1.5\n",
		"agents.main.mcp_servers":                    "[]\n",
		"profiles.default.limits.memory_bytes":       "",
		"profiles.strict.shell_env":                  "[\"PATH\",\"MY_*\"]\n",
		"mcp_servers.local.env.API_KEY":              "[secret]\n",
		"mcp_servers.far.url":                        "https://mcp.example/[secret]\n",
		"providers.lab.models.gpt-4.1.input_price":   "2\n",
		`providers.lab.models."gpt-4.1".input_price`: "2\n",
		"store.dsn":                                  "env:DSN\n",
	} {
		if got := out(t, func(b *bytes.Buffer) error { return Get(b, o, path, false) }); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	table := out(t, func(b *bytes.Buffer) error { return Get(b, o, "providers.play", false) })
	if strings.Count(table, "\n") != 8 || !strings.Contains(table, "providers.play.type") {
		t.Errorf("a table:\n%s", table)
	}
	for path, want := range map[string]string{
		"acp.max_sesions":           `"acp.max_sesions" names no setting; did you mean acp.max_sessions?`,
		"agents.nobody.model":       "agents.nobody.model is not set",
		"agents.No.model":           `"No" is not a name; allowed: ` + nameRule,
		`providers."lab`:            `"providers.\"lab": a quote is not closed`,
		"":                          `"" names no setting`,
		"providers.lab.headers.Non": "providers.lab.headers.Non is not set",
	} {
		if err := Get(&bytes.Buffer{}, o, path, false); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	good := options(t, "[acp]\ndefault_agent = \"ghost\"\n")
	got := strings.ReplaceAll(out(t, func(b *bytes.Buffer) error { return Validate(b, good, false, nil) }), good.Home, "~")
	want := "warning: ~/.config/berth/config.toml:2:17: acp.default_agent: there is no agent \"ghost\"; allowed: default\n~/.config/berth/config.toml is valid\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	note := func(c *Config) []string { return []string{"store.driver: " + c.Store.Driver + " does nothing"} }
	got = out(t, func(b *bytes.Buffer) error { return Validate(b, options(t, "[acp]\n"), false, note) })
	if !strings.HasPrefix(got, "warning: store.driver: sqlite does nothing\n") || !strings.HasSuffix(got, " is valid\n") {
		t.Errorf("with a note of the caller: %s", got)
	}
	if got := out(t, func(b *bytes.Buffer) error { return Validate(b, options(t, ""), false, nil) }); !strings.Contains(got, "does not exist; the defaults are in use") {
		t.Errorf("no file: %s", got)
	}
	var b bytes.Buffer
	err := Validate(&b, options(t, "[acp]\nx = 1\ny = 2\n"), true, nil)
	var v Validation
	if jerr := json.Unmarshal(b.Bytes(), &v); err == nil || jerr != nil || v.Valid || len(v.Problems) != 2 {
		t.Errorf("%v, %v, %+v", err, jerr, v)
	}
}

func TestSet(t *testing.T) {
	for _, tt := range []struct{ name, doc, path, value, want string }{
		{"no file", "", "acp.max_sessions", "5", "[acp]\nmax_sessions = 5\n"},
		{"keeps comments and order", "# mine\n[acp] # table\nmax_sessions = 2 # few\nbusy = \"queue\"\n", "acp.max_sessions", "5", "# mine\n[acp] # table\nmax_sessions = 5 # few\nbusy = \"queue\"\n"},
		{"string", "", "log.level", "debug", "[log]\nlevel = \"debug\"\n"},
		{"string that looks like a number", "", "agents.a.title", "12", "[agents.a]\ntitle = \"12\"\n"},
		{"boolean", "", "store.required", "yes", "[store]\nrequired = true\n"},
		{"size", "", "acp.max_message_bytes", "8 MiB", "[acp]\nmax_message_bytes = \"8 MiB\"\n"},
		{"list", "", "gateway.allowed_hosts", "a, b", "[gateway]\nallowed_hosts = [\"a\", \"b\"]\n"},
		{"rules", "", "profiles.default.deny", `["x", {rule = "shell(y)", match = ["y z"]}]`, "[profiles.default]\ndeny = [\"x\", {rule = \"shell(y)\", match = [\"y z\"]}]\n"},
		{"home stays as written", "", "data_dir", "~/d", "data_dir = \"~/d\"\n"},
		{"model id with dots", "[providers.openai]\n", "providers.openai.models.gpt-4.1.context_window", "9", "[providers.openai]\n\n[providers.openai.models.\"gpt-4.1\"]\ncontext_window = 9\n"},
		{"key of a free map", "[mcp_servers.g]\ncommand = 'g'\nenv = { A = 'a' }\n", "mcp_servers.g.env.My.Key", "v", "[mcp_servers.g]\ncommand = 'g'\nenv = { A = 'a', \"My.Key\" = \"v\" }\n"},
		{"windows lines and byte order mark", "\xef\xbb\xbf[acp]\r\nmax_sessions = 2\r\n", "acp.busy", "queue", "\xef\xbb\xbf[acp]\r\nmax_sessions = 2\r\nbusy = \"queue\"\r\n"},
		{"text over lines", "", "agents.a.system_prompt", "a \"b\"\nc", "[agents.a]\nsystem_prompt = \"a \\\"b\\\"\\nc\"\n"},
		{"unset by an empty value", "[acp]\ndefault_agent = \"x\"\n", "acp.default_agent", "", "[acp]\ndefault_agent = \"\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Overrides of this process must not decide what the file may hold.
			o := options(t, tt.doc, "BERTH_ACP__MAX_SESSIONS=broken")
			file, err := Set(o, Change{tt.path, tt.value})
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != tt.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, got, tt.want)
			}
			if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*.tmp")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestSet_Refusals(t *testing.T) {
	for _, tt := range []struct{ name, doc, path, value, want string }{
		{"no such key", "", "acp.max_sesions", "5", `"acp.max_sesions" names no setting; did you mean acp.max_sessions?`},
		{"bad value", "", "acp.max_sessions", "0", "acp.max_sessions: 0 is out of range; allowed: an integer from 1 to 100000 (default 10)"},
		{"bad secret is not repeated", "", "providers.openai.api_key", "env:sk-canary", "providers.openai.api_key: does not name a variable after env:; allowed: text in quotes: env:NAME, file:PATH, keyring:NAME, or the secret itself"},
		{"wildcard", "", "agents.<alias>.title", "x", "agents.<alias>.title: write a name in place of <alias>"},
		{"outcome not valid", "[store]\n", "store.dsn", "x", "F:2:7: store.dsn: is for the postgres driver; this one is sqlite\nsettings that need each other are set by one command: berth config set PATH VALUE PATH VALUE"},
		{"file not valid before", "[acp]\nx = 1\n", "acp.max_sessions", "5", "F:2:1: acp.x: unknown key; allowed here: busy, default_agent, dialect, experimental_v2, max_message_bytes, max_prompt_blob_bytes, max_sessions, queue_limit, session_timeout_secs"},
		{"file is no TOML", "[acp\n", "acp.max_sessions", "5", "F:1:5: expected ']' to close table name"},
		{"value in the way", "[profiles.p]\nlevel = \"full\"\n", "profiles.p.level.x", "5", `"profiles.p.level.x" names no setting`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, tt.doc)
			file := filepath.Join(o.Home, ".config/berth/config.toml")
			_, err := Set(o, Change{tt.path, tt.value})
			if err == nil || strings.ReplaceAll(err.Error(), file, "F") != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if got, _ := os.ReadFile(file); string(got) != tt.doc {
				t.Errorf("the file was changed to\n%s", got)
			}
		})
	}
}

// TestSet_Several: settings that need each other are judged together and
// written at once, or not at all.
func TestSet_Several(t *testing.T) {
	const local = "[providers.local]\ntype = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:8000/v1\"\n"
	for _, tt := range []struct {
		name, doc string
		changes   []Change
		want, err string // err: part of the refusal; then the file stays as it is
	}{
		{"a new provider, type first", "", []Change{{"providers.local.type", "openai-compatible"}, {"providers.local.base_url", "http://127.0.0.1:8000/v1"}}, local, ""},
		{"a new provider, address first", "", []Change{{"providers.local.base_url", "http://127.0.0.1:8000/v1"}, {"providers.local.type", "openai-compatible"}},
			"[providers.local]\nbase_url = \"http://127.0.0.1:8000/v1\"\ntype = \"openai-compatible\"\n", ""},
		{"and an agent that uses it", "# mine\n", []Change{{"agents.default.model", "local/m"}, {"providers.local.type", "openai-compatible"}, {"providers.local.base_url", "http://127.0.0.1:8000/v1"}},
			"# mine\n\n[agents.default]\nmodel = \"local/m\"\n\n" + local, ""},
		{"half of a provider", "", []Change{{"providers.local.base_url", "http://127.0.0.1:8000/v1"}, {"acp.busy", "queue"}}, "",
			"providers.local.type: is missing; allowed: anthropic, openai, gemini, openrouter, ollama, openai-compatible, openai-responses, azure, bedrock, offline, scripted\nsettings that need each other are set by one command"},
		{"one bad value", "[acp]\n", []Change{{"acp.busy", "queue"}, {"acp.max_sessions", "0"}}, "", "acp.max_sessions: 0 is out of range"},
		{"twice the same", "", []Change{{"providers.local.models.a.b.context_window", "1"}, {"providers.local.models.\"a.b\".context_window", "2"}}, "", `providers.local.models."a.b".context_window: is given twice`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, tt.doc)
			file := filepath.Join(o.Home, ".config/berth/config.toml")
			_, err := Set(o, tt.changes...)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got  %v\nwant %s", err, tt.err)
				}
				tt.want = tt.doc
			} else if err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(file); string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestSpelledOut(t *testing.T) {
	for _, tt := range []struct {
		path, value string
		want        bool
	}{
		{"providers.x.api_key", "sk-canary", true},
		{"providers.x.api_key", "sk-canary\n", true}, // refused, and seen all the same
		{"providers.x.api_key", "env:X", false},
		{"providers.x.api_key", "file:~/x", false},
		{"providers.x.api_key", "keyring:x", false},
		{"providers.x.api_key", "", false},
		{"providers.x.headers.X-Key", "sk-canary", true},
		{"store.dsn", "postgres://me:pw@host/db", true},
		{"mcp_servers.x.url", "https://host/path?key=1", true},
		{"mcp_servers.x.url", "https://host", false},
		{"mcp_servers.x.url", "no address", false},
		{"acp.busy", "queue", false},
		{"providers.x.api_keys", "sk-canary", false},
	} {
		if got := SpelledOut(tt.path, tt.value); got != tt.want {
			t.Errorf("%s %q: %v", tt.path, tt.value, got)
		}
	}
}

// TestSet_KeepsLinkAndMode is for people who keep their files in a repository
// and link to them.
func TestSet_KeepsLinkAndMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("mode bits mean nothing")
	}
	o := options(t, "[acp]\n")
	link := filepath.Join(o.Home, ".config/berth/config.toml")
	target := filepath.Join(o.Home, "dotfiles.toml")
	if err := os.Rename(link, target); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(target, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Set(o, Change{"acp.busy", "queue"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	got, _ := os.ReadFile(target)
	if info, _ := os.Stat(target); string(got) != "[acp]\nbusy = \"queue\"\n" || info.Mode().Perm() != 0o640 {
		t.Errorf("target %q, mode %v", got, info.Mode())
	}
}

func TestMigration(t *testing.T) {
	rename := func(b []byte) ([]byte, error) {
		return bytes.Replace(b, []byte("old_name"), []byte("new_name"), 1), nil
	}
	add := func(b []byte) ([]byte, error) { return tomltree.Set(b, []string{"acp", "added"}, "1") }
	old := "\xef\xbb\xbfversion = 1 # v\n[acp]\nold_name = 3 # why\n"
	want := "version = 3 # v\n[acp]\nnew_name = 3 # why\nadded = 1\n"
	o := options(t, old)
	file := filepath.Join(o.Home, ".config/berth/config.toml")
	m := migration{file: file, from: 1, steps: []step{rename, add}}
	text, warning, err := m.run([]byte(old))
	if err != nil || string(text) != want || !strings.Contains(warning, file+".v1.bak") {
		t.Fatalf("%v, %q\n%s", err, warning, text)
	}
	if got, _ := os.ReadFile(file); string(got) != want {
		t.Errorf("the file holds\n%s", got)
	}
	if got, _ := os.ReadFile(file + ".v1.bak"); string(got) != old {
		t.Errorf("the backup holds\n%s", got)
	}
	// A second old file must not overwrite the backup of the first.
	other := "version = 1\n"
	if _, warning, err = m.run([]byte(other)); err != nil || !strings.Contains(warning, file+".v1.bak.1") {
		t.Errorf("%v, %q", err, warning)
	}
	if got, _ := os.ReadFile(file + ".v1.bak"); string(got) != old {
		t.Errorf("the first backup holds\n%s", got)
	}
	// Where nothing can be written the new text is used, and it is said.
	m.file = filepath.Join(o.Home, "no/such/dir/config.toml")
	if text, warning, err = m.run([]byte(old)); err != nil || string(text) != want || !strings.Contains(warning, "running on its migrated content") {
		t.Errorf("%v, %q\n%s", err, warning, text)
	}
	if len(steps()) != Version-1 {
		t.Errorf("%d steps lead to version %d", len(steps()), Version)
	}
}

func TestSchema(t *testing.T) {
	text := out(t, func(b *bytes.Buffer) error { return Schema(b) })
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:config.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("mem:config.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, doc string
		valid     bool
	}{
		{"everything", everything, true},
		{"empty", "", true},
		{"unknown key", "[acp]\nx = 1", false},
		{"wrong type", "[acp]\nmax_sessions = \"1\"", false},
		{"out of range", "[acp]\nmax_sessions = 0", false},
		{"bad name", "[agents.A]\n", false},
		{"name with two underscores", "[agents.a__b]\n", false},
		{"name that ends in one", "[agents.a_]\n", true},
		{"size", "[acp]\nmax_message_bytes = \"64 megs\"", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := tomltree.Parse([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(plain(root)); (err == nil) != tt.valid {
				t.Errorf("valid %v, want %v: %v", err == nil, tt.valid, err)
			}
		})
	}
}

// plain turns a tree into the types of a decoded JSON document.
func plain(n *tomltree.Node) any {
	switch n.Kind {
	case tomltree.Table:
		m := map[string]any{}
		for _, c := range n.Items {
			m[c.Key] = plain(c)
		}
		return m
	case tomltree.Array:
		list := make([]any, 0, len(n.Items))
		for _, c := range n.Items {
			list = append(list, plain(c))
		}
		return list
	case tomltree.String:
		return n.Text
	case tomltree.Bool:
		return n.Text == "true"
	}
	return json.Number(strings.ReplaceAll(n.Text, "_", ""))
}

var update = flag.Bool("update", false, "rewrite generated files")

// TestDocs keeps docs/configuration.md in step with the table of settings.
func TestDocs(t *testing.T) {
	file := filepath.Join("..", "..", "..", "docs", "configuration.md")
	want := out(t, func(b *bytes.Buffer) error { return Docs(b) })
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run go test ./bootstrap/internal/config -run TestDocs -update (-want +got):\n%s", diff)
	}
}

// TestDocs_Example loads the example that people copy.
func TestDocs_Example(t *testing.T) {
	text := out(t, func(b *bytes.Buffer) error { return Docs(b) })
	_, rest, _ := strings.Cut(text, "```toml\n")
	doc, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example")
	}
	if m, ok := mustLoad(t, doc).AgentModel("default"); !ok || m.Provider != "local" {
		t.Errorf("model %v", m)
	}
}
