package bootstrap

import (
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gitLimit bounds asking git who the user is.
const gitLimit = 2 * time.Second

// keepGitIdentity gives the private home of a sandbox the user's name and
// address for git, so that commits have an author. Nothing else of the user's
// git configuration goes in: it may hold credentials and programs to run. A
// file that is there already stays as it is.
func keepGitIdentity(state, home string, git []string) {
	file := filepath.Join(state, "home", ".gitconfig")
	if _, err := os.Lstat(file); err == nil || home == "" {
		return
	}
	program := ""
	for _, dir := range git {
		if info, err := os.Stat(filepath.Join(dir, "git")); err == nil && info.Mode().IsRegular() {
			program = filepath.Join(dir, "git")
			break
		}
	}
	if program == "" {
		return
	}
	var text strings.Builder
	for _, key := range []string{"name", "email"} {
		if value := globalGit(program, home, "user."+key); value != "" {
			text.WriteString("\t" + key + " = " + quotedGit(value) + "\n")
		}
	}
	if text.Len() == 0 || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = os.WriteFile(file, []byte("[user]\n"+text.String()), 0o600) // without it git asks for the name
}

// globalGit returns a value of the user's own git configuration.
func globalGit(program, home, key string) string {
	ctx, cancel := context.WithTimeout(context.Background(), gitLimit)
	defer cancel()
	cmd := osexec.CommandContext(ctx, program, "config", "--global", "--get", key)
	cmd.Dir = "/" // nobody's repository
	cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1"}
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+dir)
	}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(out), "\n")
}

// quotedGit writes a value as a git configuration file has it.
func quotedGit(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}
