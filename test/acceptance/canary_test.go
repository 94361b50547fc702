package acceptance

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// canary is a secret that every run is given and that may turn up nowhere but
// where the operator put it.
type canary struct {
	name  string // the variable, the setting or the file
	value string // what is put there
	core  string // the secret part of it
}

// birdsong is how the secret part of every canary begins.
const birdsong = "CanaryX7qZ"

// newCanary makes the canary of a name. The form says what its value looks
// like; %s is the secret part.
func newCanary(name, form string) canary {
	sum := sha256.Sum256([]byte(name))
	core := birdsong + strings.NewReplacer("-", "w", "_", "v").Replace(base64.RawURLEncoding.EncodeToString(sum[:]))[:22]
	return canary{name, fmt.Sprintf(form, core), core}
}

// envCanaries are variables of the agent's environment.
func envCanaries() []canary {
	return []canary{
		newCanary("ANTHROPIC_API_KEY", "sk-ant-api03-%s"), newCanary("OPENAI_API_KEY", "sk-proj-%s"), newCanary("GEMINI_API_KEY", "AIza%s"),
		newCanary("OPENROUTER_API_KEY", "sk-or-v1-%s"), newCanary("MISTRAL_API_KEY", "%s"), newCanary("HF_TOKEN", "hf_%s"),
		newCanary("GITHUB_TOKEN", "ghp_%s"), newCanary("GH_TOKEN", "gho_%s"), newCanary("GITLAB_TOKEN", "glpat-%s"), newCanary("NPM_TOKEN", "npm_%s"),
		newCanary("AWS_ACCESS_KEY_ID", "AKIA%s"), newCanary("AWS_SECRET_ACCESS_KEY", "%s"), newCanary("AWS_SESSION_TOKEN", "%s"),
		newCanary("AZURE_CLIENT_SECRET", "%s"), newCanary("GOOGLE_APPLICATION_CREDENTIALS", "/home/nobody/%s.json"),
		newCanary("SSH_AUTH_SOCK", "/tmp/ssh-%s/agent.1"), newCanary("DATABASE_URL", "postgres://app:%s@db.invalid/app"),
		newCanary("REDIS_URL", "redis://:%s@cache.invalid:6379/0"), newCanary("PGPASSWORD", "%s"), newCanary("SENTRY_DSN", "https://%s@sentry.invalid/1"),
		newCanary("SLACK_BOT_TOKEN", "xoxb-%s"), newCanary("STRIPE_SECRET_KEY", "sk_live_%s"), newCanary("VAULT_TOKEN", "hvs.%s"),
		newCanary("DOCKER_AUTH_CONFIG", `{"auths":{"r.invalid":{"auth":"%s"}}}`), newCanary("KUBECONFIG", "/home/nobody/%s"),
		newCanary("BERTH_GATEWAY_TOKEN", "%s"), newCanary("BERTH_ACP_BRIDGE_TOKEN", "%s"), newCanary("CANARY_OF_A_REFERENCE", "%s"),
	}
}

// homeCanaries are files of the user, by their names below the home directory.
func homeCanaries() []canary {
	return []canary{
		newCanary(".netrc", "machine git.invalid login me password %s\n"),
		newCanary(".npmrc", "//registry.invalid/:_authToken=%s\n"),
		newCanary(".git-credentials", "https://me:%s@git.invalid\n"),
		newCanary(".gitconfig", "[http]\n\textraHeader = \"Authorization: Bearer %s\"\n"),
		newCanary(".aws/credentials", "[default]\naws_secret_access_key = %s\n"),
		newCanary(".ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n%s\n-----END OPENSSH PRIVATE KEY-----\n"),
		newCanary(".config/gh/hosts.yml", "git.invalid:\n  oauth_token: %s\n"),
		newCanary(".docker/config.json", `{"auths":{"r.invalid":{"auth":"%s"}}}`),
	}
}

