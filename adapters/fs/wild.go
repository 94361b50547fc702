package fs

import "strings"

// wild reports whether a pattern of an ignore file matches a path, by the
// rules of git's: * and ? match anything but a slash, ** as a whole name any
// number of names, [...] a set of bytes, a backslash takes the next character
// as it is. The work is bounded by the product of the lengths and the number
// of names in the path, whatever the pattern: only the last star and the last
// double star are ever tried again.
func wild(p, s string) bool {
	pi, si := 0, 0
	starP, starS := -1, 0               // after the last star, and what it has eaten
	deepP, deepS, slash := -1, 0, false // the same for a double star; slash: it eats whole names
	for {
		switch {
		case pi == len(p):
			if si == len(s) {
				return true
			}
		case p[pi] == '*':
			at := pi
			for pi < len(p) && p[pi] == '*' {
				pi++
			}
			rest := p[pi:]
			deep := pi-at > 1 && (at == 0 || p[at-1] == '/') && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
			switch {
			case deep && rest == "":
				return true
			case deep:
				if slash = rest[0] == '/'; slash {
					pi++
				}
				deepP, deepS, starP = pi, si, -1
			default:
				starP, starS = pi, si
			}
			continue
		case si < len(s):
			n, same := wildOne(p[pi:], s[si])
			if n == 0 {
				return false // a broken set matches nothing
			}
			if same {
				pi, si = pi+n, si+1
				continue
			}
		}
		switch {
		case starP >= 0 && starS < len(s) && s[starS] != '/':
			starS++
			pi, si = starP, starS
		case deepP >= 0 && slash:
			next := strings.IndexByte(s[deepS:], '/')
			if next < 0 {
				return false
			}
			deepS += next + 1
			pi, si, starP = deepP, deepS, -1
		case deepP >= 0 && deepS < len(s):
			deepS++
			pi, si, starP = deepP, deepS, -1
		default:
			return false
		}
	}
}

// wildOne matches one byte with the beginning of a pattern, which is not a
// star. n is how much of the pattern that is; 0 when it is broken.
func wildOne(p string, c byte) (n int, same bool) {
	switch p[0] {
	case '?':
		return 1, c != '/'
	case '[':
		n, same = wildSet(p, c)
		return n, same && c != '/'
	case '\\':
		if len(p) == 1 {
			return 1, false
		}
		return 2, p[1] == c
	}
	return 1, p[0] == c
}

// wildSet matches one byte with the set at the beginning of a pattern.
func wildSet(p string, c byte) (n int, same bool) {
	i := 1
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	var before byte // the last single byte, which may begin a range
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, false
		}
		switch b := p[i]; {
		case b == ']' && !first:
			return i + 1, same != negated
		case b == '\\':
			if i++; i >= len(p) {
				return 0, false
			}
			same = same || c == p[i]
			before = p[i]
		case b == '-' && before != 0 && i+1 < len(p) && p[i+1] != ']':
			if i++; p[i] == '\\' {
				if i++; i >= len(p) {
					return 0, false
				}
			}
			same = same || before <= c && c <= p[i]
			before = 0
		case b == '[' && i+1 < len(p) && p[i+1] == ':':
			end := strings.IndexByte(p[i+2:], ']')
			switch {
			case end < 0:
				return 0, false
			case end == 0 || p[i+2+end-1] != ':': // no class after all
				same = same || c == '['
				before = '['
			default:
				in, known := wildClass(p[i+2:i+2+end-1], c)
				if !known {
					return 0, false
				}
				same = same || in
				before = 0
				i += 2 + end
			}
		default:
			same = same || c == b
			before = b
		}
		i++
	}
}

// wildClass reports whether a byte is in a class such as alnum.
func wildClass(name string, c byte) (in, known bool) {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	graph := c > ' ' && c < 0x7F
	switch name {
	case "alnum":
		in = lower || upper || digit
	case "alpha":
		in = lower || upper
	case "blank":
		in = c == ' ' || c == '\t'
	case "cntrl":
		in = c < ' ' || c == 0x7F
	case "digit":
		in = digit
	case "graph":
		in = graph
	case "lower":
		in = lower
	case "print":
		in = graph || c == ' '
	case "punct":
		in = graph && !lower && !upper && !digit
	case "space":
		in = c == ' ' || c >= '\t' && c <= '\r'
	case "upper":
		in = upper
	case "xdigit":
		in = digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	default:
		return false, false
	}
	return in, true
}
