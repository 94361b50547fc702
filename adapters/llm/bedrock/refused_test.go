package bedrock

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest/wire"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// refusing is a server that looks at each request and refuses it with a
// status, a class and words, or answers "a".
type refusing struct {
	look   func(body string) (status int, class, words string)
	bodies []string
}

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.bodies = append(r.bodies, string(data))
	status, class, words := r.look(string(data))
	if status == 0 {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(start() + text(0, "a") + end("end_turn")))}, nil
	}
	h := http.Header{"X-Amzn-Errortype": {class + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}}
	if status == http.StatusOK {
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(start() + wire.Exception(class, words)))}, nil
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(`{"message":` + wire.JS(words) + `}`))}, nil
}

// TestRefused: what a model does not take is left out at once and from then
// on, and the first refusal about anything else is final.
func TestRefused(t *testing.T) {
	has := strings.Contains
	deny := func(when func(string) bool, status int, class, words string) func(string) (int, string, string) {
		return func(body string) (int, string, string) {
			if when(body) {
				return status, class, words
			}
			return 0, "", ""
		}
	}
	opus := "global.anthropic.claude-opus-4-6-v1"
	for _, c := range []struct {
		name  string
		model string
		look  func(string) (int, string, string)
		first int // requests of the first exchange
		next  int // and of the second
	}{
		{"nothing", claude, deny(func(string) bool { return false }, 0, "", ""), 1, 1},
		{"points among tools", claude, deny(func(b string) bool { return has(b, `}},{"cachePoint":{"type":"default"}}]},"inf`) }, 400, "ValidationException",
			"Malformed input request: #/toolConfig/tools/1: extraneous key [cachePoint] is not permitted, please reformat your input and try again."), 2, 1},
		{"points in the system prompt", claude, deny(func(b string) bool {
			return has(b, `"system":[{"text":"You are a test. Nobody may quote this sentence in an error."},{"cachePoint"`)
		}, 400, "ValidationException",
			"Malformed input request: #/system/1: extraneous key [cachePoint] is not permitted"), 2, 1},
		{"points in messages", nova, deny(func(b string) bool { return has(b, `please."},{"cachePoint"`) }, 400, "ValidationException",
			"Malformed input request: #/messages/0/content/1: extraneous key [cachePoint] is not permitted"), 2, 1},
		{"points nobody understood", claude, deny(func(b string) bool { return has(b, `please."},{"cachePoint"`) }, 400, "ValidationException",
			"The model returned the following errors: messages.0.content.1.type: Field required"), 2, 1},
		{"any point", claude, deny(func(b string) bool { return has(b, "cachePoint") }, 403, "AccessDeniedException",
			"You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information."), 2, 1},
		{"any point, inside the answer", claude, deny(func(b string) bool { return has(b, "cachePoint") }, 200, "validationException",
			"This model does not support prompt caching."), 2, 1},
		{"one place after another", claude, func(b string) (int, string, string) {
			switch {
			case has(b, `"toolConfig"`) && has(b, `}},{"cachePoint"`):
				return 400, "ValidationException", "#/toolConfig/tools/1: extraneous key [cachePoint] is not permitted"
			case has(b, "cachePoint"):
				return 400, "ValidationException", "cache_control is not supported"
			}
			return 0, "", ""
		}, 3, 1},
		{"a limit", llama, deny(func(b string) bool { return has(b, "maxTokens") }, 400, "ValidationException",
			"The maximum tokens you requested exceeds the model limit of 512. Try again with a maximum tokens value that is lower than 512."), 2, 1},
		{"a budget", claude, deny(func(b string) bool { return has(b, "budget_tokens") }, 400, "ValidationException",
			`The model returned the following errors: "thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`), 2, 1},
		{"an effort", opus, deny(func(b string) bool { return has(b, "adaptive") }, 400, "ValidationException",
			"The model returned the following errors: adaptive thinking is not supported on this model"), 2, 1},
		{"a display", opus, deny(func(b string) bool { return has(b, "display") }, 400, "ValidationException",
			"The model returned the following errors: thinking.adaptive.display: Extra inputs are not permitted"), 2, 1},
		{"any thinking", claude, deny(func(b string) bool { return has(b, "thinking") }, 400, "ValidationException",
			"The model returned the following errors: thinking: Extra inputs are not permitted"), 3, 1},
		{"off", "anthropic.claude-sonnet-5", deny(func(b string) bool { return has(b, "disabled") }, 400, "ValidationException",
			`The model returned the following errors: "thinking.type.disabled" is not supported for this model.`), 2, 1},
		{"an effort of others", "openai.gpt-oss-20b-1:0", deny(func(b string) bool { return has(b, "reasoning_effort") }, 400, "ValidationException",
			"Unknown parameter: 'reasoning_effort'"), 2, 1},
		{"a signature", claude, deny(func(b string) bool { return has(b, "reasoningContent") }, 400, "ValidationException",
			"The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block"), 2, 2},
		{"a missing thought", claude, deny(func(b string) bool { return has(b, "budget_tokens") }, 400, "ValidationException",
			"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"), 2, 2},
		{"thoughts of before", claude, deny(func(b string) bool { return has(b, "reasoningContent") }, 400, "ValidationException",
			"This model doesn't support the reasoningContent content block. It is not supported."), 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := &refusing{look: c.look}
			m := over(t, server, c.model)
			req := porttest.SampleRequest()
			req.Thoughts, req.MaxOutputTokens = domain.ThoughtsHigh, 32000
			if c.name == "off" {
				req.Thoughts = domain.ThoughtsOff
			}
			call := domain.ModelCall{ID: "1", ProviderID: "t", Name: "read_file", Args: []byte(`{}`)}
			if strings.Contains(c.name, "signature") || strings.Contains(c.name, "thought") {
				signed := &domain.Opaque{Provider: "fake", Data: []byte(`{"model":"` + c.model + `","parts":[{"thought":{"size":2,"signature":"s"}},{"call":true}]}`)}
				req.Messages = append(req.Messages, domain.ModelReply{Thought: "hm", Opaque: signed, Calls: []domain.ModelCall{call}}, domain.ToolOutput{Call: call})
			}
			for _, want := range []int{c.first, c.next} {
				server.bodies = nil
				line, _, err := told(t.Context(), m, req)
				if err != nil || line != "a .stop" || len(server.bodies) != want {
					t.Errorf("%q, %v after %d requests, want %d: %s", line, err, len(server.bodies), want, strings.Join(server.bodies, ""))
				}
			}
		})
	}
}

