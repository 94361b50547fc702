package bedrock

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestSign is checked against signatures that Amazon publishes for its
// example key.
func TestSign(t *testing.T) {
	example := credentials{id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		method string
		url    string
		header map[string]string
		body   string
		signed string
		want   string
	}{
		{"get-vanilla", "GET", "https://example.amazonaws.com/", nil, "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-vanilla without a path", "GET", "https://example.amazonaws.com", nil, "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla", "POST", "https://example.amazonaws.com/", nil, "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"get-vanilla-query-order-key-case", "GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", nil, "", "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"post-x-www-form-urlencoded", "POST", "https://example.amazonaws.com/", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "Param1=value1", "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req, err := http.NewRequest(c.method, c.url, strings.NewReader(c.body)) //nolint:noctx // it is not sent
			if err != nil {
				t.Fatal(err)
			}
			for name, v := range c.header {
				req.Header.Set(name, v)
			}
			example.sign(req, []byte(c.body), "us-east-1", "service", at)
			want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + c.signed + ", Signature=" + c.want
			if got := req.Header.Get("Authorization"); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestCanonicalPath: the path is encoded once more than it travels.
func TestCanonicalPath(t *testing.T) {
	for url, want := range map[string]string{
		"https://h":     "/",
		"https://h/":    "/",
		"https://h/a/b": "/a/b",
		"https://h/model/anthropic.claude-v2%3A1/converse-stream":  "/model/anthropic.claude-v2%253A1/converse-stream",
		"https://h/model/arn%3Aaws%3Abedrock%3A%2Fx/converse":      "/model/arn%253Aaws%253Abedrock%253A%252Fx/converse",
		"https://h/model/plain-1.0_x~y/converse-stream?region=abc": "/model/plain-1.0_x~y/converse-stream",
	} {
		req, err := http.NewRequest(http.MethodPost, url, nil) //nolint:noctx // it is not sent
		if err != nil {
			t.Fatal(err)
		}
		if got := canonicalPath(req.URL); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// TestParseKey: an access key is told from a key that travels as it is.
func TestParseKey(t *testing.T) {
	const id, secret, session = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJb3JpZ2luX2VjE=="
	for name, c := range map[string]struct {
		key   string
		want  credentials
		signs bool
		fails bool
	}{
		"an access key":         {key: Credentials(id, secret, ""), want: credentials{id, secret, ""}, signs: true},
		"a temporary key":       {key: Credentials("ASIAIOSFODNN7EXAMPLE", secret, session), want: credentials{"ASIAIOSFODNN7EXAMPLE", secret, session}, signs: true},
		"an id alone":           {key: id, signs: true, fails: true},
		"an id without secret":  {key: id + ":", signs: true, fails: true},
		"an API key":            {key: "ABSKQmVkcm9ja0FQSUtleS1hYmNk"},
		"a short-term API key":  {key: "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t"},
		"a key with a colon":    {key: "gateway:key"},
		"an id in small":        {key: "akiaiosfodnn7example:" + secret},
		"an id that is no id":   {key: "AKIAIOSFODNN7EXAMPL-:" + secret},
		"too short to be an id": {key: "AKIA1234567890X:" + secret},
	} {
		t.Run(name, func(t *testing.T) {
			got, signs, err := parseKey(c.key)
			if got != c.want || signs != c.signs || (err != nil) != c.fails {
				t.Errorf("%+v, %v, %v", got, signs, err)
			}
		})
	}
	if Credentials(id, "", session) != "" || Credentials("", secret, "") != "" {
		t.Error("half a key was made")
	}
}
