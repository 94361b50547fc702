package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Failure is how an attempt ended that gave no complete reply.
type Failure struct {
	Err   *domain.Error
	Retry bool // the same request may succeed when sent again
	// AtOnce is the provider's word that no wait is needed before that.
	AtOnce bool
	// Status, Param and Words are what the provider said, for an adapter that
	// can send the request differently. Words is not fit to show.
	Status int
	Param  string
	Words  string
}

// Error returns the message of the coded error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the coded error.
func (f *Failure) Unwrap() error { return f.Err }

// final makes a failure of an error that sending again cannot mend.
func final(err error) *Failure {
	var coded *domain.Error
	if !errors.As(err, &coded) {
		coded = domain.WrapError(domain.Internal, err, "the request to the model could not be made")
	}
	return &Failure{Err: coded}
}

// Refusal is an error in a provider's own words, from a status line with a
// body or from an error object inside a stream.
type Refusal struct {
	Status  int    // 0 when the stream had begun well and no status was named
	Type    string // the provider's class of error, if it named one
	Code    string // the provider's code, if it named one
	Param   string // the field of the request it is about, if it named one
	Message string
	// After is how long the provider asks to wait; negative when it did not
	// say or what it said cannot be understood.
	After time.Duration
	// Never is the provider's own word that another attempt is useless.
	Never bool
	// Filters are the kinds of content that a filter found in the request.
	Filters []string
	// Spent is the provider's own word that a quota of the day is used up.
	Spent bool
}

// parseRefusal reads an answer that is no success.
func parseRefusal(status int, h http.Header, body []byte) Refusal {
	r, ok := ParseRefusal(body)
	if !ok {
		r.Message = bodyWords(h, body)
	}
	if status != 0 {
		r.Status = status
	}
	if d, ok := retryAfter(h); ok {
		r.After = d
	} else if d, ok := resetAfter(h); ok && r.After < 0 && status == http.StatusTooManyRequests && !spent(strings.ToLower(r.Message)) {
		r.After = d
	}
	r.Never = h.Get("X-Should-Retry") == "false"
	if kind, _, _ := strings.Cut(h.Get("X-Amzn-Errortype"), ":"); kind != "" {
		r.Type = kind
	}
	if to := h.Get("Location"); status >= 300 && status < 400 && to != "" {
		r.Message = "it redirects elsewhere"
	}
	return r
}

// ParseRefusal reads an error object in any of the shapes in use:
// {"error":{…}}, {"error":"…"}, the same in a list, and the inner object
// alone. It reports false when data holds none.
func ParseRefusal(data []byte) (Refusal, bool) {
	r := Refusal{After: -1}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0]
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message any             `json:"message"`
		Detail  any             `json:"detail"`
		Errors  any             `json:"errors"`
	}
	if json.Unmarshal(data, &outer) != nil {
		return r, false
	}
	if present(outer.Error) {
		r.inner(outer.Error)
		return r, true
	}
	for _, words := range []any{outer.Message, outer.Detail, outer.Errors} {
		if words != nil {
			r.inner(data)
			if r.Message == "" {
				r.Message = plain(words)
			}
			return r, true
		}
	}
	return r, false
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// inner reads the error object itself, or the text in its place.
func (r *Refusal) inner(raw json.RawMessage) {
	var words string
	if json.Unmarshal(raw, &words) == nil {
		r.Message = words
		return
	}
	var e struct {
		Message  any `json:"message"`
		Type     any `json:"type"`
		Code     any `json:"code"`
		Param    any `json:"param"`
		Status   any `json:"status"`
		Metadata struct {
			Raw  any `json:"raw"`
			Kind any `json:"error_type"`
		} `json:"metadata"`
		Details json.RawMessage `json:"details"`
		Inner   json.RawMessage `json:"innererror"`
	}
	if json.Unmarshal(raw, &e) != nil {
		r.Message = "an error object of an unknown form"
		return
	}
	r.Message, r.Type, r.Param = plain(e.Message), plain(e.Type), plain(e.Param)
	if more := plain(e.Metadata.Raw); more != "" {
		r.Message = strings.TrimSpace(r.Message + ": " + more)
	}
	r.details(e.Details)
	r.Filters = filtered(e.Inner)
	for _, v := range []any{e.Code, e.Status, e.Metadata.Kind} {
		if n, ok := v.(float64); ok {
			if n >= 400 && n < 600 && r.Status == 0 {
				r.Status = int(n)
			}
			continue
		}
		if s := plain(v); s != "" && r.Code == "" {
			r.Code = s
			if n, err := strconv.Atoi(s); err == nil && n >= 400 && n < 600 && r.Status == 0 {
				r.Status = n
			}
		}
	}
}

// plain renders a JSON value as one line of text.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// bodyWords describes a body that is no error object.
func bodyWords(h http.Header, body []byte) string {
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return "a compressed text, which was not asked for"
	}
	text := strings.TrimSpace(string(body))
	if strings.Contains(h.Get("Content-Type"), "html") || strings.HasPrefix(text, "<") {
		return "an HTML page, not the answer of an API"
	}
	return text
}

