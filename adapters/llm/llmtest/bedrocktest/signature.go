package bedrocktest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// authorization is the form of the header of a signed request.
func authorization() *regexp.Regexp {
	return regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([A-Z0-9]+)/(\d{8})/([a-z0-9-]+)/([a-z]+)/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`)
}

// verify recomputes the signature of a request from what came over the wire.
// It shares nothing with the code that signs.
func verify(req *http.Request, body []byte) string {
	m := authorization().FindStringSubmatch(req.Header.Get("Authorization"))
	if m == nil {
		return "no signature"
	}
	id, day, region, service, names, signature := m[1], m[2], m[3], m[4], m[5], m[6]
	stamp := req.Header.Get("X-Amz-Date")
	switch {
	case id != AccessKey, region != Region, service != "bedrock":
		return "signed for another key, region or service"
	case !strings.HasPrefix(stamp, day):
		return "signed for another day"
	case req.Header.Get("X-Amz-Security-Token") != SessionToken:
		return "no session token"
	}
	var headers strings.Builder
	list := strings.Split(names, ";")
	for _, name := range list {
		value := req.Header.Get(name)
		if name == "host" {
			value = req.Host
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	for _, must := range []string{"host", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(list, must) {
			return "the signature does not cover " + must
		}
	}
	query := strings.Split(req.URL.RawQuery, "&")
	slices.Sort(query)
	canonical := fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n%x", req.Method, again(req.RequestURI), strings.Join(query, "&"), headers.String(), names, sha256.Sum256(body))
	toSign := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s/%s/%s/aws4_request\n%x", stamp, day, region, service, sha256.Sum256([]byte(canonical)))
	key := "AWS4" + SecretKey
	for _, s := range []string{day, region, service, "aws4_request", toSign} {
		h := hmac.New(sha256.New, []byte(key))
		_, _ = h.Write([]byte(s))
		key = string(h.Sum(nil))
	}
	if hex.EncodeToString([]byte(key)) != signature {
		return "the signature is wrong"
	}
	return ""
}

// again encodes the path of a request's address once more, as signatures have
// it.
func again(address string) string {
	path, _, _ := strings.Cut(address, "?")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	return strings.Join(segments, "/")
}
