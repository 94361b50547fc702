package gemini

import (
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// family is what a model's name tells.
type family struct {
	gemini bool // not one of the open models
	major  int  // 0 when the name holds no version
	minor  int
	pro    bool
	image  bool // draws, and cannot be told how much to think
	tuned  bool // its name says that it thinks
}

// latest is the version of a name that stands for whatever is newest.
const latest = 3

// familyOf reads a name such as "models/gemini-2.5-flash-lite-preview".
func familyOf(model string) family {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	rest, gemini := strings.CutPrefix(name, "gemini-")
	if !gemini {
		if rest, gemini = strings.CutPrefix(name, "gemma-"); !gemini {
			return family{}
		}
		gemini = false
	}
	f := family{
		gemini: gemini, pro: strings.Contains(rest, "pro"),
		image: strings.Contains(rest, "image") || strings.Contains(rest, "-tts"), tuned: strings.Contains(rest, "thinking"),
	}
	version, _, _ := strings.Cut(rest, "-")
	major, minor, _ := strings.Cut(version, ".")
	var err error
	if f.major, err = strconv.Atoi(major); err != nil {
		f.major = 0
		if gemini && strings.HasSuffix(rest, "latest") {
			f.major = latest
		}
		return f
	}
	f.minor, _ = strconv.Atoi(minor) // absent or odd: as if it were the first
	return f
}

// thinks reports whether models of the family can be told how much to think.
func (f family) thinks() bool {
	switch {
	case f.image:
		return false
	case !f.gemini:
		return f.major >= 4
	}
	return f.major >= 3 || f.major == 2 && f.minor >= 5 || f.tuned
}

// levels reports whether thinking is told as a level, not as a budget.
func (f family) levels() bool { return f.major >= 3 }

// signs reports whether the model refuses a call that lacks its signature.
func (f family) signs() bool { return f.gemini && f.major >= 3 }

// seesOutputs reports whether a function's response may hold pictures.
func (f family) seesOutputs() bool { return f.gemini && f.major >= 3 }

// complete adds what the names of models tell: what they can take in and
// whether they think.
func complete(info domain.ModelInfo) domain.ModelInfo {
	f := familyOf(info.Ref.Model)
	if f.gemini {
		info.Images, info.Audio = true, true
	}
	info.Thoughts = info.Thoughts || f.thinks()
	return info
}

// thinking is how a request tells to think. It is comparable.
type thinking struct {
	include bool   // thoughts are sent
	level   string // "" when a budget is told or nothing
	budget  int    // tokens
	counted bool   // budget is told
}

// The budgets in tokens for models that count. The smallest that every model
// takes is 512, but for the pro models, which also take 128.
const (
	budgetLeast  = 512
	budgetLow    = 2048
	budgetMedium = 8192
	budgetHigh   = 16384
	budgetFlash  = 24576
	budgetPro    = 32768
)

// thinking returns how to tell a level to the model; false when nothing is to
// be told.
func (m *Model) thinking(req domain.ModelRequest, dropped option) (thinking, bool) {
	if !m.info.Thoughts || dropped&dropThinking != 0 {
		return thinking{}, false
	}
	t := thinking{include: req.Thoughts != domain.ThoughtsOff}
	if req.Thoughts == "" || dropped&dropLevel != 0 {
		return t, true
	}
	if m.family.levels() != (dropped&swapLevel != 0) {
		t.level = m.family.level(req.Thoughts, dropped&coarseLevel != 0)
		return t, true
	}
	t.budget, t.counted = m.family.budget(req.Thoughts), true
	if dropped&coarseLevel != 0 {
		t.budget = max(t.budget, budgetLeast)
	}
	// Thoughts count as output: leave room for the answer.
	if half := req.MaxOutputTokens / 2; half > 0 && t.budget > half {
		t.budget = max(half, budgetLeast)
	}
	return t, true
}

// level is the name of a level. No model of these generations can be kept from
// thinking; the pro ones know fewer levels, and coarse are those all know.
func (f family) level(l domain.ThoughtLevel, coarse bool) string {
	switch l {
	case domain.ThoughtsOff, domain.ThoughtsMinimal:
		if f.pro || coarse {
			return "LOW"
		}
		return "MINIMAL"
	case domain.ThoughtsLow:
		return "LOW"
	case domain.ThoughtsMedium:
		if coarse || f.pro && f.major == 3 && f.minor == 0 {
			return "HIGH"
		}
		return "MEDIUM"
	default: // high, xhigh
		return "HIGH"
	}
}

// budget is the number of tokens of a level.
func (f family) budget(l domain.ThoughtLevel) int {
	switch l {
	case domain.ThoughtsOff:
		if f.pro {
			return 128 // its least: it cannot be kept from thinking
		}
		return 0
	case domain.ThoughtsMinimal:
		return budgetLeast
	case domain.ThoughtsLow:
		return budgetLow
	case domain.ThoughtsMedium:
		return budgetMedium
	case domain.ThoughtsHigh:
		return budgetHigh
	default: // xhigh
		if f.pro {
			return budgetPro
		}
		return budgetFlash
	}
}
