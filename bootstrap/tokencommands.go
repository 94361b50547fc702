package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/tokens"
	"github.com/berth-dev/berth/core/domain"
)

// TokenInfo is what may be shown of a gateway's token.
type TokenInfo struct {
	Name        string     `json:"name"`
	Created     time.Time  `json:"created"`
	LastUsed    *time.Time `json:"last_used"` // to the hour; null when never
	Agents      []string   `json:"agents"`    // null for all
	Level       string     `json:"level"`     // "" for no ceiling
	Roots       []string   `json:"roots"`     // null for none named
	Observe     bool       `json:"observe"`
	MCPCommands bool       `json:"mcp_commands"`
}

// CreateToken makes a token with the rights in want, and returns the token,
// which is kept nowhere, and what was stored of it. An empty name is replaced
// by one that is free.
func CreateToken(cfg *Config, want TokenInfo) (token string, made TokenInfo, err error) {
	if InsideCommand(os.Environ()) {
		return "", TokenInfo{}, domain.Errorf(domain.Denied, "tokens cannot be made by a command that an agent runs; do it in a terminal of your own")
	}
	if err := checkRights(cfg, &want); err != nil {
		return "", TokenInfo{}, err
	}
	if err := cfg.PrepareDataDir(); err != nil {
		return "", TokenInfo{}, err
	}
	file := tokenFile(cfg, time.Now)
	if want.Name == "" {
		list, err := file.List()
		if err != nil {
			return "", TokenInfo{}, err
		}
		want.Name = freeName(list)
	}
	t := tokens.Token{
		Name: want.Name, Agents: want.Agents, Level: domain.Level(want.Level), Roots: want.Roots, Observe: want.Observe, MCPCommands: want.MCPCommands,
	}
	if token, err = file.Create(t); err != nil {
		return "", TokenInfo{}, err
	}
	list, err := file.List()
	if err != nil {
		return "", TokenInfo{}, err
	}
	return token, tokenInfo(list[slices.IndexFunc(list, func(t tokens.Token) bool { return t.Name == want.Name })]), nil
}

// checkRights refuses rights that would never be of use, and makes roots what
// the directories of sessions are compared with.
func checkRights(cfg *Config, want *TokenInfo) error {
	if want.Name == "bridge" || want.Name == "environment" || want.Name == "anyone" {
		return domain.Errorf(domain.InvalidArgument, "%q is the name of a token that the gateway has by itself; choose another --name", want.Name)
	}
	for _, alias := range want.Agents {
		if !slices.Contains(sortedAgents(cfg), alias) {
			return domain.Errorf(domain.InvalidArgument, "there is no agent %q in the configuration; there is: %s", alias, strings.Join(sortedAgents(cfg), ", "))
		}
	}
	switch domain.Level(want.Level) {
	case "", domain.LevelReadOnly, domain.LevelSupervised, domain.LevelFull:
	default:
		return domain.Errorf(domain.InvalidArgument, "%q is no level; use read_only, supervised or full", want.Level)
	}
	for i, root := range want.Roots {
		abs, err := filepath.Abs(root)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return domain.Errorf(domain.InvalidArgument, "--root %s: there is no such directory; make it first", root)
		}
		if err != nil {
			return domain.Errorf(domain.InvalidArgument, "--root %s: %w", root, err)
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return domain.Errorf(domain.InvalidArgument, "--root %s is not a directory", root)
		}
		want.Roots[i] = abs
	}
	return nil
}

// freeName is a name that no token has.
func freeName(list []tokens.Token) string {
	for i := 1; ; i++ {
		name := fmt.Sprintf("token-%d", i)
		if !slices.ContainsFunc(list, func(t tokens.Token) bool { return t.Name == name }) {
			return name
		}
	}
}

// ListTokens returns the stored tokens in the order in which they were made.
func ListTokens(cfg *Config) ([]TokenInfo, error) {
	list, err := tokenFile(cfg, time.Now).List()
	if err != nil {
		return nil, err
	}
	infos := make([]TokenInfo, 0, len(list))
	for _, t := range list {
		infos = append(infos, tokenInfo(t))
	}
	return infos, nil
}

// RevokeToken removes a token. A daemon that runs ends its connections within
// seconds.
func RevokeToken(cfg *Config, name string) error {
	err := tokenFile(cfg, time.Now).Revoke(name)
	if errors.Is(err, fs.ErrNotExist) {
		return domain.Errorf(domain.InvalidArgument, "there is no token %q; berth token list shows them", name)
	}
	return err
}

func tokenInfo(t tokens.Token) TokenInfo {
	i := TokenInfo{
		Name: t.Name, Created: t.Created, Agents: t.Agents, Level: string(t.Level), Roots: t.Roots, Observe: t.Observe, MCPCommands: t.MCPCommands,
	}
	if !t.LastUsed.IsZero() {
		i.LastUsed = &t.LastUsed
	}
	return i
}
