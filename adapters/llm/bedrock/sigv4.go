package bedrock

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// signingName is what Amazon's signatures call the service, for models and
// for the lists of them.
const signingName = "bedrock"

// sign puts a Signature Version 4 on a request: headers that say when and by
// whom, and a keyed hash over the method, the address, these headers and the
// body. All headers it covers must be set before: host, content-type and those
// that begin with "x-amz-".
func (c credentials) sign(req *http.Request, body []byte, region, service string, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	day := stamp[:8]
	req.Header.Set("X-Amz-Date", stamp)
	if c.session != "" {
		req.Header.Set("X-Amz-Security-Token", c.session)
	}
	names, headers := canonicalHeaders(req)
	canonical := strings.Join([]string{
		req.Method, canonicalPath(req.URL), canonicalQuery(req.URL), headers, names, hexHash(body),
	}, "\n")
	scope := day + "/" + region + "/" + service + "/aws4_request"
	toSign := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hexHash([]byte(canonical))
	key := []byte("AWS4" + c.secret)
	for _, part := range []string{day, region, service, "aws4_request"} {
		key = mac(key, part)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+c.id+"/"+scope+
		", SignedHeaders="+names+", Signature="+hex.EncodeToString(mac(key, toSign)))
}

func mac(key []byte, s string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(s))
	return h.Sum(nil)
}

func hexHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// canonicalHeaders returns the names of the headers that are signed, joined
// by semicolons, and the headers themselves, one a line.
func canonicalHeaders(req *http.Request) (names, lines string) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	signed := map[string]string{"host": host}
	for name, values := range req.Header {
		name = strings.ToLower(name)
		if name != "content-type" && !strings.HasPrefix(name, "x-amz-") {
			continue
		}
		folded := make([]string, len(values))
		for i, v := range values {
			folded[i] = strings.Join(strings.Fields(v), " ")
		}
		signed[name] = strings.Join(folded, ",")
	}
	sorted := slices.Sorted(maps.Keys(signed))
	var b strings.Builder
	for _, name := range sorted {
		b.WriteString(name + ":" + signed[name] + "\n")
	}
	return strings.Join(sorted, ";"), b.String()
}

// canonicalPath encodes the path once more than it travels: a colon that is
// sent as "%3A" is signed as "%253A". Paths with dot segments, which would be
// resolved first, are none of ours.
func canonicalPath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		return "/"
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = escape(s)
	}
	return strings.Join(segments, "/")
}

// canonicalQuery sorts the parameters by their encoded names, then values.
func canonicalQuery(u *url.URL) string {
	var pairs []string
	for name, values := range u.Query() {
		for _, v := range values {
			pairs = append(pairs, escape(name)+"="+escape(v))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape encodes all but the unreserved characters of URLs, as signatures and
// the names of models in paths want it.
func escape(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}
