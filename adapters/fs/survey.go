package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// Limits on a directory that is deleted or moved as a whole.
const (
	maxMembers   = 100_000 // entries in it, at any depth
	maxMemberDir = 128     // directories inside each other; each is held open
	maxNamed     = 100     // entries that the person is shown by name
)

// member is one entry of a directory that is looked at as a whole.
type member struct {
	name string
	info info
	kids []*member // of a directory, sorted by name
}

// survey is what lies in a directory, at one time.
type survey struct {
	top *member

	files, dirs, links, others int
	bytes                      int64
	named                      []string // the first entries, relative, with their sizes
	guarded                    protection
	ban                        string // the forbidden path that is among them
}

// count is how many entries there are below the top.
func (s *survey) count() int { return s.files + s.dirs + s.links + s.others }

// words are the counts for people.
func (s *survey) words() string {
	list := []string{fmt.Sprintf("%s (%s)", plural(s.files, "file"), bytesWords(s.bytes))}
	if s.dirs == 1 {
		list = append(list, "1 directory")
	} else if s.dirs > 1 {
		list = append(list, fmt.Sprintf("%d directories", s.dirs))
	}
	if s.links > 0 {
		list = append(list, plural(s.links, "symbolic link"))
	}
	if s.others > 0 {
		list = append(list, plural(s.others, "special file"))
	}
	return strings.Join(list, ", ")
}

// listed is the first entries, a line each.
func (s *survey) listed() string {
	var b strings.Builder
	for _, n := range s.named {
		b.WriteString(n + "\n")
	}
	if more := s.count() - len(s.named); more > 0 {
		fmt.Fprintf(&b, "… and %d more\n", more)
	}
	return b.String()
}

// surveyor looks through a directory. It follows no link and refuses to go to
// another file system: what is mounted somewhere is not part of the directory.
type surveyor struct {
	ctx   context.Context //nolint:containedctx // surveyor is one running look
	guard *guard
	show  string
	judge func(below []string) protection

	into  *survey
	dev   uint64
	mount uint64
	at    []string // names below the top
}

// survey looks at everything in the directory that t is. judge says how names
// below it are guarded. TooLarge when there is more than can be dealt with,
// Denied when it cannot be looked at as a whole.
func (sp *space) survey(ctx context.Context, t *target, judge func(below []string) protection) (*survey, error) {
	d, err := t.dir.sub(t.name)
	if errors.Is(err, errIsLink) || errors.Is(err, errNotDir) || errors.Is(err, iofs.ErrNotExist) {
		err = errMoved
	}
	if err != nil {
		return nil, err
	}
	self, err := d.stat()
	if err != nil {
		_ = d.close()
		return nil, err
	}
	if self.id != t.info.id {
		_ = d.close()
		return nil, errMoved
	}
	s := &survey{top: &member{name: t.name, info: self}, ban: sp.guard.inside(t.path)}
	r := &surveyor{ctx: ctx, guard: sp.guard, show: sp.display(t), judge: judge, into: s, dev: self.id.dev, mount: d.mount()}
	return s, r.dir(d, s.top)
}

// inside reports a forbidden path that lies in a directory, by its name.
func (g *guard) inside(dir string) string {
	for _, f := range g.paths {
		if rest, in := below(dir, f); in && rest != "" {
			return f
		}
	}
	return ""
}

// dir fills in what is in a directory and closes it.
func (r *surveyor) dir(d *dir, m *member) error {
	defer func() { _ = d.close() }()
	if len(r.at) >= maxMemberDir {
		return domain.Errorf(domain.TooLarge, "it has more than %d directories inside each other", maxMemberDir)
	}
	f, err := d.readable()
	if err != nil {
		return systemError(r.where(), err)
	}
	defer func() { _ = f.Close() }()
	for {
		names, err := f.Readdirnames(256)
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		for _, name := range names {
			i, lerr := d.lstat(name)
			if errors.Is(lerr, iofs.ErrNotExist) {
				continue // gone already
			}
			if lerr != nil {
				return systemError(r.where(name), lerr)
			}
			m.kids = append(m.kids, &member{name: name, info: i})
		}
		if r.into.count()+len(m.kids) > maxMembers {
			return domain.Errorf(domain.TooLarge, "it holds more than %d entries; go on with smaller parts of it", maxMembers)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return systemError(r.where(), err)
		}
	}
	slices.SortFunc(m.kids, func(a, b *member) int { return strings.Compare(a.name, b.name) })
	for _, kid := range m.kids {
		if err := r.kid(d, kid); err != nil {
			return err
		}
	}
	return nil
}

// kid counts one entry and goes into it if it is a directory.
func (r *surveyor) kid(d *dir, m *member) error {
	r.at = append(r.at, m.name)
	defer func() { r.at = r.at[:len(r.at)-1] }()
	if r.into.ban == "" {
		r.into.ban, _ = r.guard.object(m.info.id)
	}
	if r.into.guarded != protected {
		r.into.guarded = max(r.into.guarded, r.judge(r.at))
	}
	r.tally(m)
	if !m.info.mode.IsDir() {
		return nil
	}
	sub, err := d.sub(m.name)
	switch {
	case errors.Is(err, errIsLink), errors.Is(err, errNotDir), errors.Is(err, iofs.ErrNotExist):
		return errMoved
	case err != nil:
		return systemError(r.where(), err)
	}
	self, err := sub.stat()
	switch {
	case err != nil:
	case self.id.dev != r.dev, sub.mount() != r.mount:
		err = domain.Errorf(domain.Denied, "another file system is mounted on %s in it; nothing here goes there", r.where())
	case self.id != m.info.id:
		err = errMoved
	}
	if err != nil {
		_ = sub.close()
		return err
	}
	return r.dir(sub, m)
}

// tally counts one entry.
func (r *surveyor) tally(m *member) {
	s, line := r.into, printable(strings.Join(r.at, "/"))
	switch mode := m.info.mode; {
	case mode.IsDir():
		s.dirs++
		line += "/"
	case mode&iofs.ModeSymlink != 0:
		s.links++
		line += "  (symbolic link)"
	case mode.IsRegular():
		s.files++
		s.bytes += m.info.size
		line += "  " + bytesWords(m.info.size)
	default:
		s.others++
		line += "  (" + kindOf(mode) + ")"
	}
	if len(s.named) < maxNamed {
		s.named = append(s.named, line)
	}
}

// where names a place below the top for a message.
func (r *surveyor) where(more ...string) string {
	return brief(strings.Join(append(append([]string{r.show}, r.at...), more...), "/"))
}

// unchanged reports whether a second look found what the first one did. When
// contents are of no concern, entries have to be the same, not what is in them.
func (m *member) unchanged(now *member, contents bool) bool {
	switch {
	case m.name != now.name || m.info.id != now.info.id || m.info.mode != now.info.mode || len(m.kids) != len(now.kids):
		return false
	case contents && !m.info.mode.IsDir() && !m.info.same(now.info):
		return false
	}
	for i := range m.kids {
		if !m.kids[i].unchanged(now.kids[i], contents) {
			return false
		}
	}
	return true
}
