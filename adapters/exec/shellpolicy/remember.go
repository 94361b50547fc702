package shellpolicy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// rememberedWords is how many words of a command name a program and what it is
// told to do, where that much may be remembered.
func rememberedWords(name string, trusted bool, words []word) int {
	list := known(words)
	if !trusted || len(list) == 0 {
		return 0
	}
	sub := ""
	if len(list) > 1 && syntax.ValidName(strings.ReplaceAll(list[1], "-", "_")) {
		sub = list[1]
	}
	allowed := func(subs ...string) int {
		if sub != "" && slices.Contains(subs, sub) {
			return 2
		}
		return 0
	}
	switch name {
	case "go":
		return allowed("test", "build", "vet", "fmt", "list", "doc", "version")
	case "cargo":
		return allowed("test", "build", "check", "clippy", "fmt", "doc", "bench")
	case "npm", "pnpm", "yarn", "bun":
		if (sub == "run" || sub == "run-script") && len(list) > 2 && !strings.HasPrefix(list[2], "-") {
			return 3
		}
		return allowed("test")
	case "git":
		return allowed("add", "commit", "stash", "switch", "checkout", "restore", "mv", "branch", "tag")
	case "make", "gmake", "just", "task", "dotnet":
		if sub != "" {
			return 2
		}
	case "pytest", "gofmt", "tsc", "mypy", "black", "rustfmt", "goimports", "golangci-lint":
		return 1
	case "ruff":
		return allowed("check", "format")
	}
	return 0
}
