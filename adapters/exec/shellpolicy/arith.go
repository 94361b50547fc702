package shellpolicy

import (
	"reflect"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithmetic walks an expression. Numbers are harmless. Names are not: the
// shell takes the text of a variable for another expression, and a subscript
// may run commands.
func (w *walker) arithmetic(sc scope, x syntax.ArithmExpr) {
	if x == nil || reflect.ValueOf(x).IsNil() {
		return
	}
	if w.depth++; w.depth > maxNest {
		w.forbid("the command is nested too deeply; write it as several commands")
	} else {
		w.arithmeticNode(sc, x)
	}
	w.depth--
}

func (w *walker) arithmeticNode(sc scope, x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		d := w.word(sc, x)
		if !d.number && !(d.static && number(d.text)) {
			w.raise(risk, "evaluates text as arithmetic")
		}
	case *syntax.BinaryArithm:
		w.arithmetic(sc, x.X)
		w.arithmetic(sc, x.Y)
	case *syntax.UnaryArithm:
		w.arithmetic(sc, x.X)
	case *syntax.ParenArithm:
		w.arithmetic(sc, x.X)
	default:
		w.forbid("the command uses syntax that cannot be judged")
	}
}

// number reports whether s is an unsigned decimal number, or a signed one.
func number(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return s != "" && strings.Trim(s, "0123456789") == "" && len(s) < 19
}

// test walks the inside of [[ … ]].
func (w *walker) test(sc scope, x syntax.TestExpr) {
	if w.depth++; w.depth > maxNest {
		w.forbid("the command is nested too deeply; write it as several commands")
	} else {
		w.testNode(sc, x)
	}
	w.depth--
}

func (w *walker) testNode(sc scope, x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		w.text(sc, x)
	case *syntax.ParenTest:
		w.test(sc, x.X)
	case *syntax.UnaryTest:
		operand, ok := x.X.(*syntax.Word)
		if !ok {
			w.test(sc, x.X)
			return
		}
		w.current.unaryTest(x.Op.String(), w.text(sc, operand))
	case *syntax.BinaryTest:
		left, ok1 := x.X.(*syntax.Word)
		right, ok2 := x.Y.(*syntax.Word)
		if !ok1 || !ok2 {
			w.test(sc, x.X)
			w.test(sc, x.Y)
			return
		}
		w.current.binaryTest(x.Op.String(), w.text(sc, left), w.text(sc, right))
	default:
		w.forbid("the command uses syntax that cannot be judged")
	}
}

// unaryTest judges an operand of test, [ or [[.
func (c *call) unaryTest(op string, d word) {
	switch op {
	case "-z", "-n", "-t", "-o", "!":
	case "-v", "-R":
		if !d.static || strings.Contains(d.text, "[") {
			c.raise(risk, "evaluates text as a subscript")
		}
	case "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-p", "-r", "-s", "-u", "-w", "-x", "-L", "-N", "-O", "-G", "-S":
		c.opens(d)
	default:
		c.raise(run, "uses a test that is not known: "+op)
	}
}

// binaryTest judges the two operands of an operator of test, [ or [[.
func (c *call) binaryTest(op string, left, right word) {
	switch op {
	case "=", "==", "!=", "<", ">", "=~", "-a", "-o", "&&", "||":
	case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		for _, d := range []word{left, right} {
			if !d.number && !(d.static && number(d.text)) {
				c.raise(risk, "evaluates text as arithmetic")
			}
		}
	case "-nt", "-ot", "-ef":
		c.opens(left)
		c.opens(right)
	default:
		c.raise(run, "uses a test that is not known: "+op)
	}
}
