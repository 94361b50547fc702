package llm

import (
	"encoding/json"
	"strings"
	"time"
)

// details reads what Google's services add to an error: why it came, how long
// to wait, and which quota is used up.
func (r *Refusal) details(raw json.RawMessage) {
	var list []struct {
		Kind       string `json:"@type"`
		Reason     string `json:"reason"`
		RetryDelay string `json:"retryDelay"`
		Violations []struct {
			QuotaID string `json:"quotaId"`
		} `json:"violations"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return // other providers use the name for other things
	}
	for _, d := range list {
		switch d.Kind[strings.LastIndexByte(d.Kind, '.')+1:] {
		case "ErrorInfo":
			if r.Type == "" {
				r.Type = d.Reason
			}
		case "RetryInfo":
			if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait >= 0 {
				r.After = clampSeconds(wait.Seconds())
			}
		case "QuotaFailure":
			for _, v := range d.Violations {
				r.Spent = r.Spent || strings.Contains(v.QuotaID, "PerDay")
			}
		}
	}
}

// badKey recognises a key that is refused with a status for bad requests.
func (r Refusal) badKey(kind, words string) bool {
	return has(kind, "api_key_invalid") || r.Code == "INVALID_ARGUMENT" && has(words, "api key not valid", "api key expired")
}