// TestRefused_Final: a refusal that leaving out does not mend is told, once
// and with what to do.
func TestRefused_Final(t *testing.T) {
	for _, c := range []struct {
		name         string
		status       int
		class, words string
		code         domain.Code
		says         string
		most         int // requests
	}{
		{"always the same", 400, "ValidationException", "cachePoint is not permitted", domain.ProviderRejected, "cachePoint", 2},
		{"something else", 400, "ValidationException", "The provided model identifier is invalid.", domain.ProviderRejected, "check the model's name", 1},
		{"too long", 400, "ValidationException", "Input is too long for requested model.", domain.ContextTooLong, "longer than the model takes", 1},
		{"no access", 403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", domain.ProviderRejected, "under Model access", 1},
		{"no throughput", 400, "ValidationException", "Invocation of model ID x with on-demand throughput isn't supported. Retry your request with the ID or ARN of an inference profile that contains this model.", domain.ProviderRejected, `such as "us."`, 1},
		{"no such model", 404, "ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier.", domain.ProviderRejected, "check the model's name", 1},
		{"an old model", 404, "ResourceNotFoundException", "This model version has reached the end of its life.", domain.ProviderRejected, "newer model", 1},
		{"a wrong clock", 403, "InvalidSignatureException", "Signature expired: 20150830T123600Z is now earlier than 20260101T000000Z", domain.AuthRequired, "machine's clock", 1},
		{"an old token", 403, "ExpiredTokenException", "The security token included in the request is expired", domain.AuthRequired, "sign in again", 1},
		{"no permission", 403, "AccessDeniedException", "User: arn:aws:iam::123456789012:user/x is not authorized to perform: bedrock:InvokeModelWithResponseStream", domain.AuthRequired, "refused its API key", 1},
		{"a quota", 400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account.", domain.QuotaExhausted, "spent", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := &refusing{look: func(string) (int, string, string) { return c.status, c.class, c.words }}
			_, _, err := told(t.Context(), over(t, server, claude), porttest.SampleRequest())
			if domain.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || len(server.bodies) != c.most {
				t.Errorf("%v: %v after %d requests", domain.CodeOf(err), err, len(server.bodies))
			}
		})
	}
}

