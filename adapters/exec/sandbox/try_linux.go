package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// try runs the probe under by and says what was proven.
func (s *Sandbox) try(ctx context.Context, by backend) domain.Posture {
	switch {
	case by == byNamespaces && s.breaks.namespaces:
		return none("switched off")
	case by == byLandlock && s.system.abi == 0:
		return none("this kernel has no Landlock (5.13 and later, with landlock in the list of security modules)")
	case by == byLandlock && !s.system.filter:
		return none("no system call filter for this processor")
	case by == byBubblewrap:
		path, why := s.findBwrap(ctx)
		if why != "" {
			return none(why)
		}
		s.system.bwrap = path
	}
	open, err := s.probe(ctx, by)
	if err != nil {
		return none(explain(by, err))
	}
	if what := open[useless]; len(what) > 0 {
		return none("commands cannot work in it: " + strings.Join(what, ", "))
	}
	return s.judge(by, open)
}

// judge turns what the probe could do into a posture.
func (s *Sandbox) judge(by backend, open map[string][]string) domain.Posture {
	p := domain.Posture{Word: domain.PostureStrong, Backend: string(by)}
	var reasons []string
	for _, lack := range everything() {
		if did := open[lack]; len(did) > 0 {
			p.Word = domain.PosturePartial
			p.Lacks = append(p.Lacks, lack)
			reasons = append(reasons, "the probe could "+strings.Join(did, ", "))
		}
	}
	if len(open[lackFiles]) > 0 {
		p.Word = domain.PostureNone
	}
	if s.system.abi == 0 {
		p.Word = weaker(p.Word)
		p.Lacks = append(p.Lacks, lackSecond)
		reasons = append(reasons, "this kernel has no Landlock")
	}
	if by == byLandlock {
		p.Word = weaker(p.Word)
		reasons = append(reasons, "without namespaces Landlock cannot close more")
	}
	if s.system.uid == 0 && (by != byNamespaces || !s.system.pidMax) {
		p.Lacks = append(p.Lacks, lackCount)
		reasons = append(reasons, "the kernel does not count root's processes")
	}
	if p.Word != domain.PostureStrong {
		p.Reason = strings.Join(reasons, "; ")
	}
	return p
}

// weaker is a posture that is not strong.
func weaker(w domain.PostureWord) domain.PostureWord {
	if w == domain.PostureStrong {
		return domain.PosturePartial
	}
	return w
}

// explain says why a backend does not work, and how to mend what a person can
// mend.
func explain(by backend, err error) string {
	reason := err.Error()
	var coded *domain.Error
	if errors.As(err, &coded) && coded.Err != nil {
		reason = coded.Err.Error()
	}
	if by != byNamespaces {
		return reason
	}
	if n, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err == nil && strings.TrimSpace(string(n)) == "0" {
		return reason + " (user namespaces are switched off; set the sysctl user.max_user_namespaces above 0)"
	}
	if n, err := os.ReadFile("/proc/sys/kernel/unprivileged_userns_clone"); err == nil && strings.TrimSpace(string(n)) == "0" {
		return reason + " (user namespaces are for root only; set the sysctl kernel.unprivileged_userns_clone to 1)"
	}
	if n, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); err == nil && strings.TrimSpace(string(n)) == "1" {
		return reason + " (AppArmor restricts user namespaces; add a profile that allows userns for berth, or install bubblewrap " + bwrapNeeds + " with its profile)"
	}
	return reason + " (a container often forbids namespaces; allow them there, or accept its own walls with sandbox = \"none\")"
}

// probeTime bounds one probe, which takes some milliseconds.
const probeTime = 20 * time.Second

