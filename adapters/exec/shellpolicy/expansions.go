package shellpolicy

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// expansion adds what the shell replaces by something else.
func (a *assembly) expansion(p syntax.WordPart, quoted bool) {
	switch p := p.(type) {
	case *syntax.ParamExp:
		a.param(p, quoted)
	case *syntax.ArithmExp:
		a.w.arithmetic(a.sc, p.X)
		if lit := a.text.Len() == 0; lit {
			a.unknownNumber()
		} else {
			a.unknown("it is computed")
		}
	case *syntax.CmdSubst:
		a.unknown("it is the output of a command")
		a.w.substitution(a.sc, p, p.Stmts)
	case *syntax.ProcSubst:
		a.unknown("it is the output of a command")
		a.w.substitution(a.sc, p, p.Stmts)
	case *syntax.ExtGlob:
		a.unknown("it is an extended pattern")
		a.literal(p.Pattern.Value)
	default:
		a.unknown("it is of a kind that is not known")
		a.w.forbid("the command uses syntax that cannot be judged")
	}
}

// unknownNumber says that an unsigned number stands here.
func (a *assembly) unknownNumber() {
	was := a.out.static
	a.unknown("it is a number that is not known yet")
	a.out.number = was
}

// param adds the value of a variable.
func (a *assembly) param(p *syntax.ParamExp, quoted bool) {
	if !simpleParam(p) {
		a.unknown("it is computed from a variable")
		a.w.paramWords(a.sc, p, a)
		return
	}
	switch name := p.Param.Value; {
	case name == "?" || name == "#" || name == "$":
		a.unknownNumber()
	case name == "HOME" || name == "PWD":
		value := a.w.env.Home
		if name == "PWD" {
			value = a.sc.dirs.only(a.w.env.Cwd)
		}
		if value == "" || a.w.renamed[name] || (!quoted && !a.assign && strings.ContainsAny(value, " \t\n*?[\\")) {
			a.unknown("the value of " + name + " is not known")
			return
		}
		a.literal(value)
	default:
		a.unknown("it is the value of a variable")
	}
}

// simpleParam reports whether an expansion is $name or ${name}.
func simpleParam(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet &&
		p.Split == syntax.OptUnset && p.GlobSubst == syntax.OptUnset && p.RcExpand == syntax.OptUnset &&
		p.NestedParam == nil && p.Index == nil && len(p.Modifiers) == 0 && p.Slice == nil &&
		p.Repl == nil && p.Names == 0 && p.Exp == nil
}

// paramWords walks everything inside ${…}; its literal text counts as text of
// the word.
func (w *walker) paramWords(sc scope, p *syntax.ParamExp, a *assembly) {
	nested := func(x *syntax.Word) {
		if x == nil {
			return
		}
		d := w.word(sc, x)
		a.out.lits = append(a.out.lits, d.lits...)
	}
	switch {
	case p.Excl, p.Names != 0, p.Index != nil, p.Exp != nil && p.Exp.Op == syntax.OtherParamOps:
		w.raise(risk, "the value of a variable is used as code")
	case p.NestedParam != nil, p.Flags != nil, len(p.Modifiers) > 0:
		w.forbid("the command uses syntax that cannot be judged")
	}
	if p.Index != nil {
		w.arithmetic(sc, p.Index)
	}
	if p.Slice != nil {
		w.arithmetic(sc, p.Slice.Offset)
		w.arithmetic(sc, p.Slice.Length)
	}
	if p.Repl != nil {
		nested(p.Repl.Orig)
		nested(p.Repl.With)
	}
	if p.Exp != nil {
		nested(p.Exp.Word)
	}
}

// ansiC decodes the inside of $'…'. ok is false for escapes that depend on
// the locale, would end the word, or are not known.
func ansiC(s string) (text string, ok bool) {
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte("abeEfnrtv\\'\"?", s[i]); at >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[at])
			continue
		}
		digits, base, most := "", 8, 3
		if s[i] == 'x' {
			i, base, most = i+1, 16, 2
		}
		for len(digits) < most && i < len(s) && isDigit(s[i], base) {
			digits += s[i : i+1]
			i++
		}
		i--
		n, err := strconv.ParseUint(digits, base, 16)
		if err != nil || n == 0 || n > 0x7f {
			return s, false
		}
		b.WriteByte(byte(n))
	}
	return b.String(), true
}

func isDigit(c byte, base int) bool {
	switch {
	case c >= '0' && c <= '7', base == 16 && (c == '8' || c == '9'):
		return true
	}
	return base == 16 && (c|0x20 >= 'a' && c|0x20 <= 'f')
}
