package llm

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redactor cuts out of a provider's words what must not stand in an error:
// the key and other secrets of the request, whatever looks like a key, and
// anything quoted from the conversation.
type redactor struct {
	secrets []string
	body    []byte
	public  []string
}

const (
	mask      = "[redacted]"
	quoteMask = "[…]"
	// window is the block of the request's body that is looked for in a
	// message. Any common run of 2*window-1 bytes holds a whole block.
	window    = 12
	maxWords  = 400 // bytes of a provider's words that are shown
	minSecret = 4   // a shorter value would match by chance
	// A secret of longSecret bytes or more is hidden in parts of secretPart
	// bytes too: the last four of a key say which it is and may be shown.
	longSecret = 16
	secretPart = 8
)

// newRedactor collects the secrets of one request.
func newRedactor(p *Provider, call Call, key string) redactor {
	r := redactor{body: call.Body, public: call.Public}
	r.hide(key)
	if call.Secrets != nil && key != "" {
		for _, part := range call.Secrets(key) {
			r.hide(part)
		}
	}
	for name, value := range p.Headers {
		if secretHeader(name) {
			r.hide(value)
			_, token, _ := strings.Cut(value, " ")
			r.hide(token)
		}
	}
	if u, err := url.Parse(call.URL); err == nil {
		if pw, ok := u.User.Password(); ok {
			r.hide(pw)
		}
		for _, values := range u.Query() {
			for _, v := range values {
				r.hide(v)
			}
		}
	}
	return r
}

func (r *redactor) hide(secret string) {
	if len(secret) >= minSecret {
		r.secrets = append(r.secrets, secret, url.QueryEscape(secret))
	}
}

// secretHeader reports whether a configured header may carry a secret. All
// but the few that describe the caller may.
func secretHeader(name string) bool {
	switch strings.ToLower(name) {
	case "user-agent", "referer", "http-referer", "x-title", "accept", "content-type":
		return false
	}
	return true
}

// clean returns words fit to show: one line, bounded, without secrets.
func (r *redactor) clean(words string) string {
	if most := 4 * maxWords; len(words) > most {
		for most > 0 && !utf8.RuneStart(words[most]) {
			most--
		}
		words = words[:most]
	}
	return oneLine(r.unquote(r.mask(words)), maxWords)
}

// mask returns words without secrets and without long parts of them, which is
// how a provider names a key that it does not print in full.
func (r *redactor) mask(words string) string {
	for _, s := range r.secrets {
		words = strings.ReplaceAll(words, s, mask)
	}
	words = keyShapes().ReplaceAllString(words, mask)
	for _, s := range r.secrets {
		if len(s) >= longSecret {
			words = unpart(words, s)
		}
	}
	return words
}

// unpart replaces the parts of a secret that stand in words.
func unpart(words, secret string) string {
	for i := 0; i+secretPart <= len(words); i++ {
		if !strings.Contains(secret, words[i:i+secretPart]) {
			continue
		}
		end := i + secretPart
		for end < len(words) && strings.Contains(secret, words[i:end+1]) {
			end++
		}
		words = words[:i] + mask + words[end:]
		i += len(mask) - 1
	}
	return words
}

// keyShapes matches what keys of the common providers and their like look
// like: a provider may echo a key with a part of it left out or added.
func keyShapes() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|github_pat|glpat|xox[abprs]|r8|nvapi|pplx|csk|fw)[-_][A-Za-z0-9*._-]{6,}` +
		`|\bAIza[0-9A-Za-z_-]{10,}|\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z._-]+|\bA[KS]IA[0-9A-Z]{8,}|\bABSK[0-9A-Za-z+/=]{12,}` +
		`|\bbedrock-api-key-[0-9A-Za-z+/=_-]{6,}` +
		`|(?:Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{16,}`)
}

// unquote replaces what a message quotes from the request's body: as it was
// sent, or as it reads, for a provider quotes what the JSON says.
func (r *redactor) unquote(words string) string {
	hit := make([]bool, len(words))
	r.quoted(words, r.body, hit)
	if bytes.IndexByte(r.body, '\\') >= 0 {
		r.quoted(words, Unescape(make([]byte, 0, len(r.body)), r.body), hit)
	}
	if !slices.Contains(hit, true) {
		return words
	}
	var out strings.Builder
	for i := 0; i < len(words); i++ {
		switch {
		case !hit[i]:
			out.WriteByte(words[i])
		case i == 0 || !hit[i-1]:
			out.WriteString(quoteMask)
		}
	}
	return strings.ToValidUTF8(out.String(), "")
}

// quoted notes which bytes of words stand in a body. It looks up blocks of the
// body among all windows of the words, so its cost is that of one pass over
// the body.
func (r *redactor) quoted(words string, body []byte, hit []bool) {
	if len(words) < window || len(body) < window {
		return
	}
	at := make(map[string][]int, len(words))
	for i := 0; i+window <= len(words); i++ {
		if w := words[i : i+window]; !r.isPublic(w) {
			at[w] = append(at[w], i)
		}
	}
	for b := 0; b+window <= len(body); b += window {
		for _, i := range at[string(body[b:b+window])] {
			lo, hi := i, i+window
			if hit[lo] && hit[hi-1] {
				continue
			}
			for lo > 0 && b-(i-lo) > 0 && words[lo-1] == body[b-(i-lo)-1] {
				lo--
			}
			for hi < len(words) && b+hi-i < len(body) && words[hi] == body[b+hi-i] {
				hi++
			}
			for k := lo; k < hi; k++ {
				hit[k] = true
			}
		}
	}
}

func (r *redactor) isPublic(w string) bool {
	for _, p := range r.public {
		if strings.Contains(p, w) {
			return true
		}
	}
	return false
}

// oneLine folds space, drops control characters and bounds the length.
func oneLine(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c)
	}), " ")
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s[:max(0, len(s)-1)] + "…"
}
