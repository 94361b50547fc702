// Package config turns a directory, a file, the environment and flags into
// one validated Config.
//
// The table in keys.go, and its sections in keys_*.go, is the only place that
// knows the settings: names, defaults, ranges, meanings, and the field each
// one fills. Loading, messages, "config list", "config set", the JSON schema
// and docs/configuration.md all read it.
//
// Loading collects settings per layer (file.go, env.go), lets viper pick the
// winner (layers.go, the only file that imports it), fills the structs
// (build.go) and checks what no single key can know (check.go). Every problem
// found on the way is reported, together, with its place (problem.go);
// nothing is ever replaced by a default in silence.
//
// Read next: keys.go, then load.go.
package config
