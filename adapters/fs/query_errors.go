package fs

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// patternError says what is wrong with a pattern and what to write instead.
func patternError(pattern string, err error) error {
	var se *syntax.Error
	what := err.Error()
	if errors.As(err, &se) {
		what = se.Code.String()
		if se.Expr != "" {
			what += ": " + brief(se.Expr)
		}
	}
	advice := "to look for exactly this text, set literal to true"
	switch has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(pattern, p) })
	}; {
	case has("(?=", "(?!", "(?<=", "(?<!"):
		what = "look-ahead and look-behind are not supported"
		advice = "match the text around it too and judge the lines of the result, or search twice"
	case has("(?>", "++", "*+", "?+", "}+"):
		what = "atomic groups and possessive repetition are not supported"
		advice = "write it without them: matching takes linear time anyway"
	case backReference(pattern):
		what = "references to a group, such as \\1, are not supported"
		advice = "write the text out, or search for the part before and judge the lines of the result"
	case has("(?#", "(?|", "(?P=", "(?P>", "(?&", "(?R", "(?("):
		what = "this kind of group is not supported"
		advice = "the syntax is that of RE2: (…), (?:…), (?P<name>…), (?i), (?s)"
	case has(`\K`, `\G`, `\R`, `\X`, `\h`, `\H`, `\N`, `\Z`, `\u`, `\e`, `\c`):
		what = "an escape in it is not supported (" + what + ")"
		advice = `RE2 has \d \w \s \b \pL \x{10FFFF} and \z; for white space in a line write [ \t]`
	case errors.As(err, &se) && se.Code == syntax.ErrInvalidRepeatSize:
		advice = "a count goes up to 1000, also of counts inside each other; use * or + instead"
	case errors.As(err, &se) && (se.Code == syntax.ErrLarge || se.Code == syntax.ErrNestingDepth):
		advice = "use smaller counts, or * and +"
	}
	return domain.Errorf(domain.InvalidArgument, "the pattern cannot be used: %s; %s", printable(what), advice)
}

// backReference reports whether a pattern holds \1 to \9.
func backReference(pattern string) bool {
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] == '\\' {
			if i++; pattern[i] >= '1' && pattern[i] <= '9' {
				return true
			}
		}
	}
	return false
}
