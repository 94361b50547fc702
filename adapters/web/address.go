package web

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

const maxURL = 4096 // bytes

// parseURL checks an address as it is written and returns it in the one form
// that is shown, remembered and fetched: lower-case host, no fragment.
func (c *Config) parseURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	switch {
	case raw == "":
		return nil, refuse("the address is empty; give one such as https://example.com/page")
	case len(raw) > maxURL:
		return nil, refuse("the address is %d bytes long; at most %d are allowed", len(raw), maxURL)
	case domain.Visible(raw) != raw || strings.ContainsAny(raw, " \t\n\\"):
		return nil, refuse("the address holds spaces, backslashes or characters that cannot be seen; write them as %%XX")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, refuse("the address cannot be understood; give one such as https://example.com/page")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refuse("only http:// and https:// addresses can be fetched")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return nil, deny("an address with a user name or password is not fetched; leave them out")
	case u.Opaque != "" || u.Host == "":
		return nil, refuse("the address names no host; give one such as https://example.com/page")
	}
	host, err := c.checkHost(u.Hostname(), strings.HasPrefix(u.Host, "["))
	if err != nil {
		return nil, err
	}
	port, err := c.checkPort(u)
	if err != nil {
		return nil, err
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	u.Host = host + port
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// checkPort returns the port with its colon, "" for the scheme's own.
func (c *Config) checkPort(u *url.URL) (string, error) {
	port := u.Port()
	if port == "" {
		if strings.HasSuffix(u.Host, ":") {
			return "", refuse("the address has a colon and no port after it")
		}
		return "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return "", refuse("%q is no port", port)
	}
	switch {
	case u.Scheme == "http" && n == 80, u.Scheme == "https" && n == 443:
		return "", nil
	case n == 80, n == 443, c.AllowPrivate, slices.Contains(c.Ports, uint16(n)):
		return ":" + port, nil
	}
	return "", deny("port %d is not fetched from; only 80 and 443 are", n)
}

// checkHost checks a host name or an IP address and returns it in lower case.
func (c *Config) checkHost(host string, bracketed bool) (string, error) {
	host = strings.ToLower(host)
	if bracketed {
		addr, err := netip.ParseAddr(host)
		switch {
		case err != nil || !addr.Is6():
			return "", refuse("the host in brackets is no IPv6 address")
		case addr.Zone() != "" || addr.Is4In6():
			return "", deny("an IPv6 address with a zone or an IPv4 address in it is not fetched from")
		}
		return addr.String(), c.checkAddr(addr)
	}
	if strings.HasSuffix(host, ".") {
		return "", deny("a host name that ends in a dot is not fetched from; leave the dot out")
	}
	labels := strings.Split(host, ".")
	if last := labels[len(labels)-1]; numeric(last) {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is4() {
			return "", deny("the host looks like an IP address in an unusual form; write it as four numbers from 0 to 255, or use its name")
		}
		return addr.String(), c.checkAddr(addr)
	}
	if err := c.checkName(host, labels); err != nil {
		return "", err
	}
	return host, nil
}

// checkName checks a host name by its labels.
func (c *Config) checkName(host string, labels []string) error {
	if len(host) > 253 {
		return refuse("the host name is too long")
	}
	for _, l := range labels {
		switch {
		case l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-':
			return refuse("the host name has a part that is empty, too long, or begins or ends with a hyphen")
		case strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return refuse("the host name has other characters than letters, digits and hyphens")
		case !c.International && len(l) > 3 && l[2:4] == "--":
			return deny("a host name in punycode is not fetched from, because it can look like another")
		}
	}
	last := labels[len(labels)-1]
	if !c.AllowPrivate && (len(labels) == 1 || last == "localhost" || last == "local" || last == "internal" || last == "localdomain") {
		return deny("%s is a name of this machine or of its own network; only the public web can be fetched from", host)
	}
	return nil
}

// numeric reports whether the last part of a host makes all of it an IPv4
// address to some resolver: digits alone, or hexadecimal.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// checkAddr refuses an IP address that is not one of the public Internet.
func (c *Config) checkAddr(addr netip.Addr) error {
	if c.AllowPrivate {
		return nil
	}
	if what := notPublic(addr); what != "" {
		return deny("the address belongs to %s; only the public web can be fetched from", what)
	}
	return nil
}

// addrRange is addresses that have a purpose of their own.
type addrRange struct{ prefix, what string }

// special4 and special6 are what IANA's special-purpose registries set aside,
// and one public address by which a cloud reaches its machines. Of IPv6 only
// 2000::/3 is in use at all.
func special4() []addrRange {
	return []addrRange{
		{"0.0.0.0/8", "this network itself"},
		{"10.0.0.0/8", "a private network"},
		{"100.64.0.0/10", "a provider's inner network"},
		{"127.0.0.0/8", "this machine"},
		{"168.63.129.16/32", "the services of a cloud to its machines"},
		{"169.254.0.0/16", "the local link, or the metadata of a cloud"},
		{"172.16.0.0/12", "a private network"},
		{"192.0.0.0/24", "a protocol"},
		{"192.0.2.0/24", "documentation"},
		{"192.88.99.0/24", "a relay of IPv6"},
		{"192.168.0.0/16", "a private network"},
		{"198.18.0.0/15", "measurements"},
		{"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"},
		{"224.0.0.0/4", "multicast"},
		{"240.0.0.0/4", "broadcast or nobody"},
	}
}

func special6() []addrRange {
	return []addrRange{
		{"::/128", "this network itself"},
		{"::1/128", "this machine"},
		{"64:ff9b::/96", "a translation to IPv4"},
		{"64:ff9b:1::/48", "a translation to IPv4"},
		{"fc00::/7", "a private network"},
		{"fe80::/10", "the local link"},
		{"ff00::/8", "multicast"},
		{"2001::/23", "a protocol or a tunnel"},
		{"2001:db8::/32", "documentation"},
		{"2002::/16", "a tunnel to IPv4"},
		{"3fff::/20", "documentation"},
	}
}

// notPublic says what an address is for when it is not one of the public
// Internet; "" when it is.
func notPublic(addr netip.Addr) string {
	if !addr.IsValid() || addr.Zone() != "" {
		return "the local link"
	}
	addr = addr.Unmap()
	list := special6()
	if addr.Is4() {
		list = special4()
	}
	for _, r := range list {
		if netip.MustParsePrefix(r.prefix).Contains(addr) {
			return r.what
		}
	}
	if addr.Is6() && !netip.MustParsePrefix("2000::/3").Contains(addr) {
		return "nobody"
	}
	return ""
}

// refuse is an address that is wrong, deny one that policy does not fetch.
func refuse(format string, args ...any) error {
	return domain.Errorf(domain.InvalidArgument, "web_fetch: "+format, args...)
}

func deny(format string, args ...any) error {
	return domain.Errorf(domain.Denied, "web_fetch: "+format, args...)
}
