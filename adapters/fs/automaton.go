package fs

import (
	"bytes"
	"context"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

const (
	maxStates  = 4096    // of one automaton before it is begun anew
	maxHeld    = 1 << 18 // instructions in its states
	maxTable   = 1 << 20 // entries in its table
	maxClasses = 2048    // kinds of characters that a pattern tells apart
)

// automaton tells which lines a pattern matches. It is a deterministic one
// whose states are made when they are first reached: a state is the set of
// instructions that may come next. One goroutine uses it at a time.
type automaton struct {
	*program
	ctx  context.Context //nolint:containedctx // an automaton belongs to one running search
	work int             // steps since ctx was looked at

	table  []int32          // kinds entries a state: the next state's place in table, 0 unknown, matched
	states []dfaState       // by place / kinds; the first is not used
	known  map[string]int32 // key of a state to its place
	begin  int32            // the state at the beginning of a line
	held   int              // instructions in the states
	resets int

	seen  []uint32 // stamp of the round in which an instruction was added
	round uint32
	todo  []uint32
	now   []uint32
	then  []uint32
	key   []byte
}

// dfaState is a set of instructions, and what was before.
type dfaState struct {
	insts []uint32
	prev  before
	end   int8 // whether the line is matched if it ends here: 0 unknown, 1 no, 2 yes
}

// before is what stands before a place in a line.
type before byte

const (
	atBegin before = iota
	afterWord
	afterLine // a line feed, which only is before something in a text that is one line
	afterOther
)

// Answers in the table that are no states.
const (
	unknownState = 0
	matched      = -1
	dead         = -2 // no match in this line any more
)

func newAutomaton(ctx context.Context, p *program) *automaton {
	a := &automaton{program: p, ctx: ctx, seen: make([]uint32, len(p.prog.Inst))}
	a.restart()
	return a
}

func (a *automaton) restart() {
	a.table = append(a.table[:0], make([]int32, a.kinds)...)
	a.states = append(a.states[:0], dfaState{})
	a.known, a.held = map[string]int32{}, 0
	a.round++
	a.then = a.closure(a.then[:0], uint32(a.prog.Start), 0)
	a.begin = a.state(a.then, atBegin)
}

// hopeless reports whether the automaton has too many states to be of use.
func (a *automaton) hopeless() bool { return a.resets > 8 }

// closure adds to set what can be reached from pc without a character, as far
// as flags allow.
func (a *automaton) closure(set []uint32, pc uint32, flags syntax.EmptyOp) []uint32 {
	a.todo = append(a.todo[:0], pc)
	for len(a.todo) > 0 {
		pc := a.todo[len(a.todo)-1]
		a.todo = a.todo[:len(a.todo)-1]
		if a.seen[pc] == a.round {
			continue
		}
		a.seen[pc] = a.round
		a.work++
		switch in := &a.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			a.todo = append(a.todo, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			a.todo = append(a.todo, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				a.todo = append(a.todo, in.Out)
			} else {
				set = append(set, pc)
			}
		case syntax.InstFail:
		default:
			set = append(set, pc)
		}
	}
	return set
}

// state returns the place of a state, which is made if it is new; matched when
// there is a match in it already, dead when there can be none.
func (a *automaton) state(insts []uint32, prev before) int32 {
	keep := a.now[:0]
	for _, pc := range insts {
		switch in := &a.prog.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return matched
		case syntax.InstEmptyWidth:
			// Only the beginning is one.
			gone := syntax.EmptyBeginText
			if prev != afterLine {
				gone |= syntax.EmptyBeginLine
			}
			if prev != atBegin && syntax.EmptyOp(in.Arg)&gone != 0 {
				continue
			}
		default:
		}
		keep = append(keep, pc)
	}
	a.now = keep
	if len(keep) == 0 && !a.across { // across lines, a later one may begin a match
		return dead
	}
	slices.Sort(keep)
	a.key = append(a.key[:0], byte(prev))
	for _, pc := range keep {
		a.key = binary.LittleEndian.AppendUint32(a.key, pc)
	}
	if at, ok := a.known[string(a.key)]; ok {
		return at
	}
	at := int32(len(a.table))
	a.table = append(a.table, make([]int32, a.kinds)...)
	a.states = append(a.states, dfaState{insts: slices.Clone(keep), prev: prev})
	a.known[string(a.key)] = at
	a.held += len(keep)
	return at
}

