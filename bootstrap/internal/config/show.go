package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
	"github.com/berth-dev/berth/core/domain"
)

// Setting is one value as "config list" shows it.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`            // null when unset; secrets masked
	Origin string `json:"origin"`           // default, file, env, flag
	Source string `json:"source,omitempty"` // place in the file, variable or flag
}

// Settings returns every setting with its value and origin, in the order of
// their names. What a type or a directory rule implies stands in the Config
// and is not a setting.
func (c *Config) Settings() []Setting {
	list := make([]Setting, 0, len(c.settings))
	for _, s := range c.settings {
		list = append(list, s.shown())
	}
	return list
}

// Origin says where the setting at a dotted path comes from; ok is false when
// there is no such setting.
func (c *Config) Origin(path string) (o Origin, ok bool) {
	_, p, err := resolveDotted(keys(), path)
	if err != nil {
		return Origin{}, false
	}
	s := c.setting(settingID(p))
	if s == nil {
		return Origin{}, false
	}
	return s.origin, true
}

func (s *setting) shown() Setting {
	out := Setting{Key: tomltree.JoinKeys(s.path), Value: shownValue(s.value), Origin: s.origin.Layer.String()}
	if s.origin.Layer != FromDefault {
		out.Source = s.origin.String()
	}
	return out
}

// shownValue returns a value in plain types, with secrets masked. References
// are shown: they name a secret and hold none.
func shownValue(v any) any {
	switch v := v.(type) {
	case Secret:
		if !v.IsSet() {
			return ""
		}
		return v.open().shown
	case domain.ModelRef:
		return v.String()
	case Rule:
		if len(v.Match) == 0 && len(v.NotMatch) == 0 {
			return v.Rule
		}
		m := map[string]any{"rule": v.Rule}
		if len(v.Match) > 0 {
			m["match"] = v.Match
		}
		if len(v.NotMatch) > 0 {
			m["not_match"] = v.NotMatch
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = shownValue(item)
		}
		return list
	}
	return v
}

// text returns a shown value on one line, as TOML writes it where that is
// short.
func (s Setting) text() string {
	switch v := s.Value.(type) {
	case nil:
		return "(unset)"
	case string:
		return tomltree.Quote(v)
	}
	return compactJSON(s.Value)
}

func compactJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// writeJSON writes an indented document.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Path writes the path of the configuration file, whether it exists or not.
func Path(w io.Writer, o Options, asJSON bool) error {
	l := &loader{opts: o, env: environment(o.Env), cfg: &Config{}}
	l.home = homeDir(o, l.env)
	dir, _, err := l.configDir()
	if err != nil {
		return err
	}
	if dir == "" {
		return errNoHome
	}
	file := filepath.Join(dir, "config.toml")
	_, found, err := readConfig(file)
	if asJSON {
		return writeJSON(w, map[string]any{"path": file, "exists": found || err != nil})
	}
	_, err = fmt.Fprintln(w, file)
	return err
}

// List writes every setting with its value and origin.
func List(w io.Writer, o Options, asJSON bool) error {
	c, err := Load(o)
	if err != nil {
		return err
	}
	return writeSettings(w, c.Settings(), asJSON)
}

func writeSettings(w io.Writer, list []Setting, asJSON bool) error {
	if asJSON {
		return writeJSON(w, list)
	}
	wide := 0
	for _, s := range list {
		wide = max(wide, len(s.Key))
	}
	var b strings.Builder
	for _, s := range list {
		from := s.Origin
		if s.Source != "" {
			from = s.Source
		}
		fmt.Fprintf(&b, "%-*s  %-24s  %s\n", wide, s.Key, s.text(), from)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Get writes the value of the setting at path: bare text, so that scripts can
// use it, nothing when it is unset, and the mask for a secret. Where path is
// a table it writes all settings below it as List does.
func Get(w io.Writer, o Options, path string, asJSON bool) error {
	c, err := Load(o)
	if err != nil {
		return err
	}
	_, p, err := resolveDotted(keys(), path)
	if err == nil {
		s := c.setting(settingID(p))
		if s == nil {
			return fmt.Errorf("%s is not set", tomltree.JoinKeys(p))
		}
		return writeValue(w, s.shown(), asJSON)
	}
	segs, splitErr := splitPath(path)
	if splitErr != nil {
		return splitErr
	}
	var below []Setting
	for _, s := range c.settings {
		if len(s.path) > len(segs) && tomltree.JoinKeys(s.path[:len(segs)]) == tomltree.JoinKeys(segs) {
			below = append(below, s.shown())
		}
	}
	if len(below) == 0 {
		return err
	}
	return writeSettings(w, below, asJSON)
}

func writeValue(w io.Writer, s Setting, asJSON bool) error {
	if asJSON {
		return writeJSON(w, s)
	}
	var err error
	switch v := s.Value.(type) {
	case nil:
	case string:
		_, err = fmt.Fprintln(w, v)
	default:
		_, err = fmt.Fprintln(w, compactJSON(v))
	}
	return err
}

// Validation is what "config validate --json" prints.
type Validation struct {
	Path     string   `json:"path"`
	Exists   bool     `json:"exists"`
	Valid    bool     `json:"valid"`
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings"`
}

// Validate loads the configuration and writes what it found. notes adds to its
// warnings what the caller knows about a valid one; it may be nil. The error
// is that of Load; in JSON form it is written too.
func Validate(w io.Writer, o Options, asJSON bool, notes func(*Config) []string) error {
	c, err := Load(o)
	if err != nil {
		if asJSON {
			return joinWrite(err, writeJSON(w, Validation{Problems: problemTexts(err), Warnings: []string{}}))
		}
		return err
	}
	v := Validation{Path: c.ConfigFile, Exists: c.FileFound, Valid: true, Problems: []string{}, Warnings: append([]string{}, c.Warnings...)}
	if notes != nil {
		v.Warnings = append(v.Warnings, notes(c)...)
	}
	if asJSON {
		return writeJSON(w, v)
	}
	for _, s := range v.Warnings {
		fmt.Fprintf(w, "warning: %s\n", s)
	}
	if !v.Exists {
		_, err = fmt.Fprintf(w, "%s does not exist; the defaults are in use\n", v.Path)
		return err
	}
	_, err = fmt.Fprintf(w, "%s is valid\n", v.Path)
	return err
}

func problemTexts(err error) []string {
	var e *Error
	if !errors.As(err, &e) {
		return []string{err.Error()}
	}
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return texts
}

// joinWrite returns the error that matters, else that of writing.
func joinWrite(err, writeErr error) error {
	if err != nil {
		return err
	}
	return writeErr
}
