package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestLoad_Directories(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are Unix ones")
	}
	for _, tt := range []struct {
		name             string
		o                Options
		doc              string // of $TMP/etc/berth/config.toml
		config, dataPath string
	}{
		{"home", Options{}, "", "$HOME/.config/berth", "$HOME/.local/share/berth"},
		{"XDG", Options{Env: []string{"XDG_CONFIG_HOME=$TMP/etc", "XDG_DATA_HOME=$TMP/var"}}, "", "$TMP/etc/berth", "$TMP/var/berth"},
		{"relative XDG is ignored", Options{Env: []string{"XDG_CONFIG_HOME=etc", "XDG_DATA_HOME=var"}}, "", "$HOME/.config/berth", "$HOME/.local/share/berth"},
		{"variable before XDG", Options{Env: []string{"XDG_CONFIG_HOME=$TMP/x", "BERTH_CONFIG_DIR=$TMP/etc/berth", "BERTH_DATA_DIR=$TMP/d", "XDG_DATA_HOME=$TMP/var"}}, "", "$TMP/etc/berth", "$TMP/d"},
		{"flag before variable", Options{ConfigDir: "$TMP/etc/berth", DataDir: "$TMP/f", Env: []string{"BERTH_CONFIG_DIR=$TMP/x", "BERTH_DATA_DIR=$TMP/d"}}, "", "$TMP/etc/berth", "$TMP/f"},
		{"data_dir of the file before XDG", Options{ConfigDir: "$TMP/etc/berth", Env: []string{"XDG_DATA_HOME=$TMP/var"}}, "data_dir = \"~/mine\"", "$TMP/etc/berth", "$HOME/mine"},
		{"variable before data_dir of the file", Options{ConfigDir: "$TMP/etc/berth", Env: []string{"BERTH_DATA_DIR=$TMP/d"}}, "data_dir = \"~/mine\"", "$TMP/etc/berth", "$TMP/d"},
		{"relative data_dir of the file", Options{ConfigDir: "$TMP/etc/berth"}, "data_dir = \"data\"", "$TMP/etc/berth", "$TMP/etc/berth/data"},
		{"relative flag and variable", Options{ConfigDir: "etc/berth", Env: []string{"BERTH_DATA_DIR=d"}}, "", "$TMP/etc/berth", "$TMP/d"},
		{"home in a variable, as editors pass it on", Options{Env: []string{"BERTH_CONFIG_DIR=~/c", "BERTH_DATA_DIR=~/d"}}, "", "$HOME/c", "$HOME/d"},
		{"empty variables", Options{Env: []string{"BERTH_CONFIG_DIR=", "BERTH_DATA_DIR=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME="}}, "", "$HOME/.config/berth", "$HOME/.local/share/berth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmp := t.TempDir()
			fill := func(s string) string {
				return strings.NewReplacer("$TMP", tmp, "$HOME", filepath.Join(tmp, "home")).Replace(s)
			}
			dir := filepath.Join(tmp, "etc", "berth")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(tt.doc), 0o600); err != nil {
				t.Fatal(err)
			}
			o := tt.o
			o.ConfigDir, o.DataDir, o.Dir = fill(o.ConfigDir), fill(o.DataDir), tmp
			o.Env = []string{"HOME=" + filepath.Join(tmp, "home")} // not Options.Home: the variable is what counts
			for _, kv := range tt.o.Env {
				o.Env = append(o.Env, fill(kv))
			}
			c, err := Load(o)
			if err != nil {
				t.Fatal(err)
			}
			if c.ConfigDir != fill(tt.config) || c.DataDir != fill(tt.dataPath) {
				t.Errorf("config %s, data %s\nwant %s and %s", c.ConfigDir, c.DataDir, fill(tt.config), fill(tt.dataPath))
			}
		})
	}
}

// TestLoad_EmptyEnvironment is what an editor may start Berth with: no HOME,
// no PATH, nothing. The account database knows the home directory.
func TestLoad_EmptyEnvironment(t *testing.T) {
	c, err := Load(Options{ConfigDir: t.TempDir()})
	if err != nil {
		t.Skip("this account has no home directory:", err)
	}
	if !filepath.IsAbs(c.DataDir) {
		t.Errorf("data directory %q", c.DataDir)
	}
}

func TestLoad_MissingFileThatWasNamed(t *testing.T) {
	o := options(t, "")
	o.ConfigDir = filepath.Join(o.Home, "typo")
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "typo") {
		t.Errorf("nobody is told that the named directory holds nothing: %q", c.Warnings)
	}
}

func TestConfig_PrepareDataDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("mode bits mean nothing")
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	c := &Config{DataDir: dir}
	if err := c.PrepareDataDir(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := c.PrepareDataDir(); err == nil || !strings.Contains(err.Error(), "chmod go-w "+dir) {
		t.Errorf("a directory everyone writes to: %v", err)
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&Config{DataDir: filepath.Join(file, "x")}).PrepareDataDir(); err == nil || !strings.Contains(err.Error(), "BERTH_DATA_DIR") {
		t.Errorf("a directory below a file: %v", err)
	}
}
