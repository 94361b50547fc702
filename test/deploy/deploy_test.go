package deploy

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// directives are the settings of a unit: each with all its values.
func directives(text string) map[string][]string {
	found := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Za-z]+)=(.*)$`).FindAllStringSubmatch(text, -1) {
		found[m[1]] = append(found[m[1]], m[2])
	}
	return found
}

func TestUnits(t *testing.T) {
	for _, tt := range []struct {
		file string
		want map[string]string
	}{
		{"docs/deploy/systemd/berth.service", map[string]string{
			"Type": "notify", "ExecStart": "/usr/local/bin/berth daemon", "ExecReload": "/bin/kill -HUP $MAINPID", "KillMode": "mixed", "OOMPolicy": "continue", "WatchdogSec": "60",
			"RestrictNamespaces": "user mnt pid ipc uts net", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "ProtectSystem": "strict", "User": "berth",
		}},
		{"docs/deploy/systemd-user/berth.service", map[string]string{
			"Type": "notify", "ExecStart": "%h/.local/bin/berth daemon", "ExecReload": "/bin/kill -HUP $MAINPID", "KillMode": "mixed", "WatchdogSec": "60",
			"RestrictNamespaces": "user mnt pid ipc uts net", "NoNewPrivileges": "yes",
		}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			got := directives(read(t, tt.file))
			for name, want := range tt.want {
				if len(got[name]) != 1 || got[name][0] != want {
					t.Errorf("%s is %q, want %q", name, got[name], want)
				}
			}
			for _, name := range []string{"ProtectKernelTunables", "ProtectKernelLogs", "ProcSubset", "ProtectHostname", "MemoryDenyWriteExecute", "PrivateUsers"} {
				if got[name] != nil {
					t.Errorf("%s takes something from the sandbox of commands, or from the programs they run", name)
				}
			}
		})
	}
	if got := directives(read(t, "docs/deploy/systemd/berth.socket")); !slices.Equal(got["ListenStream"], []string{"127.0.0.1:8080"}) {
		t.Errorf("the socket listens on %q", got["ListenStream"])
	}
}

// systemd's own judge, where it is installed.
func TestUnits_Verify(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	for _, name := range []string{"berth.service", "berth.socket"} {
		text := strings.ReplaceAll(read(t, "docs/deploy/systemd/"+name), "/usr/local/bin/berth", "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", filepath.Join(dir, "berth.service"), filepath.Join(dir, "berth.socket")).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("berth.")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestPlist(t *testing.T) {
	text := read(t, "docs/deploy/launchd/dev.berth.daemon.plist")
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"<string>daemon</string>", "<key>ExitTimeOut</key>\n\t<integer>45</integer>"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s", want)
		}
	}
}

// Both images run as somebody without rights, are asked for their health by
// the program itself, and end as a service does.
func TestDockerfile(t *testing.T) {
	stages := strings.Split(read(t, "Dockerfile"), "\nFROM ")[1:]
	for _, stage := range stages[1:] {
		for _, want := range []string{
			"USER 10001:10001", `CMD ["/usr/local/bin/berth", "daemon", "--check"]`, "STOPSIGNAL SIGTERM", `ENTRYPOINT ["/usr/local/bin/berth"]`, `CMD ["daemon"]`, "BERTH_GATEWAY__LISTEN=0.0.0.0:8080",
		} {
			if !strings.Contains(stage, want) {
				t.Errorf("the stage %q lacks %s", strings.SplitN(stage, "\n", 2)[0], want)
			}
		}
	}
	if len(stages) != 3 || !strings.Contains(stages[0], "CGO_ENABLED=0") {
		t.Errorf("%d stages; the program must be static", len(stages))
	}
	for _, want := range []string{"init: true", "127.0.0.1:8080:8080", "cap_drop: [ALL]", "no-new-privileges:true", "stop_grace_period: 45s", "read_only: true"} {
		if !strings.Contains(read(t, "docs/deploy/compose.yaml"), want) {
			t.Errorf("compose.yaml lacks %s", want)
		}
	}
}