// retryAfter reads how long to wait: retry-after-ms, or retry-after in
// seconds or as a date, which is compared with the server's own clock where
// it tells it. Anything else says nothing.
func retryAfter(h http.Header) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return clampSeconds(ms / 1000), true
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return clampSeconds(s), s >= 0
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(serverTime(h))), true
}

// clampSeconds converts without overflow; a day is as good as for ever.
func clampSeconds(s float64) time.Duration {
	const most = 30 * 24 * 3600
	if !(s < most) { // also when it is no number
		s = most
	}
	return time.Duration(max(0, s) * float64(time.Second))
}

// classify decides what a refusal means and whether the same request may
// succeed later.
func (r Refusal) classify() (code domain.Code, retry bool) {
	kind := strings.ToLower(r.Type + " " + r.Code)
	words := strings.ToLower(r.Message)
	switch {
	case r.Spent, has(kind, "insufficient_quota", "billing", "insufficient_balance", "credits", "servicequotaexceeded", "arrearage") || r.Status == http.StatusPaymentRequired,
		has(kind, "throttlingexception") && has(words, "per day"),
		r.Status != http.StatusBadRequest && r.After < 0 && spent(words),
		r.Status == http.StatusBadRequest && has(words, "credit balance is too low", "reached your specified api usage limit"):
		return domain.QuotaExhausted, false
	case r.tooLong(kind, words):
		return domain.ContextTooLong, false
	case r.badKey(kind, words):
		return domain.AuthRequired, false
	}
	switch s := r.Status; {
	case s == http.StatusUnauthorized, has(kind, "unrecognizedclient", "expiredtoken", "incompletesignature", "invalidsignature"):
		return domain.AuthRequired, false
	case s == http.StatusForbidden:
		if has(kind+" "+words, "moderation", "flagged", "content_policy", "unsupported_country", "not supported in your", "country, region", "access to the model") {
			return domain.ProviderRejected, false
		}
		return domain.AuthRequired, false
	case s == http.StatusTooManyRequests:
		return domain.RateLimited, !r.Never
	case s == http.StatusProxyAuthRequired:
		return domain.Unavailable, false
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooEarly,
		s == statusCancelled:
		return domain.Unavailable, !r.Never
	case s == http.StatusInternalServerError, s == http.StatusBadGateway, s == http.StatusServiceUnavailable,
		s == http.StatusGatewayTimeout, s >= 520 && s <= 530:
		return domain.Unavailable, !r.Never
	case s >= 500:
		return domain.Unavailable, false
	case s == http.StatusFailedDependency && has(kind, "modelerror", "modelstreamerror"): // the model behind Amazon's service fell over
		return domain.Unavailable, true
	case s != 0:
		return domain.ProviderRejected, false
	}
	switch { // an error inside a stream that names no status
	case has(kind, "auth", "permission", "api_key"):
		return domain.AuthRequired, false
	case has(kind, "rate_limit", "resource_exhausted", "too_many"):
		return domain.RateLimited, true
	case r.isFilter(), has(kind, "invalid_prompt", "invalid_image", "invalid_base64", "image_", "_image", "_policy"):
		return domain.ProviderRejected, false
	case has(kind, "invalid_request", "not_found", "invalid_argument", "bad_request", "unsupported", "failed_precondition"):
		return domain.ProviderRejected, false
	}
	return domain.Unavailable, true
}

// statusCancelled is Google's status for a request that its own side gave up.
const statusCancelled = 499

// spent recognises an account that waiting does not fill.
func spent(words string) bool {
	return has(words, "exceeded your current quota", "monthly quota", "monthly limit", "monthly usage", "usage limit",
		"insufficient balance", "insufficient credits", "insufficient quota", "out of credits", "credit balance is too low", "key limit exceeded",
		"requests per day", "tokens per day", "daily limit", "daily quota", "余额不足", "欠费") &&
		!has(words, "retry in", "try again in")
}

// tooLong recognises a request beyond the model's window.
func (r Refusal) tooLong(kind, words string) bool {
	if has(kind, "context_length", "context_window", "exceed_context_size", "string_above_max_length", "request_too_large") ||
		r.Status == http.StatusRequestEntityTooLarge {
		return true
	}
	if r.Status != 0 && (r.Status < 400 || r.Status >= 500 || r.Status == http.StatusTooManyRequests) {
		return false
	}
	return has(words, "maximum context length", "context length", "context window", "available context size",
		"prompt is too long", "input is too long", "too many tokens", "exceeds the maximum number of tokens",
		"exceed context limit", "maximum prompt length", "reduce the length of", "longer than the model's",
		"request payload size exceeds the limit")
}

func has(s string, subs ...string) bool {
	for _, sub := range subs {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}
