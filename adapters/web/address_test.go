package web

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestParseURL_Accepted(t *testing.T) {
	cfg := Config{Ports: []uint16{8443}}
	for in, want := range map[string]string{
		"https://example.com":                           "https://example.com/",
		"HTTPS://Example.COM/A?b=c#frag":                "https://example.com/A?b=c",
		" https://example.com/x ":                       "https://example.com/x",
		"http://example.com:80/":                        "http://example.com/",
		"https://example.com:443/a%20b":                 "https://example.com/a%20b",
		"https://example.com:80/":                       "https://example.com:80/",
		"https://example.com:8443/":                     "https://example.com:8443/",
		"https://93.184.215.14/":                        "https://93.184.215.14/",
		"https://[2606:4700:4700:0::1111]/":             "https://[2606:4700:4700::1111]/",
		"https://a_b.example.com/":                      "https://a_b.example.com/",
		"https://3com.com/":                             "https://3com.com/",
		"https://example.com/wiki/Z\u00fcrich?q=\u00fc": "https://example.com/wiki/Z%C3%BCrich?q=\u00fc",
	} {
		u, err := cfg.parseURL(in)
		if err != nil || u.String() != want {
			t.Errorf("%q becomes %v, %v; want %s", in, u, err, want)
		}
	}
}

func TestParseURL_Refused(t *testing.T) {
	cases := []struct {
		name, url string
		code      domain.Code
	}{
		{"nothing", "", domain.InvalidArgument},
		{"no scheme", "example.com", domain.InvalidArgument},
		{"a path", "/etc/passwd", domain.InvalidArgument},
		{"a file", "file:///etc/passwd", domain.InvalidArgument},
		{"another scheme", "gopher://example.com/", domain.InvalidArgument},
		{"data", "data:text/plain,x", domain.InvalidArgument},
		{"opaque", "https:example.com", domain.InvalidArgument},
		{"no host", "https:///x", domain.InvalidArgument},
		{"a user", "https://user@example.com/", domain.Denied},
		{"a user and a password", "https://user:pw@example.com/", domain.Denied},
		{"an empty user", "https://@example.com/", domain.Denied},
		{"a host that looks like a user", "https://example.com@evil.example/", domain.Denied},
		{"a backslash", `https://example.com\@evil.example/`, domain.InvalidArgument},
		{"a space", "https://example.com/a b", domain.InvalidArgument},
		{"a line end", "https://example.com/\r\nHost: x", domain.InvalidArgument},
		{"a hidden character", "https://example.com/\u202Etxt", domain.InvalidArgument},
		{"a NUL", "https://example.com/\x00", domain.InvalidArgument},
		{"bytes that are no text", "https://example.com/\xff", domain.InvalidArgument},
		{"too long", "https://example.com/" + strings.Repeat("a", maxURL), domain.InvalidArgument},
		{"a bad escape", "https://example.com/%zz", domain.InvalidArgument},
		{"an escape in the host", "https://exa%6Dple.com/", domain.InvalidArgument},
		{"a trailing dot", "https://example.com./", domain.Denied},
		{"an empty label", "https://example..com/", domain.InvalidArgument},
		{"a label with a hyphen at its end", "https://a-.example.com/", domain.InvalidArgument},
		{"a long label", "https://" + strings.Repeat("a", 64) + ".com/", domain.InvalidArgument},
		{"a long name", "https://" + strings.Repeat("a.", 130) + "com/", domain.InvalidArgument},
		{"other letters", "https://b\u00fccher.example/", domain.InvalidArgument},
		{"a full-width dot", "https://127\uff0e0\uff0e0\uff0e1/", domain.InvalidArgument},
		{"punycode", "https://xn--bcher-kva.example/", domain.Denied},
		{"punycode in the middle", "https://a.xn--80ak6aa92e.com/", domain.Denied},
		{"a port", "https://example.com:8080/", domain.Denied},
		{"the port of SSH", "http://example.com:22/", domain.Denied},
		{"no port after the colon", "https://example.com:/", domain.InvalidArgument},
		{"a port with zeros", "https://example.com:0443/", domain.InvalidArgument},
		{"port 0", "https://example.com:0/", domain.InvalidArgument},
		{"port 65536", "https://example.com:65536/", domain.InvalidArgument},
		{"localhost", "http://localhost/", domain.Denied},
		{"below localhost", "http://x.localhost/", domain.Denied},
		{"a name of the local network", "http://printer.local/", domain.Denied},
		{"the metadata of a cloud by name", "http://metadata.google.internal/", domain.Denied},
		{"one word", "http://intranet/", domain.Denied},
		{"this machine", "http://127.0.0.1/", domain.Denied},
		{"this machine, later", "http://127.255.255.254/", domain.Denied},
		{"a short form", "http://127.1/", domain.Denied},
		{"a decimal", "http://2130706433/", domain.Denied},
		{"an octal", "http://0177.0.0.1/", domain.Denied},
		{"zeros in front", "http://127.0.0.01/", domain.Denied},
		{"a hexadecimal", "http://0x7f000001/", domain.Denied},
		{"a hexadecimal part", "http://127.0.0.0x1/", domain.Denied},
		{"a bare 0x", "http://127.0.0.0x/", domain.Denied},
		{"a number too large", "http://1.2.3.256/", domain.Denied},
		{"five numbers", "http://1.2.3.4.5/", domain.Denied},
		{"nobody", "http://0.0.0.0/", domain.Denied},
		{"a private network", "http://10.1.2.3/", domain.Denied},
		{"another", "http://172.31.255.255/", domain.Denied},
		{"a third", "http://192.168.1.1/", domain.Denied},
		{"a provider's inner network", "http://100.64.0.1/", domain.Denied},
		{"the metadata of a cloud", "http://169.254.169.254/latest/", domain.Denied},
		{"that of another", "http://100.100.100.200/", domain.Denied},
		{"a cloud's own services", "http://168.63.129.16/", domain.Denied},
		{"multicast", "http://224.0.0.1/", domain.Denied},
		{"broadcast", "http://255.255.255.255/", domain.Denied},
		{"IPv6 of this machine", "http://[::1]/", domain.Denied},
		{"IPv6 of nobody", "http://[::]/", domain.Denied},
		{"IPv4 in IPv6", "http://[::ffff:127.0.0.1]/", domain.Denied},
		{"the same in hexadecimal", "http://[::ffff:7f00:1]/", domain.Denied},
		{"the old form", "http://[::127.0.0.1]/", domain.Denied},
		{"a translation", "http://[64:ff9b::7f00:1]/", domain.Denied},
		{"a local translation", "http://[64:ff9b:1::a00:1]/", domain.Denied},
		{"6to4", "http://[2002:7f00:1::]/", domain.Denied},
		{"Teredo", "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", domain.Denied},
		{"a private IPv6 network", "http://[fd00:ec2::254]/", domain.Denied},
		{"the local link", "http://[fe80::1]/", domain.Denied},
		{"a zone", "http://[fe80::1%25eth0]/", domain.Denied},
		{"a zone on a public address", "http://[2606:4700::1%25eth0]/", domain.Denied},
		{"IPv6 multicast", "http://[ff02::1]/", domain.Denied},
		{"documentation", "http://[2001:db8::1]/", domain.Denied},
		{"what nobody has", "http://[4000::1]/", domain.Denied},
		{"IPv4 in brackets", "http://[127.0.0.1]/", domain.InvalidArgument},
		{"a name in brackets", "http://[example.com]/", domain.InvalidArgument},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var cfg Config
			u, err := cfg.parseURL(c.url)
			if err == nil {
				t.Fatalf("%q is taken as %v", c.url, u)
			}
			if !domain.HasCode(err, c.code) {
				t.Errorf("%q: %v, coded %v; want %v", c.url, err, domain.CodeOf(err), c.code)
			}
			if strings.Contains(err.Error(), "pw") {
				t.Errorf("the message tells the password: %v", err)
			}
		})
	}
}