// settings are the canaries in the configuration.
type settings struct{ key, header, server, address, file, login canary }

func settingCanaries() settings {
	return settings{
		key: newCanary("providers.canary.api_key", "sk-%s"), header: newCanary("providers.canary.headers", "Token %s"),
		server: newCanary("mcp_servers.canary.env", "%s"), address: newCanary("mcp_servers.canary_web.url", "https://mcp.invalid/?key=%s"),
		file: newCanary("canary.secret", "sk-%s\n"), login: newCanary("credentials.toml", "sk-%s"),
	}
}

// allCanaries are the canaries of every run.
func allCanaries() []canary {
	s := settingCanaries()
	list := append(envCanaries(), homeCanaries()...)
	return append(list, s.key, s.header, s.server, s.address, s.file, s.login)
}

// canaryTOML is the part of a configuration that holds canaries.
func canaryTOML(w world) string {
	s := settingCanaries()
	return fmt.Sprintf(`
[providers.canary]
type = "openai-compatible"
base_url = "https://canary.invalid/v1"
api_key = %q
headers = { "X-Canary" = %q }
[providers.canary_file]
type = "openai-compatible"
base_url = "https://canary.invalid/v1"
api_key = %q
[providers.canary_env]
type = "openai-compatible"
base_url = "https://canary.invalid/v1"
api_key = "env:CANARY_OF_A_REFERENCE"
[providers.canary_login]
type = "openai-compatible"
base_url = "https://canary.invalid/v1"
[mcp_servers.canary]
enabled = false
command = "canary"
env = { CANARY = %q }
[mcp_servers.canary_web]
enabled = false
url = %q
`, s.key.value, s.header.value, "file:"+filepath.Join(w.config, s.file.name), s.server.value, s.address.value)
}

// settleCanaries puts the canaries of files where they belong.
func (w world) settleCanaries() error {
	put := func(path, text string) error {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o600)
	}
	for _, c := range homeCanaries() {
		if err := put(filepath.Join(w.home, filepath.FromSlash(c.name)), c.value); err != nil {
			return err
		}
	}
	if err := w.storeKey("canary_login", "https://canary.invalid", settingCanaries().login.value); err != nil {
		return err
	}
	file := settingCanaries().file
	return put(filepath.Join(w.config, file.name), file.value)
}

// storeKey stores one key as a login does.
func (w world) storeKey(provider, server, key string) error {
	if err := os.MkdirAll(w.data, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf("[%s]\nserver = %q\napi_key = %q\n", provider, server, key)
	return os.WriteFile(filepath.Join(w.data, "credentials.toml"), []byte(text), 0o600)
}

// listening is a scripted model's script in which every reply fails when the
// request holds a canary: the system prompt, what was said, and what tools
// gave.
func listening(model string) string {
	var ears strings.Builder
	for _, f := range []string{birdsong, strings.ToUpper(birdsong), hex.EncodeToString([]byte(birdsong)), reversed(birdsong)} {
		fmt.Fprintf(&ears, "refute %q\n", f)
	}
	for _, f := range base64Forms(birdsong) {
		fmt.Fprintf(&ears, "refute %q\n", f)
	}
	var out strings.Builder
	open := false // a reply has begun
	for line := range strings.Lines(model) {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "--- next"):
			open = true
			out.WriteString(strings.TrimRight(line, "\n") + "\n" + ears.String())
			continue
		case trimmed != "" && trimmed[0] != '#' && !open:
			open = true
			out.WriteString(ears.String())
		}
		out.WriteString(line)
	}
	return out.String()
}

// base64Forms are what base64 makes of s whatever stands before and after it.
func base64Forms(s string) []string {
	var forms []string
	for before := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + s))
		// The first group holds bits of what stands before, the last ones those
		// of what follows.
		from := []int{0, 2, 3}[before]
		to := (before + len(s)) * 8 / 6
		forms = append(forms, text[from:to])
	}
	return forms
}

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}