// step works out the state after a character of a kind; kind -1 is the end of
// the line, and then the answer is matched or unknownState.
func (a *automaton) step(at int32, kind int) int32 {
	s := &a.states[int(at)/a.kinds]
	var flags syntax.EmptyOp
	word := kind >= 0 && a.word[kind]
	switch s.prev {
	case atBegin:
		flags |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	case afterLine:
		flags |= syntax.EmptyBeginLine
	case afterWord, afterOther:
	}
	switch kind {
	case -1:
		flags |= syntax.EmptyEndLine | syntax.EmptyEndText
	case a.nl:
		flags |= syntax.EmptyEndLine
	}
	if word != (s.prev == afterWord) {
		flags |= syntax.EmptyWordBoundary
	} else {
		flags |= syntax.EmptyNoWordBoundary
	}
	a.round++
	from := a.now[:0]
	for _, pc := range s.insts {
		from = a.closure(from, pc, flags)
	}
	a.now = from
	for _, pc := range from {
		if a.prog.Inst[pc].Op == syntax.InstMatch {
			return matched
		}
	}
	if kind < 0 {
		return unknownState
	}
	r := a.bounds[kind]
	a.round++
	next := a.then[:0]
	for _, pc := range from {
		if in := &a.prog.Inst[pc]; in.Op != syntax.InstEmptyWidth && in.MatchRune(r) {
			next = a.closure(next, in.Out, 0)
		}
	}
	next = a.closure(next, uint32(a.prog.Start), 0)
	a.then = next
	prev := afterOther
	switch {
	case word && a.words:
		prev = afterWord
	case kind == a.nl:
		prev = afterLine
	}
	return a.state(next, prev)
}

// next is step, remembered. It begins anew when there are too many states.
func (a *automaton) next(at int32, kind int) int32 {
	to := a.step(at, kind)
	if len(a.states) > maxStates || len(a.table) > maxTable || a.held > maxHeld {
		a.resets++
		if to < 0 {
			a.restart()
			return to
		}
		s := a.states[int(to)/a.kinds]
		a.restart()
		return a.state(s.insts, s.prev)
	}
	if kind != a.cr || a.across { // it may be a part of the end of the line
		a.table[int(at)+kind] = to
	}
	return to
}

// ends reports whether a line that ends in a state is matched.
func (a *automaton) ends(at int32) bool {
	s := &a.states[int(at)/a.kinds]
	if s.end == 0 {
		s.end = 1
		if a.step(at, -1) == matched {
			s.end = 2
		}
	}
	return s.end == 2
}

// ended looks at the context now and then; the search is over when it is.
func (a *automaton) ended() bool {
	if a.work < 1<<16 {
		return false
	}
	a.work = 0
	return a.ctx.Err() != nil
}

// find returns the beginning of the first line that the pattern matches, of
// those that begin at or after pos, where one does, and before end; -1 when
// there is none.
func (a *automaton) find(text []byte, pos, end int) int {
	for pos < end && !a.ended() {
		ok, next := a.line(text, pos)
		if ok {
			return pos
		}
		a.work += next - pos
		pos = next
	}
	return -1
}

// line reports whether the line at pos is matched, and where the next one
// begins if it is not.
func (a *automaton) line(text []byte, pos int) (ok bool, next int) {
	at := a.begin
	for at > unknownState {
		// Known steps over ASCII. What ends a line is never known.
		for pos < len(text) && text[pos] < utf8.RuneSelf {
			to := a.table[int(at)+int(a.ascii[text[pos]])]
			if to <= unknownState {
				break
			}
			at = to
			pos++
		}
		if pos == len(text) || !a.across && endsLine(text[pos:]) {
			if a.ends(at) {
				return true, 0
			}
			break
		}
		kind, size := 0, 1
		if c := text[pos]; c < utf8.RuneSelf {
			kind = int(a.ascii[c])
		} else {
			var r rune
			r, size = utf8.DecodeRune(text[pos:])
			kind = a.kind(r)
		}
		to := a.table[int(at)+kind]
		if to == unknownState {
			to = a.next(at, kind)
			if a.work > 1<<20 && a.ended() {
				return false, len(text)
			}
		}
		at = to
		pos += size
	}
	if at == matched {
		return true, 0
	}
	if a.across {
		return false, len(text)
	}
	if end := bytes.IndexByte(text[min(pos, len(text)):], '\n'); end >= 0 {
		return false, pos + end + 1
	}
	return false, len(text)
}

// endsLine reports whether a text begins with the end of a line.
func endsLine(text []byte) bool {
	return text[0] == '\n' || text[0] == '\r' && len(text) > 1 && text[1] == '\n'
}
