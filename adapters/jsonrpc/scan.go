package jsonrpc

// A scanner walks one JSON text once and proves it: grammar, UTF-8, escapes
// that name real characters, no member twice in an object at any depth,
// nesting within the limit. Beside that it notes where the members of the
// outermost object lie, so an envelope costs one pass and no copies.
//
// encoding/json cannot do this: it replaces bad UTF-8 and lone surrogates in
// silence, keeps the last of two equal names and folds their case.
type scanner struct {
	b        []byte
	maxDepth int
	names    [][]byte // names of the objects open now, innermost last
	open     int      // members of all objects open now
	fault    fault    // why walking stopped, when it did
	dup      bool     // a member came twice somewhere
	dupTop   bool     // ... in the outermost object
}

// fault is why a text was given up.
type fault uint8

const (
	faultSyntax  fault = iota + 1 // not JSON
	faultDepth                    // nests too deep
	faultMembers                  // more members at once than we compare
)

// fewMembers is up to how many members an object's names are compared one by
// one; beyond, a set is built.
const fewMembers = 16

// maxOpenMembers bounds the memory that comparing names may take. A message
// of this protocol has dozens.
const maxOpenMembers = 1 << 16

// reset prepares the scanner for a text, keeping its memory.
func (s *scanner) reset(b []byte, maxDepth int) {
	*s = scanner{b: b, maxDepth: maxDepth, names: s.names[:0]}
}

// text walks a whole text: one value with white space around it. It reports
// whether that succeeded; fault says why not. A repeated member does not stop
// the walk, so that a text that is no JSON at all is always called that.
func (s *scanner) text(env *envelope) bool {
	i := s.space(0)
	if env != nil && i < len(s.b) && s.b[i] == '{' {
		env.object = true
		i = s.envelope(i, env)
	} else {
		i = s.value(i, 1)
	}
	if i < 0 {
		return false
	}
	if i = s.space(i); i != len(s.b) {
		s.stop(faultSyntax)
		return false
	}
	return true
}

// stop notes the first fault and returns the position that means "stopped".
func (s *scanner) stop(f fault) int {
	if s.fault == 0 {
		s.fault = f
	}
	return -1
}

// space returns the first position at or after i that is not white space.
func (s *scanner) space(i int) int {
	for i < len(s.b) && (s.b[i] == ' ' || s.b[i] == '\t' || s.b[i] == '\n' || s.b[i] == '\r') {
		i++
	}
	return i
}

// value walks the value at i, which would open level depth, and returns the
// position behind it, or -1.
func (s *scanner) value(i, depth int) int {
	if i >= len(s.b) {
		return s.stop(faultSyntax)
	}
	switch c := s.b[i]; {
	case c == '"':
		end, _ := scanString(s.b, i+1)
		if end < 0 {
			return s.stop(faultSyntax)
		}
		return end
	case c == '{':
		return s.object(i, depth)
	case c == '[':
		return s.array(i, depth)
	case c == '-' || c-'0' < 10:
		return s.number(i)
	case c == 't':
		return s.literal(i, "true")
	case c == 'f':
		return s.literal(i, "false")
	case c == 'n':
		return s.literal(i, "null")
	}
	return s.stop(faultSyntax)
}

func (s *scanner) literal(i int, word string) int {
	if len(s.b)-i < len(word) || string(s.b[i:i+len(word)]) != word {
		return s.stop(faultSyntax)
	}
	return i + len(word)
}

// number walks a number by the grammar of RFC 8259.
func (s *scanner) number(i int) int {
	b := s.b
	digits := func() bool {
		start := i
		for i < len(b) && b[i]-'0' < 10 {
			i++
		}
		return i > start
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return s.stop(faultSyntax)
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return s.stop(faultSyntax)
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return s.stop(faultSyntax)
		}
	}
	return i
}

func (s *scanner) array(i, depth int) int {
	if depth > s.maxDepth {
		return s.stop(faultDepth)
	}
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth+1); i < 0 {
			return i
		}
		i = s.space(i)
		if i >= len(s.b) {
			return s.stop(faultSyntax)
		}
		switch s.b[i] {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1
		default:
			return s.stop(faultSyntax)
		}
	}
}

func (s *scanner) object(i, depth int) int {
	if depth > s.maxDepth {
		return s.stop(faultDepth)
	}
	o := objectNames{base: len(s.names), top: depth == 1}
	defer s.forget(&o)
	i, more := s.firstName(i)
	for more {
		if _, i = s.name(i, &o); i < 0 {
			return i
		}
		if i = s.value(i, depth+1); i < 0 {
			return i
		}
		i, more = s.nextName(i)
	}
	return i
}

// firstName steps over the opening brace and reports whether a member
// follows; if not, i is behind the object, or -1.
func (s *scanner) firstName(i int) (int, bool) {
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == '}' {
		return i + 1, false
	}
	return i, true
}

// nextName steps over what stands behind a member.
func (s *scanner) nextName(i int) (int, bool) {
	i = s.space(i)
	if i < len(s.b) {
		switch s.b[i] {
		case ',':
			return s.space(i + 1), true
		case '}':
			return i + 1, false
		}
	}
	return s.stop(faultSyntax), false
}

// objectNames is what is known about one open object's names.
type objectNames struct {
	base int // where its names start in scanner.names
	n    int
	set  map[string]struct{} // of all names, once there are many
	top  bool
}

// forget drops the names of an object that is closed.
func (s *scanner) forget(o *objectNames) {
	s.names = s.names[:o.base]
	s.open -= o.n
}

// name walks a member's name and its colon, compares it with the names before
// it and returns it unescaped, with the position of the member's value.
func (s *scanner) name(i int, o *objectNames) ([]byte, int) {
	if i >= len(s.b) || s.b[i] != '"' {
		return nil, s.stop(faultSyntax)
	}
	end, escaped := scanString(s.b, i+1)
	if end < 0 {
		return nil, s.stop(faultSyntax)
	}
	name := s.b[i+1 : end-1]
	if escaped {
		name = unescape(nil, name)
	}
	if i = s.space(end); i >= len(s.b) || s.b[i] != ':' {
		return nil, s.stop(faultSyntax)
	}
	o.n++
	if s.open++; s.open > maxOpenMembers {
		return nil, s.stop(faultMembers)
	}
	if s.seen(name, o) {
		s.dup = true
		s.dupTop = s.dupTop || o.top
	}
	return name, s.space(i + 1)
}

// seen reports whether the object had the name already, and notes it.
func (s *scanner) seen(name []byte, o *objectNames) bool {
	if o.set != nil {
		before := len(o.set)
		o.set[string(name)] = struct{}{}
		return len(o.set) == before
	}
	known := s.names[o.base:]
	for _, k := range known {
		if string(k) == string(name) {
			return true
		}
	}
	s.names = append(s.names, name)
	if len(known) >= fewMembers {
		o.set = make(map[string]struct{}, 4*fewMembers)
		for _, k := range s.names[o.base:] {
			o.set[string(k)] = struct{}{}
		}
	}
	return false
}
