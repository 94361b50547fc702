package llm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// unreachable is the failure of a request that got no answer at all.
func (x *Exchange) unreachable(err error) *Failure {
	if cause := context.Cause(x.ctx); cause != nil {
		if !errors.Is(cause, errSilent) {
			return cancelled(cause)
		}
		return x.silent()
	}
	err = bareURLError(err)
	t := x.troubleOf(err)
	msg := fmt.Sprintf("provider %q %s; %s", x.provider.Name, t.what, t.mend)
	return &Failure{Err: x.wrap(err, msg).With("provider", x.provider.Name), Retry: t.passes}
}

// trouble is why no answer came.
type trouble struct {
	what   string // completes "provider x …"
	mend   string // what to do
	passes bool   // it may be over a little later
}

// proxyMend is what to do about a proxy: Berth has no setting for one, it
// takes what the environment says.
const proxyMend = "check the proxy in HTTPS_PROXY or HTTP_PROXY, or name the provider's host in NO_PROXY"

// troubleOf explains an error of the transport.
func (x *Exchange) troubleOf(err error) trouble {
	settings := "providers." + x.provider.Name
	t := trouble{"cannot be reached", "check " + settings + ".base_url and the network", true}
	whose := "its"
	var refusal *proxyRefusal
	var op *net.OpError
	switch {
	case errors.As(err, &refusal):
		return refusal.trouble()
	case errors.Is(err, errProxySetting):
		return trouble{"cannot be reached: " + errProxySetting.Error(), "write it as http://host:port", false}
	case errors.As(err, &op) && op.Op == "proxyconnect":
		t.what, t.mend, whose = "cannot be reached: the proxy before it does not answer", proxyMend, "the proxy's"
	}
	var dns *net.DNSError
	var timeout net.Error
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return trouble{"cannot be reached: " + whose + " host name is unknown", t.mend, false}
	case certificate(err) != "":
		return trouble{"cannot be reached safely: " + whose + " certificate " + certificate(err), certificateMend(err, settings), false}
	case strings.Contains(err.Error(), "gave HTTP response to HTTPS client"), errors.As(err, &record):
		return trouble{"speaks plain HTTP at an address that begins with https", "check " + settings + ".base_url", false}
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`): // an alert of TLS
		return trouble{"wants https at an address that begins with http", "check " + settings + ".base_url", false}
	case whose == "its" && errors.Is(err, syscall.ECONNREFUSED):
		t.what = "cannot be reached: nothing listens at its address"
	case whose == "its" && errors.As(err, &timeout) && timeout.Timeout():
		t.what = fmt.Sprintf("cannot be reached: there was no connection within %s", connectTimeout)
	}
	return t
}

// certificate says what is wrong with a certificate; "" when err is about
// something else.
func certificate(err error) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var other *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unknown):
		return "is not valid: it comes from an authority that is not trusted here"
	case errors.As(err, &host):
		return "is not valid: it is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "is not valid: it has expired or is not valid yet"
	case errors.As(err, &invalid), errors.As(err, &other):
		return "is not valid"
	}
	return ""
}

// certificateMend says what to do about it.
func certificateMend(err error, settings string) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return "if the authority is your own or your proxy's, set " + settings + ".ca_file to its certificate (a PEM file)"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "check the clock of this machine, and tell whoever runs the server"
	}
	return "check " + settings + ".base_url"
}

// errProxySetting stands for the error of a proxy setting, which would quote
// it with the password it may hold.
var errProxySetting = errors.New("the proxy that the environment names (HTTPS_PROXY, HTTP_PROXY) is no address")

// proxyRefusal is the answer of a proxy that does not connect.
type proxyRefusal struct{ status int }

// Error returns the status.
func (e *proxyRefusal) Error() string {
	return fmt.Sprintf("the proxy answered %d %s", e.status, http.StatusText(e.status))
}

func (e *proxyRefusal) trouble() trouble {
	t := trouble{"cannot be reached: " + e.Error(), proxyMend, e.status >= 500}
	switch e.status {
	case http.StatusProxyAuthRequired:
		t.what, t.mend = "cannot be reached: "+proxyWantsAuth, proxyAuthMend
	case http.StatusForbidden:
		t.what = "cannot be reached: the proxy does not let it through (403)"
	}
	return t
}

const (
	proxyWantsAuth = "the proxy wants a name and a password, or refuses those it was given (407)"
	proxyAuthMend  = "write them into HTTPS_PROXY or HTTP_PROXY as http://name:password@host:port"
)