// TestRefused_Shown: once something of a reply was shown, nothing is asked
// again.
func TestRefused_Shown(t *testing.T) {
	server := &counting{canned{body: start() + text(0, "a") + wire.Exception("validationException", "prompt caching is not supported")}, 0}
	line, _, err := told(t.Context(), over(t, server, claude), porttest.SampleRequest())
	if line != "a " || domain.CodeOf(err) != domain.ProviderRejected || server.n != 1 {
		t.Errorf("%q, %v after %d requests", line, err, server.n)
	}
}

// counting counts requests.
type counting struct {
	canned
	n int
}

func (c *counting) RoundTrip(req *http.Request) (*http.Response, error) {
	c.n++
	return c.canned.RoundTrip(req)
}

// TestSecrets: no part of an access key stands in an error, nor the key.
func TestSecrets(t *testing.T) {
	id, secret, session := "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEJr//////////wEaDExample=="
	key := Credentials(id, secret, session)
	for _, status := range []int{200, 400, 403, 429, 500} {
		server := &refusing{look: func(string) (int, string, string) {
			return status, "InvalidSignatureException", "The canonical string was x-amz-security-token:" + session + " by " + id + " with " + secret + ", key " + key
		}}
		m := over(t, server, claude)
		m.provider.APIKey = func() (string, error) { return key, nil }
		_, _, err := told(t.Context(), m, porttest.SampleRequest())
		if err == nil {
			t.Fatalf("status %d is no failure", status)
		}
		for _, part := range []string{id, secret, session, key} {
			if shown := fmt.Sprintf("%v %+v", err, err); strings.Contains(shown, part) {
				t.Errorf("status %d: %s stands in %s", status, part, shown)
			}
		}
		if !strings.Contains(err.Error(), "canonical string") {
			t.Errorf("status %d: the words are lost: %v", status, err)
		}
	}
}