// probe sets out the bait, runs the probe and looks what was taken.
func (s *Sandbox) probe(ctx context.Context, by backend) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "berth-probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	t, err := setTrap(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer t.close()
	raw, err := json.Marshal(t.bait)
	if err != nil {
		return nil, err
	}
	spec := Spec{Argv: []string{string(raw)}, Dir: t.bait.Root, Writable: []string{t.bait.Root}, self: true}
	if by != byLandlock {
		spec.hidden = []string{filepath.Dir(t.bait.Hidden)}
	}
	before := s.chosen
	s.chosen = by
	defer func() { s.chosen = before }()
	p, err := s.prepare(by, spec)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	var out, complaint bytes.Buffer
	p.Cmd.Stdout, p.Cmd.Stderr = &out, &complaint
	if err := p.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { p.Kill() })
	res, err := p.Wait()
	stop()
	if said := bytes.TrimSpace(complaint.Bytes()); err != nil && len(said) > 0 {
		return nil, fmt.Errorf("%w: %.300s", err, said)
	}
	if err != nil {
		return nil, err
	}
	open := map[string][]string{}
	if res.Code != 0 || json.Unmarshal(out.Bytes(), &open) != nil {
		return nil, fmt.Errorf("the probe ended with code %d and said %q", res.Code, out.String())
	}
	t.taken(open)
	for lack := range open {
		slices.Sort(open[lack])
	}
	return open, nil
}

// trap is the bait and those who watch it.
type trap struct {
	bait     bait
	tcp      net.Listener
	udp      net.PacketConn
	unix     net.Listener
	abstract net.Listener
}

func setTrap(ctx context.Context, dir string) (*trap, error) {
	t := &trap{bait: bait{
		Root: filepath.Join(dir, "root"), Outside: filepath.Join(dir, "outside", "canary"),
		Hidden: filepath.Join(dir, "root", "secret", "canary"), Protected: filepath.Join(dir, "root", ".git", configName),
		Hooks: filepath.Join(dir, "root", ".git", hooksName), Unix: filepath.Join(dir, "outside", "socket"),
		Abstract: filepath.Join(dir, "abstract"), Host: os.Getpid(),
	}}
	for _, d := range []string{filepath.Dir(t.bait.Outside), filepath.Dir(t.bait.Hidden), t.bait.Hooks} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	for _, f := range []string{t.bait.Outside, t.bait.Hidden, t.bait.Protected} {
		if err := os.WriteFile(f, []byte("canary"), 0o644); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	var errs [4]error
	t.tcp, errs[0] = lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	t.udp, errs[1] = lc.ListenPacket(ctx, "udp4", "127.0.0.1:0")
	t.unix, errs[2] = lc.Listen(ctx, "unix", t.bait.Unix)
	t.abstract, errs[3] = lc.Listen(ctx, "unix", "@"+t.bait.Abstract)
	if err := errors.Join(errs[:]...); err != nil {
		t.close()
		return nil, fmt.Errorf("listening for the probe: %w", err)
	}
	t.bait.Ports = [2]int{t.tcp.Addr().(*net.TCPAddr).Port, t.udp.LocalAddr().(*net.UDPAddr).Port}
	return t, nil
}

func (t *trap) close() {
	if t.tcp != nil {
		t.tcp.Close()
	}
	if t.udp != nil {
		t.udp.Close()
	}
	if t.unix != nil {
		t.unix.Close()
	}
	if t.abstract != nil {
		t.abstract.Close()
	}
}

// taken adds what reached us to what the probe told. The probe is over, and
// on one machine what it sent has arrived.
func (t *trap) taken(open map[string][]string) {
	soon := time.Now().Add(10 * time.Millisecond)
	accepted := func(l net.Listener) bool {
		l.(interface{ SetDeadline(time.Time) error }).SetDeadline(soon)
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	if accepted(t.tcp) {
		open[lackNetwork] = append(open[lackNetwork], "reach us by TCP")
	}
	t.udp.SetDeadline(soon)
	if n, _, err := t.udp.ReadFrom(make([]byte, 8)); err == nil && n > 0 {
		open[lackNetwork] = append(open[lackNetwork], "reach us by UDP")
	}
	if accepted(t.unix) || accepted(t.abstract) {
		open[lackSockets] = append(open[lackSockets], "reach us by a local socket")
	}
	if info, err := os.Stat(t.bait.Outside); err != nil || info.Mode().Perm() != 0o644 || info.ModTime().Before(soon.Add(-time.Hour)) {
		open[lackMetadata] = append(open[lackMetadata], "change a file outside")
	}
}
