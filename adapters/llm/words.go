package llm

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// saidWait reads how long to wait out of a provider's words, such as "Please
// try again in 11.054s" or "retry after 6 seconds". It is false when they do
// not say.
func saidWait(words string) (time.Duration, bool) {
	words = strings.ToLower(words)
	for _, lead := range []string{"try again in ", "retry in ", "retry after "} {
		_, rest, ok := strings.Cut(words, lead)
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		token := strings.TrimRight(fields[0], ".,;)")
		if d, err := time.ParseDuration(token); err == nil && d >= 0 {
			return clampSeconds(d.Seconds()), true
		}
		n, err := strconv.ParseFloat(token, 64)
		if err != nil || n < 0 || len(fields) == 1 {
			continue
		}
		switch unit := fields[1]; {
		case strings.HasPrefix(unit, "second"):
			return clampSeconds(n), true
		case strings.HasPrefix(unit, "minute"):
			return clampSeconds(60 * n), true
		}
	}
	return 0, false
}

// filtered returns the kinds of content that a filter found in a prompt: the
// categories that Azure marks as filtered.
func filtered(inner json.RawMessage) []string {
	var e struct {
		Result map[string]json.RawMessage `json:"content_filter_result"`
	}
	if len(inner) == 0 || json.Unmarshal(inner, &e) != nil {
		return nil
	}
	var kinds []string
	for kind, raw := range e.Result {
		var verdict struct {
			Filtered bool `json:"filtered"`
		}
		if json.Unmarshal(raw, &verdict) == nil && verdict.Filtered {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// isFilter reports whether a refusal is the verdict of a content filter.
func (r Refusal) isFilter() bool {
	return has(strings.ToLower(r.Code), "content_filter", "content_policy", "responsibleaipolicy")
}