// TestAddresses: the region is that of the host or of the query; a model's
// name is one segment of the path; lists have a host of their own.
func TestAddresses(t *testing.T) {
	for base, want := range map[string][3]string{ // region, models, lists
		"https://bedrock-runtime.us-east-1.amazonaws.com":                      {"us-east-1", "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/converse-stream", "https://bedrock.us-east-1.amazonaws.com"},
		"https://bedrock-runtime.us-east-1.amazonaws.com/":                     {"us-east-1", "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/converse-stream", "https://bedrock.us-east-1.amazonaws.com"},
		"https://bedrock-runtime-fips.us-west-2.amazonaws.com":                 {"us-west-2", "https://bedrock-runtime-fips.us-west-2.amazonaws.com/model/a%3A0/converse-stream", "https://bedrock-fips.us-west-2.amazonaws.com"},
		"https://bedrock-runtime.cn-north-1.amazonaws.com.cn":                  {"cn-north-1", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/a%3A0/converse-stream", "https://bedrock.cn-north-1.amazonaws.com.cn"},
		"https://vpce-0123-abc.bedrock-runtime.eu-west-1.vpce.amazonaws.com":   {"eu-west-1", "https://vpce-0123-abc.bedrock-runtime.eu-west-1.vpce.amazonaws.com/model/a%3A0/converse-stream", "https://vpce-0123-abc.bedrock-runtime.eu-west-1.vpce.amazonaws.com"},
		"http://127.0.0.1:8080/aws/?region=eu-west-1&x=y#z":                    {"eu-west-1", "http://127.0.0.1:8080/aws/model/a%3A0/converse-stream", "http://127.0.0.1:8080/aws"},
		"http://gateway.example":                                               {"", "http://gateway.example/model/a%3A0/converse-stream", "http://gateway.example"},
		"https://bedrock-runtime.us-east-1.amazonaws.com?region=us-gov-west-1": {"us-gov-west-1", "https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/converse-stream", "https://bedrock.us-east-1.amazonaws.com"},
		BaseURL("ap-southeast-2"):                                              {"ap-southeast-2", "https://bedrock-runtime.ap-southeast-2.amazonaws.com/model/a%3A0/converse-stream", "https://bedrock.ap-southeast-2.amazonaws.com"},
		BaseURL("cn-northwest-1"):                                              {"cn-northwest-1", "https://bedrock-runtime.cn-northwest-1.amazonaws.com.cn/model/a%3A0/converse-stream", "https://bedrock.cn-northwest-1.amazonaws.com.cn"},
	} {
		m, err := New(llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "aws", BaseURL: base}}, domain.ModelInfo{Ref: domain.ModelRef{Model: "a:0"}})
		if err != nil {
			t.Errorf("%s: %v", base, err)
			continue
		}
		lists, _ := m.endpoint.control()
		if m.endpoint.region != want[0] || m.url != want[1] || lists != want[2] {
			t.Errorf("%s: %q, %s, %s", base, m.endpoint.region, m.url, lists)
		}
	}
	for _, base := range []string{"", "bedrock", "ftp://x", "http://", BaseURL(""), "https://%zz"} {
		_, err := New(llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "aws", BaseURL: base}}, domain.ModelInfo{})
		if domain.CodeOf(err) != domain.InvalidArgument || !strings.Contains(err.Error(), "providers.aws.base_url") || !strings.Contains(err.Error(), "AWS_REGION") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestKeys: a key that lacks its secret, and one that signs for no region,
// are told before anything is sent.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, base, key string
		code            domain.Code
		says            string
	}{
		{"no secret", BaseURL("us-east-1"), "AKIAIOSFODNN7EXAMPLE", domain.AuthRequired, "without its secret"},
		{"no region", "http://gateway.example", "AKIAIOSFODNN7EXAMPLE:secret", domain.InvalidArgument, "?region="},
	} {
		server := &refusing{look: func(string) (int, string, string) { return 0, "", "" }}
		p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{Transport: server}), ProviderConfig: llm.ProviderConfig{
			Name: "aws", BaseURL: c.base, APIKey: func() (string, error) { return c.key, nil },
		}}
		m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "aws", Model: claude}})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = told(t.Context(), m, porttest.SampleRequest())
		if domain.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "aws") || len(server.bodies) != 0 {
			t.Errorf("%s: %v after %d requests", c.name, err, len(server.bodies))
		}
		if strings.Contains(err.Error(), c.key) {
			t.Errorf("%s: the key stands in %v", c.name, err)
		}
	}
}