func TestNotPublic(t *testing.T) {
	for _, public := range []string{
		"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "172.15.255.255",
		"172.32.0.0", "192.167.255.255", "192.169.0.0", "223.255.255.255", "::ffff:1.1.1.1", "2606:4700::1", "2a00::1", "2001:200::1",
	} {
		if what := notPublic(netip.MustParseAddr(public)); what != "" {
			t.Errorf("%s is said to belong to %s", public, what)
		}
	}
	for _, list := range [][]addrRange{special4(), special6()} {
		for _, r := range list {
			p := netip.MustParsePrefix(r.prefix)
			if p.Masked() != p {
				t.Errorf("%s is no range", r.prefix)
			}
			if notPublic(p.Addr()) != r.what {
				t.Errorf("%s belongs to %q, want %q", p.Addr(), notPublic(p.Addr()), r.what)
			}
		}
	}
	if notPublic(netip.Addr{}) == "" || notPublic(netip.MustParseAddr("::ffff:10.0.0.1")) == "" {
		t.Error("no address, or a private one in another form, is said to be public")
	}
}

// Whatever is accepted is fetched from the host that is shown, and a second
// look at it changes nothing.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/a?b#c", "http://127.0.0.1:80", "https://[2606:4700::1]:443/", "http://0x7f.1/", "HTTPS://A.B./",
		`https://a.b\c`, "https://user:pw@a.b", "https://xn--a.b", "//a.b", "https://a.b:/", "https://a.b%2f@c.d/", "http://1.2.3.4.5",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var cfg Config
		u, err := cfg.parseURL(raw)
		if err != nil {
			if !domain.HasCode(err, domain.InvalidArgument) && !domain.HasCode(err, domain.Denied) {
				t.Fatalf("%q: %v has no code", raw, err)
			}
			return
		}
		again, err := cfg.parseURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q becomes %q and then %v, %v", raw, u, again, err)
		}
		std, err := url.Parse(u.String())
		if err != nil || std.Host != u.Host || std.User != nil || std.Fragment != "" {
			t.Fatalf("%q is read as %+v by others, %v", u, std, err)
		}
		host := u.Hostname()
		if addr, err := netip.ParseAddr(host); err == nil && notPublic(addr) != "" {
			t.Fatalf("%q leads to %s", raw, host)
		}
		if strings.ToLower(host) != host || strings.HasSuffix(host, ".") || domain.Visible(u.String()) != u.String() {
			t.Fatalf("%q becomes %q", raw, u)
		}
	})
}
