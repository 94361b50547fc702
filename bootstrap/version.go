package bootstrap

import (
	"runtime/debug"
	"strings"

	"github.com/berth-dev/berth/adapters/sqlite"
)

// VersionInfo is what the program knows about its own build.
type VersionInfo struct {
	Version  string `json:"version"`  // such as "0.1.0" or "0.1.0-dev"
	Commit   string `json:"commit"`   // short; "" when unknown
	Modified bool   `json:"modified"` // built from a changed tree
	Go       string `json:"go"`
	Protocol int    `json:"protocol"` // newest ACP version spoken
	Schema   int    `json:"schema"`   // of the session store
}

// release is the version of this source tree.
const release = "0.1.0-dev"

// Version reads what the compiler recorded.
func Version() VersionInfo {
	v := VersionInfo{Version: release, Protocol: 1, Schema: sqlite.SchemaVersion()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	if tagged := strings.TrimPrefix(info.Main.Version, "v"); tagged != "" && tagged != "(devel)" && !strings.Contains(tagged, "-0.") {
		v.Version = tagged
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