// TestComplete: a model is known by its own name, whatever region and maker
// stand before it.
func TestComplete(t *testing.T) {
	for name, want := range map[string]struct{ known, images, thoughts bool }{
		claude: {true, true, true},
		"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0": {true, true, true},
		nova:                          {true, true, false},
		"amazon.nova-micro-v1:0":      {true, false, false},
		"us.amazon.nova-2-lite-v1:0":  {true, true, true},
		"openai.gpt-oss-120b-1:0":     {true, false, true},
		"ai21.weather-1-5-large-v1:0": {},
		"application-inference/abc12": {},
	} {
		got := complete(domain.ModelInfo{Ref: domain.ModelRef{Model: name}})
		if (got.ContextWindow > 0) != want.known || (got.MaxOutput > 0) != want.known || got.Images != want.images || got.Thoughts != want.thoughts {
			t.Errorf("%s: %+v", name, got)
		}
	}
	no := false
	p := llm.Provider{ProviderConfig: llm.ProviderConfig{BaseURL: BaseURL("us-east-1"), Models: map[string]llm.ModelFacts{claude: {Images: &no, Thoughts: &no}}}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Model: claude}, ContextWindow: 5})
	if err != nil || m.Info().Images || m.Info().Thoughts || m.Info().ContextWindow != 5 {
		t.Errorf("what is configured is overruled: %+v, %v", m.Info(), err)
	}
}

// lists is a server of lists.
type lists struct {
	answers map[string]string // by path; "" is 404, a number is a status
	asked   []string
}

func (l *lists) RoundTrip(req *http.Request) (*http.Response, error) {
	l.asked = append(l.asked, req.Method+" "+req.URL.String())
	answer, ok := l.answers[req.URL.Path]
	status := http.StatusOK
	switch {
	case !ok:
		status, answer = http.StatusNotFound, `{"message":"x"}`
	case strings.HasPrefix(answer, "403"):
		status, answer = http.StatusForbidden, `{"message":`+wire.JS(answer[4:])+`}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{"X-Amzn-Errortype": {"AccessDeniedException"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// TestProbe is the table of what the lists say about a key.
func TestProbe(t *testing.T) {
	amazon := BaseURL("us-east-1")
	models := `{"modelSummaries":[{"modelId":"b"},{"modelId":"a"}]}`
	for _, c := range []struct {
		name    string
		base    string
		answers map[string]string
		want    []string
		code    domain.Code
		asked   string
	}{
		{"both lists", amazon, map[string]string{"/foundation-models": models, "/inference-profiles": `{"inferenceProfileSummaries":[{"inferenceProfileId":"us.a"},{"inferenceProfileId":"a"}]}`}, []string{"a", "b", "us.a"}, 0,
			"GET https://bedrock.us-east-1.amazonaws.com/foundation-models|GET https://bedrock.us-east-1.amazonaws.com/inference-profiles?maxResults=1000"},
		{"no profiles", amazon, map[string]string{"/foundation-models": models, "/inference-profiles": "403 no"}, []string{"a", "b"}, 0, ""},
		{"a key that may not list", amazon, map[string]string{"/foundation-models": "403 User: x is not authorized to perform: bedrock:ListFoundationModels"}, nil, 0, ""},
		{"a key that may nothing", amazon, map[string]string{"/foundation-models": "403 The security token included in the request is expired"}, nil, domain.AuthRequired, ""},
		{"no list at Amazon", amazon, nil, nil, domain.ProviderRejected, ""},
		{"no list at a gateway", "http://gateway.example/x", nil, nil, 0, "GET http://gateway.example/x/foundation-models"},
		{"no address", "", nil, nil, domain.InvalidArgument, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := &lists{answers: c.answers}
			got, err := probe(t.Context(), llm.Provider{Client: llm.NewClient(llm.HTTPConfig{Transport: server}), ProviderConfig: llm.ProviderConfig{
				Name: "aws", BaseURL: c.base, APIKey: func() (string, error) { return "a-key-of-the-tests", nil },
			}})
			if !slices.Equal(got, c.want) || (c.code == 0) != (err == nil) || (err != nil && domain.CodeOf(err) != c.code) {
				t.Errorf("%q, %v", got, err)
			}
			if asked := strings.Join(server.asked, "|"); c.asked != "" && asked != c.asked {
				t.Errorf("asked %s", asked)
			}
		})
	}
}
