package fs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const (
	maxInstruction  = 64 << 10  // bytes of one file that are told
	maxInstructions = 192 << 10 // bytes of all that is told, names included
	maxKept         = 512       // files whose text is kept
	// settled is how long a file must have been left alone before its size
	// and times are trusted to tell that it has not changed: clocks of file
	// systems may be coarse.
	settled = 2 * time.Second
)

// Instructions reads what sessions' models are told besides the conversation:
// AGENTS.md of each root, or CLAUDE.md where that is missing; IDENTITY.md and
// SOUL.md of the agent's workspace; the skills of the agent, and those that a
// project brings in .berth/skills, which count as words of the project.
//
// Each directory is a root of its own, walked as the tools walk: no link leads
// out of it, and what is forbidden to the agent stays so. Files are opened
// anew each time; the text of one that has not changed is kept.
type Instructions struct {
	disk *Disk

	mu   sync.Mutex
	kept map[fileID]keptText
}

var _ ports.Instructions = (*Instructions)(nil)

// keptText is the text of a file as of its info.
type keptText struct {
	info info
	text string // at most maxInstruction bytes
	cut  bool
}

// NewInstructions makes the Instructions of a disk.
func NewInstructions(d *Disk) *Instructions {
	return &Instructions{disk: d, kept: map[fileID]keptText{}}
}

// Read returns the instructions of a session as they are now.
func (in *Instructions) Read(ctx context.Context, s domain.Session, a domain.Agent) []domain.Instruction {
	r := &reader{in: in, ctx: ctx, session: s, policy: in.disk.policy(s.Agent), left: maxInstructions}
	r.within(s.Workspace, func(sp *space) {
		r.file(sp, domain.InstructionPersona, "IDENTITY.md")
		r.file(sp, domain.InstructionPersona, "SOUL.md")
	})
	var own skillList
	for _, dir := range a.Skills {
		r.within(canonical(homePath(dir, in.disk.conf.Home)), func(sp *space) { own.find(r, sp, "") })
	}
	for _, root := range s.Roots() {
		r.within(root, func(sp *space) {
			if !r.file(sp, domain.InstructionProject, "AGENTS.md") {
				r.file(sp, domain.InstructionProject, "CLAUDE.md")
			}
			brought := skillList{taken: own.taken}
			brought.find(r, sp, projectSkills())
			brought.tell(r, domain.InstructionProject)
		})
	}
	own.tell(r, domain.InstructionSkill)
	return r.out
}

// reader is one Read.
type reader struct {
	in      *Instructions
	ctx     context.Context
	session domain.Session
	policy  Policy
	out     []domain.Instruction
	left    int // bytes that may still be told
}

// within opens a directory as the only root there is. One that is missing
// says nothing.
func (r *reader) within(dir string, use func(*space)) {
	if dir == "" || r.ctx.Err() != nil {
		return
	}
	h, err := r.in.disk.acquire(dir)
	if err != nil {
		return
	}
	sp := &space{disk: r.in.disk, guard: r.in.disk.guardFor(r.policy, r.session.Workspace), pol: Policy{Level: domain.LevelSupervised}}
	sp.refs.Store(1)
	defer sp.drop()
	sp.roots = []root{{path: dir, given: dir, h: h, ban: sp.guard.rootBan(dir)}}
	use(sp)
}

// file tells a file of a space; false when there is none of that name.
func (r *reader) file(sp *space, kind domain.InstructionKind, name string) bool {
	text, cut, why := r.read(sp, name)
	switch {
	case why == "" && strings.TrimSpace(text) == "":
		return cut
	case why != "":
		text = "(Not read: " + why + ".)"
	}
	r.tell(domain.Instruction{Kind: kind, Path: join(sp.roots[0].path, name), Text: text, Cut: cut})
	return true
}

// tell adds an instruction, cut to what room is left.
func (r *reader) tell(i domain.Instruction) {
	const note, least = 120, 200
	room := r.left - len(i.Name) - note
	if room < least {
		return
	}
	if len(i.Text) > room {
		i.Text, i.Cut = clip(i.Text, room), true
	}
	if i.Cut {
		i.Text += "\n(Cut here: the file is longer. Read it for the rest.)"
	}
	r.left -= len(i.Name) + len(i.Text)
	r.out = append(r.out, i)
}

// read returns the text of a file below a root, fit to be told. Missing files
// are empty; why says in words why another cannot be read.
func (r *reader) read(sp *space, name string) (text string, cut bool, why string) {
	t, file, err := sp.openFile(r.ctx, "."+string(os.PathSeparator)+name)
	switch {
	case r.ctx.Err() != nil, domain.HasCode(err, domain.NotFound):
		if t != nil {
			t.close()
		}
		if file != nil {
			_ = file.Close()
		}
		return "", false, ""
	case err != nil:
		return "", false, domain.Visible(messageOf(err))
	}
	defer t.close()
	if file == nil {
		if t.outside {
			return "", false, "it is a link that leads out of its directory"
		}
		return "", false, domain.Visible(t.refusal())
	}
	defer func() { _ = file.Close() }()
	k, why := r.in.text(file, t.info)
	return k.text, k.cut, why
}

// text reads an open file, unless it is as it was when it was read last.
func (in *Instructions) text(file *os.File, i info) (keptText, string) {
	in.mu.Lock()
	k, ok := in.kept[i.id]
	in.mu.Unlock()
	if ok && k.info.same(i) && k.info.id != (fileID{}) {
		return k, ""
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxInstruction+1))
	if err != nil {
		return keptText{}, reason(err)
	}
	if strings.HasPrefix(string(raw), "\xff\xfe") || strings.HasPrefix(string(raw), "\xfe\xff") || strings.ContainsRune(string(raw), 0) {
		return keptText{}, notText(raw, true)
	}
	k = keptText{info: i}
	k.text, k.cut = told(string(raw))
	if age := time.Since(time.Unix(0, max(i.mtime, i.ctime))); age > settled {
		in.mu.Lock()
		if len(in.kept) >= maxKept {
			clear(in.kept)
		}
		in.kept[i.id] = k
		in.mu.Unlock()
	}
	return k, ""
}

// told makes the beginning of a file fit to be told.
func told(raw string) (text string, cut bool) {
	if len(raw) > maxInstruction {
		raw, cut = clip(raw, maxInstruction), true
	}
	raw = strings.ReplaceAll(strings.TrimPrefix(raw, string(bom)), "\r\n", "\n")
	if text = domain.Visible(raw); len(text) > maxInstruction {
		text, cut = clip(text, maxInstruction), true // escapes are longer than what they show
	}
	return strings.TrimRight(text, " \t\n"), cut
}

// clip cuts a text before a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// oneLine puts a text into one line of at most so many bytes.
func oneLine(text string, most int) string {
	text = strings.Join(strings.Fields(domain.Visible(text)), " ")
	if len(text) > most {
		text = fmt.Sprint(clip(text, most), "…")
	}
	return text
}
