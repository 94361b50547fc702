package sandbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

const sandboxExec = "/usr/bin/sandbox-exec"

// Main is the helper, which nobody starts on this system.
func Main() { os.Exit(2) }

func (s *Sandbox) choose(ctx context.Context) (domain.Posture, backend) {
	switch s.cfg.Mode {
	case None:
		return domain.Posture{Word: domain.PostureOff, Lacks: everything()}, None
	case Auto, Seatbelt:
	default:
		return unconfined("there is no sandbox " + s.cfg.Mode + " on macOS; set sandbox to auto"), None
	}
	dir, err := os.MkdirTemp("", "berth-probe-")
	if err != nil {
		return unconfined(err.Error()), None
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return unconfined(err.Error()), None
	}
	if open := s.probe(ctx, dir); open != "" {
		return unconfined("seatbelt: " + open), None
	}
	return domain.Posture{
		Word: domain.PosturePartial, Backend: Seatbelt, Lacks: []string{lackCount, "processes that leave the command's group", lackKernel},
		Reason: "macOS has no namespaces and no system call filter",
	}, Seatbelt
}

func unconfined(reason string) domain.Posture {
	return domain.Posture{Word: domain.PostureNone, Lacks: everything(), Reason: reason}
}

// probe does in a sandbox what must fail and returns what did not, or why it
// could not be tried.
func (s *Sandbox) probe(ctx context.Context, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	for _, d := range []string{filepath.Join(root, ".git", "hooks"), outside} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err.Error()
		}
	}
	canary := filepath.Join(outside, "canary")
	if err := os.WriteFile(canary, []byte("canary"), 0o644); err != nil {
		return err.Error()
	}
	script := strings.Join([]string{
		`echo x > "$1/written" || echo "nothing can be written in a root"`,
		`cat "$2" >/dev/null 2>&1 && echo "a file outside can be read"`,
		`echo x 2>/dev/null >> "$2" && echo "a file outside can be written"`,
		`chmod 600 "$2" 2>/dev/null && echo "a file outside can be changed"`,
		`echo x 2>/dev/null > "$1/.git/hooks/pre-commit" && echo "a hook can be made"`,
		`kill -0 $3 2>/dev/null && echo "another process can be signalled"`,
		`exit 0`,
	}, "\n")
	spec := Spec{Argv: []string{"/bin/sh", "-c", script, "sh", root, canary, strconv.Itoa(os.Getpid())}, Dir: root, Writable: []string{root}}
	argv, err := s.confine(Seatbelt, &spec)
	if err != nil {
		return err.Error()
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = root, []string{"PATH=/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return err.Error() + " " + string(bytes.TrimSpace(out))
	}
	return strings.ReplaceAll(string(bytes.TrimSpace(out)), "\n", ", ")
}

// confine wraps a command in sandbox-exec.
func (s *Sandbox) confine(by backend, spec *Spec) ([]string, error) {
	if by != Seatbelt {
		return spec.Argv, nil
	}
	for _, p := range slices.Concat(spec.Readable, spec.Extra) {
		if withinAny(p, s.cfg.Hidden) {
			return nil, domain.Errorf(domain.Denied, "%s is forbidden and is not opened for commands", p)
		}
	}
	private := filepath.Join(os.TempDir(), "berth-run")
	if dir := s.private(&Spec{Dir: spec.Dir, Writable: spec.Writable}); dir != "" {
		if err := s.makePrivate(dir); err != nil {
			return nil, err
		}
		private = filepath.Join(dir, "home")
	}
	if err := os.MkdirAll(private, 0o700); err != nil {
		return nil, domain.WrapError(domain.Unavailable, err, "no temporary directory for the command")
	}
	real, err := filepath.EvalSymlinks(private)
	if err != nil {
		return nil, domain.WrapError(domain.Unavailable, err, "no temporary directory for the command")
	}
	spec.Env = append(slices.Clone(spec.Env), "TMPDIR="+real)
	return append([]string{sandboxExec, "-p", s.seatbeltProfile(spec, real)}, spec.Argv...), nil
}
