package bootstrap

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/openclaw"
)

// TestDeviceIdentity makes a key where there is none and finds it again.
func TestDeviceIdentity(t *testing.T) {
	for name, link := range map[string]func(from, to string) error{
		"links":    os.Link,
		"no links": func(string, string) error { return errors.New("operation not permitted") },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "openclaw", "device.json")
			first, err := deviceIdentity(file, link)
			if err != nil {
				t.Fatal(err)
			}
			again, err := deviceIdentity(file, link)
			if err != nil || again.ID() != first.ID() {
				t.Errorf("%v and %v, %v", first, again, err)
			}
			info, err := os.Stat(file)
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("the file: %v, %v", info, err)
			}
			if list, _ := os.ReadDir(filepath.Dir(file)); len(list) != 1 {
				t.Errorf("%d files are left", len(list))
			}
		})
	}
}

// TestDeviceIdentity_Bad has files that hold no key.
func TestDeviceIdentity_Bad(t *testing.T) {
	for name, put := range map[string]func(file string) error{
		"nonsense":          func(file string) error { return os.WriteFile(file, []byte(`{"seed":"top-secret"}`), 0o600) },
		"a link to nothing": func(file string) error { return os.Symlink(file+".gone", file) },
		"a directory":       func(file string) error { return os.Mkdir(file, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "device.json")
			if err := put(file); err != nil {
				if runtime.GOOS == "windows" {
					return // not everybody may make links there
				}
				t.Fatal(err)
			}
			_, err := deviceIdentity(file, os.Link)
			if err == nil || !strings.Contains(err.Error(), "device.json") || strings.Contains(err.Error(), "top-secret") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestKeepDevice has two bridges to two gateways that write the same file.
func TestKeepDevice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "device.json")
	device := func() *openclaw.Identity {
		t.Helper()
		i, err := deviceIdentity(file, os.Link)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	one, two := device(), device()
	one.Grant("a", "token-a", nil)
	two.Grant("b", "token-b", nil)
	for gateway, i := range map[string]*openclaw.Identity{"a": one, "b": two} {
		if err := keepDevice(file, gateway, i); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), "token-a") || !strings.Contains(string(data), "token-b") {
		t.Errorf("kept %d bytes, %v, without one of the tokens", len(data), err)
	}
	// A key that somebody has replaced is not put back.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := keepDevice(file, "a", one); err == nil {
		t.Error("a key that was removed is back")
	}
	next := device()
	if err := keepDevice(file, "a", one); err == nil || strings.Contains(err.Error(), "token-a") {
		t.Errorf("error %v", err)
	}
	if device().ID() != next.ID() {
		t.Error("a key that was replaced is back")
	}
}

// TestOpenClawTarget finds the address of an OpenClaw Gateway.
func TestOpenClawTarget(t *testing.T) {
	tests := []struct {
		name, flag, setting string
		env                 []string
		want, err           string
	}{
		{name: "nothing said", want: "ws://127.0.0.1:18789/"},
		{name: "a variable", env: []string{"OPENCLAW_GATEWAY_URL=ws://localhost:1"}, want: "ws://localhost:1/"},
		{name: "the settings before a variable", setting: "wss://a", env: []string{"OPENCLAW_GATEWAY_URL=wss://b"}, want: "wss://a/"},
		{name: "the flag before the settings", flag: "wss://c/", setting: "wss://a", want: "wss://c/"},
		{name: "a path", flag: "wss://c/x", want: "wss://c/x"},
		{name: "the path of others", flag: "wss://c/acp", want: "wss://c/acp"},
		{name: "a query", flag: "wss://c?x=1", want: "wss://c/?x=1"},
		{name: "no TLS", flag: "ws://c", err: "--insecure"},
		{name: "no URL", flag: "c", err: "not a URL"},
		{name: "a password", flag: "wss://me:top-secret@c", err: "--token-file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := &Config{}
			cfg.Bridge.URL = tt.setting
			got, err := openClawTarget(cfg, BridgeOptions{URL: tt.flag, Env: tt.env})
			switch {
			case tt.err == "" && (err != nil || got.url != tt.want):
				t.Errorf("%s, %v, want %s", got.url, err, tt.want)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "top-secret")):
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}
