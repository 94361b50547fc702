package shellpolicy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assignments judges NAME=value in front of a command, or alone.
func (c *call) assignments(list []*syntax.Assign) {
	for _, a := range list {
		if a.Array != nil {
			for _, e := range a.Array.Elems {
				c.w.arithmetic(c.sc, e.Index)
				if e.Value != nil {
					c.w.text(c.sc, e.Value)
				}
			}
			c.raise(risk, "sets an array")
		}
		if a.Index != nil {
			c.w.arithmetic(c.sc, a.Index)
			c.raise(risk, "evaluates text as a subscript")
		}
		if a.Name == nil {
			c.raise(risk, "sets a variable that is not known")
			c.w.text(c.sc, a.Value)
			continue
		}
		value := c.w.value(c.sc, a.Value)
		c.variable(a.Name.Value, value)
	}
}

// variable judges the assignment of a value to a variable.
func (c *call) variable(name string, value word) {
	if !value.static {
		c.search(value)
	} else {
		c.assigned = append(c.assigned, literal(value.text))
	}
	switch why := riskyVariable(name); {
	case why != "":
		c.raise(risk, why)
	case !value.static && !value.number:
		c.extra(run, "sets "+name+" to a value that is not known", false, name+"=")
	case !harmlessVariable(name) || !value.number && !harmlessValue(value.text):
		c.extra(run, "sets the variable "+name, true, name+"=", value.text)
	}
}

// harmlessVariable reports whether a variable changes the looks of output and
// no more.
func harmlessVariable(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "NO_COLOR", "TERM", "COLUMNS":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// harmlessValue reports whether a value names no file: TZ may.
func harmlessValue(s string) bool {
	return !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, ":") && !strings.Contains(s, "..")
}

// riskyVariable says why setting a variable can run code, or makes other words
// of the line mean something else; "" when neither is known of it.
func riskyVariable(name string) string {
	const code = "sets a variable that can run code: "
	for _, prefix := range []string{
		"LD_", "DYLD_", "GIT_", "PERL5", "PYTHON", "BASH_", "RUBY", "JAVA_TOOL", "_JAVA", "JDK_JAVA", "DOTNET_", "npm_config_", "NPM_CONFIG_",
		"CARGO_", "RUSTC", "MALLOC_", "GCONV_", "LOCPATH", "NLSPATH", "RIPGREP_", "FZF_", "SSH_", "GOFLAGS", "GOTOOLCHAIN", "GOENV", "GOPROXY",
		"GOMODCACHE", "GOROOT", "GOPATH", "GOBIN", "GOINSECURE", "GONOSUM", "GOSUM", "GOPRIVATE", "PIP_", "UV_", "TAR_", "XZ_", "CLASSPATH", "LUA_",
	} {
		if strings.HasPrefix(name, prefix) {
			return code + name
		}
	}
	for _, suffix := range []string{"_ASKPASS", "_COMMAND", "_EDITOR", "_PAGER", "_PRELOAD", "_WRAPPER", "_OPTIONS", "OPT", "OPTS", "_SHELL", "_LAUNCHER"} {
		if strings.HasSuffix(name, suffix) {
			return code + name
		}
	}
	if _, found := slices.BinarySearch(riskyNames, name); found {
		return code + name
	}
	return ""
}

// riskyNames are further such variables, sorted.
var riskyNames = []string{
	"AR", "BROWSER", "CC", "CDPATH", "CXX", "EDITOR", "ENV", "EXECIGNORE", "FC", "FCEDIT", "FPATH", "GCC_EXEC_PREFIX", "GLOBIGNORE", "HISTFILE", "HOME",
	"HOSTALIASES", "IFS", "INPUTRC", "LESSCLOSE", "LESSOPEN", "LESSKEY", "MAILCHECK", "MAILPATH", "MAKEFILES", "MAKEFLAGS", "MANPAGER", "MFLAGS",
	"NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "OLDPWD", "OPENSSL_CONF", "PAGER", "PATH", "POSIXLY_CORRECT", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4",
	"PWD", "SHELL", "SHELLOPTS", "SUDO_ASKPASS", "TERMCAP", "TERMINFO", "TMPDIR", "TMPPREFIX", "VIMINIT", "VISUAL", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR",
}

// declare judges export, declare and their like.
func (w *walker) declare(sc scope, d *syntax.DeclClause) {
	c := w.newCall(sc, w.source(d))
	w.current = c
	c.words = []word{literal(d.Variant.Value)}
	for _, a := range d.Args {
		switch {
		case a.Name != nil && a.Naked:
			c.words = append(c.words, literal(a.Name.Value))
		case a.Name == nil && a.Value != nil:
			c.words = append(c.words, w.words(sc, []*syntax.Word{a.Value})...)
		case a.Name != nil && a.Array == nil && a.Index == nil:
			v := w.value(sc, a.Value)
			v.text, v.glob = a.Name.Value+"="+v.text, false
			c.words = append(c.words, v)
			c.variable(a.Name.Value, v)
		default:
			c.assignments([]*syntax.Assign{a})
			c.words = append(c.words, word{why: "it sets an array"})
		}
	}
	c.extras = nil
	for i := range c.words {
		c.judged[i] = true
	}
	c.raise(risk, "changes the environment of later commands")
	c.finish()
	w.current = nil
}
