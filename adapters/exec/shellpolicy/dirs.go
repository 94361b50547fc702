package shellpolicy

import "slices"

// dirs are the directories that a command may run in. "" is the session's.
type dirs struct {
	set  []string // sorted
	lost bool     // or any other
}

// here is the session's directory.
func here() dirs { return dirs{set: []string{""}} }

// join are the directories of two ways to come to the same place.
func (d dirs) join(o dirs) dirs {
	return dirs{set: sorted(append(slices.Clone(d.set), o.set...)), lost: d.lost || o.lost}
}

// within reports whether every directory of d is one of o.
func (d dirs) within(o dirs) bool {
	if o.lost {
		return true
	}
	return !d.lost && !slices.ContainsFunc(d.set, func(s string) bool { return !slices.Contains(o.set, s) })
}

// only is the directory if there is only one, with cwd for the session's; ""
// otherwise.
func (d dirs) only(cwd string) string {
	switch {
	case d.lost || len(d.set) != 1:
		return ""
	case d.set[0] == "":
		return cwd
	}
	return d.set[0]
}

// home reports whether commands run in the session's directory for sure.
func (d dirs) home() bool { return !d.lost && len(d.set) == 1 && d.set[0] == "" }

// ends are the directories after a statement that succeeded, and after one
// that failed.
type ends struct {
	ok, fail dirs
	sure     bool // it does succeed
}

func both(d dirs) ends { return ends{ok: d, fail: d} }

// any are the directories after a statement, however it ended.
func (e ends) any() dirs {
	if e.sure {
		return e.ok
	}
	return e.ok.join(e.fail)
}

// and are the ends of e && y.
func (e ends) and(y ends) ends {
	if e.sure {
		return y
	}
	return ends{ok: y.ok, fail: e.fail.join(y.fail)}
}

// or are the ends of e || y.
func (e ends) or(y ends) ends {
	if e.sure {
		return e
	}
	return ends{ok: e.ok.join(y.ok), fail: y.fail}
}
