package llm

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// exchange is one as it stands after a request with a key.
func exchange(key string) *Exchange {
	p := &Provider{ProviderConfig: ProviderConfig{
		Name: "acme", KeyHint: "set ACME_KEY", Headers: map[string]string{"X-Secret": "header-value-9", "User-Agent": "someone"},
	}}
	call := Call{
		URL:    "https://user:passw0rd@acme.invalid/v1?key=query-secret-1",
		Body:   []byte(`{"model":"acme-large-instruct-2026","messages":[{"role":"user","content":"my diary says that the treasure is under the old oak tree"}]}`),
		Public: []string{"acme-large-instruct-2026"},
	}
	return &Exchange{provider: p, keyless: key == "", redact: newRedactor(p, call, key)}
}

// TestRefusals is the table of what providers say and what it means.
func TestRefusals(t *testing.T) {
	h := func(kv ...string) http.Header {
		out := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			out.Set(kv[i], kv[i+1])
		}
		return out
	}
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		code   domain.Code
		retry  bool
		words  string
	}{
		{"OpenAI, wrong key", 401, nil, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, domain.AuthRequired, false, "refused its API key"},
		{"OpenAI, region", 403, nil, `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported"}}`, domain.ProviderRejected, false, "not supported"},
		{"OpenRouter, moderation", 403, nil, `{"error":{"code":403,"message":"Your input was flagged","metadata":{"reasons":["x"]}}}`, domain.ProviderRejected, false, "flagged"},
		{"OpenRouter, moderation by its type", 403, nil, `{"error":{"code":403,"message":"Provider returned error","metadata":{"error_type":"content_policy_violation"}}}`, domain.ProviderRejected, false, "Provider returned error"},
		{"OpenRouter, the window by its type", 400, nil, `{"error":{"code":400,"message":"Provider returned error","metadata":{"error_type":"context_length_exceeded","provider_code":"7"}}}`, domain.ContextTooLong, false, "Provider returned error"},
		{"OpenRouter, a type without a meaning", 502, nil, `{"error":{"code":502,"message":"Provider returned error","metadata":{"error_type":"unmapped"}}}`, domain.Unavailable, true, "Provider returned error"},
		{"OpenRouter, limit of a key", 403, nil, `{"error":{"code":403,"message":"Key limit exceeded (total limit). Manage it in your settings"}}`, domain.QuotaExhausted, false, "waiting does not help"},
		{"OpenAI, rate in words", 429, nil, `{"error":{"message":"Rate limit reached. Please try again in 11.054s. Visit the site","type":"tokens","code":"rate_limit_exceeded"}}`, domain.RateLimited, true, "asks to wait 11s"},
		{"Azure, rate in words", 429, nil, `{"error":{"code":"429","message":"Requests have exceeded the token rate limit. Please retry after 6 seconds."}}`, domain.RateLimited, true, "asks to wait 6s"},
		{"Azure, filter", 400, nil, `{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"},"jailbreak":{"filtered":true,"detected":true},"violence":{"filtered":false,"severity":"safe"}}}}}`, domain.ProviderRejected, false, "a content filter refused the request: hate, jailbreak)"},
		{"Azure, filter without a verdict", 400, nil, `{"error":{"message":"filtered","code":"content_filter","innererror":null}}`, domain.ProviderRejected, false, "a content filter refused the request)"},
		{"Azure, deployment", 404, nil, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, domain.ProviderRejected, false, "check the model's name"},
		{"OpenAI, rate", 429, h("Retry-After", "20"), `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, domain.RateLimited, true, "asks to wait 20s"},
		{"OpenAI, quota", 429, nil, `{"error":{"message":"You exceeded your current quota, please check your plan","type":"insufficient_quota","code":"insufficient_quota"}}`, domain.QuotaExhausted, false, "waiting does not help"},
		{"Gemini, per minute", 429, nil, `[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 17.2s.","status":"RESOURCE_EXHAUSTED"}}]`, domain.RateLimited, true, "rate limit"},
		{"Gemini, per minute by header", 429, h("Retry-After", "3"), `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}`, domain.RateLimited, true, "wait 3s"},
		{"Gemini, per minute in details", 429, nil, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.Help","links":[]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17.4s"}]}}`, domain.RateLimited, true, "asks to wait 17s"},
		{"Gemini, per day", 429, nil, `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}`, domain.QuotaExhausted, false, "waiting does not help"},
		{"Gemini, exhausted without details", 429, nil, `{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}`, domain.RateLimited, true, "exhausted"},
		{"Gemini, wrong key", 400, nil, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`, domain.AuthRequired, false, "refused its API key"},
		{"Gemini, wrong key without details", 400, nil, `[{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}]`, domain.AuthRequired, false, "refused its API key"},
		{"Gemini, location", 400, nil, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, domain.ProviderRejected, false, "location"},
		{"Gemini, too many bytes", 400, nil, `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`, domain.ContextTooLong, false, "payload"},
		{"Gemini, given up", 499, nil, `{"error":{"code":499,"message":"The operation was cancelled.","status":"CANCELLED"}}`, domain.Unavailable, true, "499"},
		{"Gemini, overloaded", 503, nil, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, domain.Unavailable, true, "overloaded"},
		{"details of another form", 400, nil, `{"error":{"message":"bad schema","details":{"a":1}}}`, domain.ProviderRejected, false, "bad schema"},
		{"odd details", 429, nil, `{"error":{"message":"slow","details":[{"@type":"google.rpc.RetryInfo","retryDelay":"soon"},{}]}}`, domain.RateLimited, true, "slow"},
		{"a monthly quota", 429, nil, `{"error":{"message":"monthly quota exceeded"}}`, domain.QuotaExhausted, false, "monthly quota"},
		{"a quota of the day", 429, nil, `{"error":{"message":"Quota exceeded: 200 requests per day"}}`, domain.QuotaExhausted, false, "waiting does not help"},
		{"a quota of the day that is soon over", 429, nil, `{"error":{"message":"Rate limit reached for requests per day (RPD): Limit 200, Used 200. Please try again in 20s."}}`, domain.RateLimited, true, "wait 20s"},
		{"Zhipu, balance", 429, nil, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`, domain.QuotaExhausted, false, "waiting does not help"},
		{"Alibaba, balance", 400, nil, `{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}`, domain.QuotaExhausted, false, "good standing"},
		{"OpenRouter, credits", 402, nil, `{"error":{"code":402,"message":"Insufficient credits"}}`, domain.QuotaExhausted, false, "credits"},
		{"DeepSeek, balance", 402, nil, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, domain.QuotaExhausted, false, "Balance"},
		{"Anthropic, balance", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access"}}`, domain.QuotaExhausted, false, "credit balance"},
		{"Anthropic, limit of the account", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}`, domain.QuotaExhausted, false, "regain access"},
		{"Anthropic, billing", 403, nil, `{"type":"error","error":{"type":"billing_error","message":"Check your plan"}}`, domain.QuotaExhausted, false, "your plan"},
		{"Anthropic, wrong key", 401, nil, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, domain.AuthRequired, false, "refused its API key"},
		{"Anthropic, no permission", 403, nil, `{"type":"error","error":{"type":"permission_error","message":"Your key may not use this"}}`, domain.AuthRequired, false, "may not use this"},
		{"Anthropic, no such model", 404, nil, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, domain.ProviderRejected, false, "claude-x"},
		{"Anthropic, rate", 429, h("Retry-After", "7"), `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit"}}`, domain.RateLimited, true, "asks to wait 7s"},
		{"Anthropic, too large", 413, nil, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, domain.ContextTooLong, false, "maximum size"},
		{"Anthropic, no room for the reply", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 188240 + 21333 > 200000"}}`, domain.ContextTooLong, false, "188240"},
		{"OpenAI, context", 400, nil, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, domain.ContextTooLong, false, "longer than the model takes"},
		{"vLLM, context", 400, nil, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}`, domain.ContextTooLong, false, "4096"},
		{"llama.cpp, context", 400, nil, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, domain.ContextTooLong, false, "available context"},
		{"Gemini, context", 400, nil, `{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."}}`, domain.ContextTooLong, false, "2000000"},
		{"Anthropic, context", 400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, domain.ContextTooLong, false, "210000"},
		{"a request too large", 413, nil, `Request Entity Too Large`, domain.ContextTooLong, false, "413"},
		{"a rate that mentions tokens", 429, nil, `{"error":{"message":"too many tokens per minute","code":"rate_limit_exceeded"}}`, domain.RateLimited, true, "per minute"},
		{"Ollama, no such model", 404, nil, `{"error":{"message":"model \"x\" not found, try pulling it first"}}`, domain.ProviderRejected, false, "check the model's name"},
		{"FastAPI", 422, nil, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, domain.ProviderRejected, false, "field required"},
		{"Amazon, expired token", 403, h("X-Amzn-Errortype", "ExpiredTokenException"), `{"message":"The security token included in the request is expired"}`, domain.AuthRequired, false, "expired"},
		{"Amazon, unknown key", 403, h("X-Amzn-Errortype", "UnrecognizedClientException:http://internal.amazon.com/coral/"), `{"message":"The security token included in the request is invalid."}`, domain.AuthRequired, false, "refused its API key"},
		{"Amazon, no permission", 403, h("X-Amzn-Errortype", "AccessDeniedException"), `{"Message":"User: x is not authorized to perform: bedrock:InvokeModel"}`, domain.AuthRequired, false, "not authorized"},
		{"Amazon, half a signature", 400, h("X-Amzn-Errortype", "IncompleteSignatureException"), `{"message":"missing equal-sign"}`, domain.AuthRequired, false, "equal-sign"},
		{"Amazon, no access to a model", 403, h("X-Amzn-Errortype", "AccessDeniedException"), `{"message":"You don't have access to the model with the specified model ID."}`, domain.ProviderRejected, false, "access to the model"},
		{"Amazon, rate", 429, h("X-Amzn-Errortype", "ThrottlingException"), `{"message":"Too many tokens, please wait before trying again."}`, domain.RateLimited, true, "rate limit"},
		{"Amazon, day", 429, h("X-Amzn-Errortype", "ThrottlingException"), `{"message":"Too many tokens per day, please wait before trying again."}`, domain.QuotaExhausted, false, "waiting does not help"},
		{"Amazon, quota", 400, h("X-Amzn-Errortype", "ServiceQuotaExceededException"), `{"message":"Your request exceeds the service quota for your account."}`, domain.QuotaExhausted, false, "service quota"},
		{"Amazon, context", 400, h("X-Amzn-Errortype", "ValidationException"), `{"message":"Input is too long for requested model."}`, domain.ContextTooLong, false, "too long"},
		{"Amazon, a model that failed", 424, h("X-Amzn-Errortype", "ModelErrorException"), `{"message":"The system encountered an unexpected error during processing. Try your request again."}`, domain.Unavailable, true, "424"},
		{"a failed dependency", 424, nil, `{"error":"x"}`, domain.ProviderRejected, false, "424"},
		{"an error text", 400, nil, `{"error":"bad schema"}`, domain.ProviderRejected, false, "bad schema"},
		{"a message text", 400, nil, `{"message":"bad schema"}`, domain.ProviderRejected, false, "bad schema"},
		{"plain words", 500, nil, "upstream\n  fell over", domain.Unavailable, true, "upstream fell over"},
		{"nothing", 503, nil, "", domain.Unavailable, true, "answered 503"},
		{"a page", 502, h("Content-Type", "text/html"), "<html>nginx</html>", domain.Unavailable, true, "HTML page"},
		{"overloaded", 529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, domain.Unavailable, true, "Overloaded"},
		{"Cloudflare", 524, nil, "", domain.Unavailable, true, "524"},
		{"not implemented", 501, nil, "", domain.Unavailable, false, "501"},
		{"request timeout", 408, nil, "", domain.Unavailable, true, "408"},
		{"conflict", 409, nil, "", domain.Unavailable, true, "409"},
		{"told not to retry", 503, h("X-Should-Retry", "false"), "", domain.Unavailable, false, "503"},
		{"a redirect", 307, h("Location", "https://elsewhere.invalid/"), "", domain.ProviderRejected, false, "providers.acme.base_url"},
		{"OpenRouter, upstream words", 400, nil, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"tools unsupported"}}}`, domain.ProviderRejected, false, "Provider returned error: tools unsupported"},
		{"an error that is no object", 400, nil, `{"error":[1,2]}`, domain.ProviderRejected, false, "unknown form"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.header == nil {
				c.header = h()
			}
			f := exchange("key-0123456789").refuse(parseRefusal(c.status, c.header, []byte(c.body)))
			if f.Err.Code != c.code || f.Retry != c.retry || !strings.Contains(f.Err.Msg, c.words) || !strings.Contains(f.Err.Msg, "acme") {
				t.Errorf("%v, retry %v: %s", f.Err.Code, f.Retry, f.Err.Msg)
			}
		})
	}
}

// TestRefusals_Address: an address without a path is the likely reason for a
// 404, where the wire lives below one.
func TestRefusals_Address(t *testing.T) {
	for address, told := range map[string]bool{
		"openai-chat http://127.0.0.1:8000":    true,
		"anthropic https://gateway.invalid/":   true,
		"openai-chat http://127.0.0.1:8000/v1": false,
		"ollama http://127.0.0.1:11434":        false,
	} {
		x := exchange("key-0123456789")
		x.provider.Type, x.provider.BaseURL, _ = strings.Cut(address, " ")
		f := x.refuse(parseRefusal(404, http.Header{}, []byte(`{"error":"There is nothing here."}`)))
		if !strings.Contains(f.Err.Msg, "answered 404: There is nothing here; check") || strings.HasSuffix(f.Err.Msg, "want with /v1 at its end") != told {
			t.Errorf("%s: %s", address, f.Err.Msg)
		}
	}
}

// TestSpan: waits as people write them.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1s", 10 * time.Second: "10s", 60 * time.Second: "1m", 10 * time.Minute: "10m", time.Hour: "1h",
		20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m", 0: "0s", 1700 * time.Millisecond: "2s",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// TestRefusals_Key: a key that was refused is told from one that is missing.
func TestRefusals_Key(t *testing.T) {
	for key, want := range map[string][2]string{
		"key-0123456789": {"refused", `provider "acme" refused its API key (answered 401: nope); check the key: set ACME_KEY`},
		"":               {"missing", `provider "acme" wants an API key (answered 401: nope); set ACME_KEY`},
	} {
		f := exchange(key).refuse(parseRefusal(401, http.Header{}, []byte(`{"error":"nope"}`)))
		if f.Err.Msg != want[1] {
			t.Errorf("message %q, want %q", f.Err.Msg, want[1])
		}
		var detail any
		for _, d := range f.Err.Details {
			if d.Key == "key" {
				detail = d.Value
			}
		}
		if detail != want[0] {
			t.Errorf("detail %v, want %s", detail, want[0])
		}
	}
}

// TestRefusals_InStream: error objects of streams, which name no status or
// name it inside.
func TestRefusals_InStream(t *testing.T) {
	for body, want := range map[string]domain.Code{
		`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`:        domain.Unavailable,
		`{"type":"error","error":{"type":"api_error","message":"x"}}`:               domain.Unavailable,
		`{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`:        domain.RateLimited,
		`{"type":"error","error":{"type":"authentication_error","message":"x"}}`:    domain.AuthRequired,
		`{"type":"error","error":{"type":"invalid_request_error","message":"x"}}`:   domain.ProviderRejected,
		`{"type":"error","error":{"type":"request_too_large","message":"x"}}`:       domain.ContextTooLong,
		`{"type":"error","error":{"type":"billing_error","message":"x"}}`:           domain.QuotaExhausted,
		`{"error":{"code":"429","message":"x"}}`:                                    domain.RateLimited,
		`{"error":{"code":502,"message":"x"}}`:                                      domain.Unavailable,
		`{"error":{"status":401,"message":"x"}}`:                                    domain.AuthRequired,
		`{"error":{"type":"rate_limit_error","message":"x"}}`:                       domain.RateLimited,
		`{"error":{"type":"authentication_error","message":"x"}}`:                   domain.AuthRequired,
		`{"error":{"type":"invalid_request_error","message":"x"}}`:                  domain.ProviderRejected,
		`{"error":{"type":"invalid_request_error","message":"prompt is too long"}}`: domain.ContextTooLong,
		`{"error":{"message":"x"}}`:                                                 domain.Unavailable,
		`{"error":{"message":"x","status":"UNAVAILABLE"}}`:                          domain.Unavailable,
		`{"error":{"message":"x","status":"UNAUTHENTICATED"}}`:                      domain.AuthRequired,
		`{"error":{"message":"x","status":"RESOURCE_EXHAUSTED"}}`:                   domain.RateLimited,
		`{"error":{"message":"x","status":"FAILED_PRECONDITION"}}`:                  domain.ProviderRejected,
		`{"error":{"code":"context_length_exceeded"}}`:                              domain.ContextTooLong,
	} {
		r, ok := ParseRefusal([]byte(body))
		if !ok {
			t.Errorf("%s is not recognised", body)
		}
		if f := exchange("k").Refused(r); f.Err.Code != want {
			t.Errorf("%s: %v, want %v", body, f.Err.Code, want)
		}
	}
	for _, body := range []string{``, `{}`, `[]`, `{"error":null}`, `{"choices":[]}`, `5`, `x`} {
		if _, ok := ParseRefusal([]byte(body)); ok {
			t.Errorf("%q is taken for an error", body)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for _, c := range []struct {
			header, value, date string
			want                time.Duration
			said                bool
		}{
			{"Retry-After", "2", "", 2 * time.Second, true},
			{"Retry-After", " 90 ", "", 90 * time.Second, true},
			{"Retry-After", "0", "", 0, true},
			{"Retry-After", "0.5", "", 500 * time.Millisecond, true},
			{"Retry-After-Ms", "250", "", 250 * time.Millisecond, true},
			{"Retry-After", date(time.Minute), "", time.Minute, true},
			{"Retry-After", date(-time.Minute), "", 0, true},
			{"Retry-After", date(time.Hour), date(time.Hour - 7*time.Second), 7 * time.Second, true},
			{"Retry-After", "999999999999999999999", "", 30 * 24 * time.Hour, true},
			{"Retry-After", "Inf", "", 30 * 24 * time.Hour, true},
			{"Retry-After", "-5", "", 0, false},
			{"Retry-After", "NaN", "", 0, false},
			{"Retry-After", "soon", "", 0, false},
			{"Retry-After", "", "", 0, false},
		} {
			h := http.Header{}
			h.Set(c.header, c.value)
			h.Set("Date", c.date)
			got, said := retryAfter(h)
			if said != c.said || (said && got.Round(time.Second/4) != c.want) {
				t.Errorf("%s %q: %s, %v", c.header, c.value, got, said)
			}
		}
	})
}

// TestRedact: what must not stand in an error does not, whatever a provider
// quotes, and what helps stays.
func TestRedact(t *testing.T) {
	x := exchange("acme-key-0123456789")
	for _, c := range []struct{ name, in, want string }{
		{"plain", "model not found", "model not found"},
		{"the key", "bad key acme-key-0123456789!", "bad key [redacted]!"},
		{"the key, escaped", "bad key acme-key-0123456789 in %22acme-key-0123456789%22", "bad key [redacted] in %22[redacted]%22"},
		{"a header", "got header-value-9", "got [redacted]"},
		{"a header that is no secret", "hello someone", "hello someone"},
		{"a password in the address", "passw0rd and query-secret-1", "[redacted] and [redacted]"},
		{"a key by its shape", "Incorrect API key provided: sk-proj-abc***xyz. You can find", "Incorrect API key provided: [redacted] You can find"},
		{"other shapes", "AIzaSyA1234567890abc gsk_abcdef123456 eyJhbGciOiJI.eyJzdWIiOiI.abc Bearer abcdefghijklmnopqrst", "[redacted] [redacted] [redacted] [redacted]"},
		{"bearer in a sentence", "Bearer authentication required", "Bearer authentication required"},
		{"the conversation", `invalid content: "my diary says that the treasure is under the old oak tree"`, `invalid content: […]`},
		{"a part of it", "near 'that the treasure is under the'", "near '[…]'"},
		{"the model's name", "The model acme-large-instruct-2026 does not exist", "The model acme-large-instruct-2026 does not exist"},
		{"control characters", "a\x1b[31mb\nc\td\x00e", "a [31mb c d e"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
	} {
		if got := x.redact.clean(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := x.redact.clean("a" + strings.Repeat(" ", 4*maxWords-2) + "é"); got != "a" {
		t.Errorf("a message that is cut in a letter became %q", got)
	}
	if long := x.redact.clean(strings.Repeat("é", 5000)); len(long) > maxWords+3 || !strings.HasSuffix(long, "…") {
		t.Errorf("a long message became %d bytes", len(long))
	}
	if err := x.wrap(errors.New("dial acme-key-0123456789"), "m"); strings.Contains(err.Error(), "acme-key") {
		t.Errorf("the cause shows the key: %v", err)
	}
}
