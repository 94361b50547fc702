package ws

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// place judges what does not depend on who it is.
func (g *Guard) place(r *http.Request, methods []string) *no {
	allowed := strings.Join(methods, ", ")
	switch {
	case !strings.Contains(", "+allowed+",", ", "+r.Method+","):
		return &no{status: http.StatusMethodNotAllowed, why: "method", allow: allowed}
	case !g.hostAllowed(r):
		return &no{status: http.StatusForbidden, why: "the host name is not allowed"}
	case !g.originAllowed(r):
		return &no{status: http.StatusForbidden, why: "the origin is not allowed"}
	}
	return nil
}

// hostAllowed judges the Host: a page of another site that has its name point
// at this machine asks for that name.
func (g *Guard) hostAllowed(r *http.Request) bool {
	host := hostName(r.Host)
	if host == "" {
		return false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
		if ip = ip.Unmap(); ip.IsLoopback() {
			return true
		}
		// A number cannot be rebound. It is ours when the peer reached us by it.
		if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			if local, err := netip.ParseAddrPort(at.String()); err == nil && local.Addr().Unmap().WithZone("") == ip {
				return true
			}
		}
	}
	if host == "localhost" {
		return true
	}
	for _, allowed := range g.cfg.Hosts {
		if host == allowedName(allowed) {
			return true
		}
	}
	return false
}

// hostName takes the port and the brackets away, and lowers the letters. It
// returns "" for what is no host: whoever sends that is no browser, and what
// is read in two ways is read in the wrong one some day.
func hostName(host string) string {
	var name, port string
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if name, port, ok = strings.Cut(inner, "]"); !ok || !strings.Contains(name, ":") {
			return ""
		}
		var colon bool
		if port, colon = strings.CutPrefix(port, ":"); !colon && port != "" {
			return ""
		}
	} else if name, port, _ = strings.Cut(host, ":"); strings.ContainsAny(name, "[]") {
		return ""
	}
	if strings.Trim(port, "0123456789") != "" || strings.Contains(name, "%") {
		return ""
	}
	return strings.ToLower(name)
}

// allowedName is the host that a setting names: one of IPv6 may go without its
// brackets there.
func allowedName(setting string) string {
	for _, name := range []string{setting, hostName(setting)} {
		if ip, err := netip.ParseAddr(name); err == nil {
			return ip.String() // one way to write it of many
		}
	}
	return hostName(setting)
}

// originAllowed judges the Origin, which browsers send and pages cannot
// change. One that is there is never taken for absent.
func (g *Guard) originAllowed(r *http.Request) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return true
	}
	if len(values) > 1 {
		return false
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	origin := normalOrigin(values[0])
	if origin == normalOrigin(scheme+"://"+r.Host) {
		return true
	}
	for _, allowed := range g.cfg.Origins {
		if origin == normalOrigin(allowed) {
			return true
		}
	}
	return false
}

// normalOrigin lowers the letters and takes away the port that goes without
// saying.
func normalOrigin(o string) string {
	o = strings.ToLower(o)
	if rest, ok := strings.CutPrefix(o, "http://"); ok {
		return "http://" + strings.TrimSuffix(rest, ":80")
	}
	if rest, ok := strings.CutPrefix(o, "https://"); ok {
		return "https://" + strings.TrimSuffix(rest, ":443")
	}
	return o
}
