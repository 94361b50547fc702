package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// landlocked is the order for a command that only Landlock and the filter
// confine. It sees the real file system, so its private places are elsewhere
// and variables lead it there.
func (p *Process) landlocked() (order, error) {
	s, spec := p.box, &p.spec
	// Landlock can give a directory away, not take one out of it.
	for _, h := range slices.Concat(s.cfg.Hidden, spec.hidden) {
		if _, _, ok := exists(h); ok && withinAny(h, p.plan.read) {
			return order{}, domain.Errorf(domain.Denied,
				"%s is forbidden but lies in a directory that commands use, and without namespaces it cannot be hidden; open a directory that does not hold it", h)
		}
	}
	tmp, err := os.MkdirTemp("", "berth-run-")
	if err != nil {
		return order{}, domain.WrapError(domain.Unavailable, err, "no temporary directory for the command")
	}
	p.remove = tmp
	home := tmp
	if dir := s.private(spec); dir != "" {
		home = filepath.Join(dir, "home")
	}
	o := s.order(spec)
	o.Env = slices.DeleteFunc(o.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "HOME" || name == "TMPDIR" || name == "TMP" || name == "TEMP"
	})
	o.Env = append(o.Env, "HOME="+home, "TMPDIR="+tmp)
	r := &o.Restrict
	r.IDs = p.plan.ids
	r.TCP, r.Inet = !spec.Network, !spec.Network
	r.Unix = true // a filter cannot see whom a socket speaks to
	r.Read = append([]string{"/proc"}, p.plan.read...)
	for _, m := range slices.Concat(systemMounts(spec.Network), s.toolMounts(nil), s.cacheMounts(nil, "")) {
		if m.Kind != mountLink {
			r.Read = append(r.Read, m.Source)
		}
	}
	r.Write = append(slices.Clone(p.plan.write), tmp)
	if home != tmp {
		r.Write = append(r.Write, home)
	}
	r.Device = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
	return o, nil
}
