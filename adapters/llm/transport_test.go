package llm

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// pki is a certificate authority of our own.
type pki struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newPKI(t *testing.T) *pki {
	t.Helper()
	p := &pki{key: newKey(t), file: filepath.Join(t.TempDir(), "authority.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Our own authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &p.key.PublicKey, p.key)
	if err != nil {
		t.Fatal(err)
	}
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// server serves over TLS with a certificate of the authority.
func (p *pki) server(t *testing.T, h http.Handler, change func(*x509.Certificate)) *httptest.Server {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "provider"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"far.invalid"},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, &key.PublicKey, p.key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// answers is a server that has an answer for everybody.
func answers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"answer":"yes"}`) })
}

// get asks for one document.
func get(t *testing.T, address string, cfg HTTPConfig) (string, error) {
	t.Helper()
	p := Provider{ProviderConfig: ProviderConfig{Name: "p", Timeout: 10 * time.Second}, Client: NewClient(cfg)}
	t.Cleanup(p.Client.Close)
	return p.document(t.Context(), address)
}

func (p *Provider) document(ctx context.Context, address string) (string, error) {
	var doc struct{ Answer string }
	err := p.Fetch(ctx, Call{URL: address}, &doc)
	return doc.Answer, err
}

// wantTrouble demands an error that tells some things and not others.
func wantTrouble(t *testing.T, err error, want, never string) {
	t.Helper()
	if err == nil {
		t.Fatal("it was answered")
	}
	for _, w := range strings.Split(want, "|") {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error %q does not tell %q", err, w)
		}
	}
	if never != "" && strings.Contains(err.Error(), never) {
		t.Errorf("the error %q tells %q", err, never)
	}
}

// TestCertificates: an authority that a setting names is trusted, besides
// those of the system, and what is wrong with a certificate is told with what
// to do.
func TestCertificates(t *testing.T) {
	ours, other := newPKI(t), newPKI(t)
	good := ours.server(t, answers(), nil)
	both := filepath.Join(t.TempDir(), "both.pem")
	a, errA := os.ReadFile(other.file)
	b, errB := os.ReadFile(ours.file)
	if errA != nil || errB != nil || os.WriteFile(both, append(a, b...), 0o600) != nil {
		t.Fatal("the files cannot be put together")
	}
	for name, c := range map[string]struct {
		server *httptest.Server
		file   string
		want   string // "" when it is answered
	}{
		"named":            {good, ours.file, ""},
		"among others":     {good, both, ""},
		"not named":        {good, "", "an authority that is not trusted here|set providers.p.ca_file"},
		"another is named": {good, other.file, "an authority that is not trusted here|set providers.p.ca_file"},
		"for another host": {ours.server(t, answers(), func(c *x509.Certificate) { c.IPAddresses = nil }), ours.file, "it is for another host|check providers.p.base_url"},
		"expired": {ours.server(t, answers(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), ours.file,
			"it has expired or is not valid yet|check the clock"},
		"not for servers": {ours.server(t, answers(), func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), ours.file,
			"its certificate is not valid;"},
		"no such file": {good, filepath.Join(t.TempDir(), "none.pem"), "providers.p.ca_file cannot be read|none.pem|in PEM form"},
		"no PEM":       {good, "transport_test.go", "providers.p.ca_file names transport_test.go, which holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := get(t, c.server.URL, HTTPConfig{CAFile: c.file})
			if c.want == "" {
				if got != "yes" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			wantTrouble(t, err, c.want, "")
			var f *Failure
			if errors.As(err, &f) && f.Retry {
				t.Error("it would be tried again")
			}
		})
	}
}

// TestCertificates_Mended: a file that is put right counts without a restart.
func TestCertificates_Mended(t *testing.T) {
	ours := newPKI(t)
	server := ours.server(t, answers(), nil)
	file := filepath.Join(t.TempDir(), "ca.pem")
	p := Provider{ProviderConfig: ProviderConfig{Name: "p"}, Client: NewClient(HTTPConfig{CAFile: file})}
	defer p.Client.Close()
	if _, err := p.document(t.Context(), server.URL); !domain.HasCode(err, domain.InvalidArgument) {
		t.Errorf("%v", err)
	}
	pem, err := os.ReadFile(ours.file)
	if err != nil || os.WriteFile(file, pem, 0o600) != nil {
		t.Fatal("the file cannot be written")
	}
	if got, err := p.document(t.Context(), server.URL); got != "yes" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestModels_Clients: providers share a pool, those with an authority of
// their own have one of their own.
func TestModels_Clients(t *testing.T) {
	ms, err := New(Config{Providers: []ProviderConfig{
		{Name: "a", Type: "silent"}, {Name: "b", Type: "silent"}, {Name: "c", Type: "silent", CAFile: "x.pem"}, {Name: "d", Type: "silent", CAFile: "x.pem"},
	}}, map[string]Opener{"silent": silentOpener(new(int))})
	if err != nil {
		t.Fatal(err)
	}
	defer ms.Close()
	client := func(name string) *Client { return ms.reach(ms.providers[name]).Client }
	if client("a") != client("b") || client("c") != client("d") || client("a") == client("c") || client("c").cfg.CAFile != "x.pem" {
		t.Error("the pools are not as configured")
	}
}

// connectProxy is a proxy that connects to one address, whatever it is asked
// for, or refuses.
type connectProxy struct {
	to     string // address of the server behind
	login  string // "name:password" that it wants, "" for none
	status int    // answered in place of connecting, when not 0
	asked  atomic.Int32
}

func (p *connectProxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.asked.Add(1)
	if p.status != 0 {
		w.WriteHeader(p.status)
		return
	}
	if p.login != "" {
		header := req.Header.Get("Proxy-Authorization")
		req.Header.Set("Authorization", header)
		if name, pw, ok := req.BasicAuth(); !ok || name+":"+pw != p.login {
			w.Header().Set("Proxy-Authenticate", `Basic realm="s3cret-pw"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
	}
	if req.Method != http.MethodConnect {
		_, _ = io.WriteString(w, `{"answer":"by way of the proxy"}`)
		return
	}
	behind, err := net.Dial("tcp", p.to) //nolint:noctx // a server of this test
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer behind.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(behind, client)
		_ = behind.Close()
	}()
	_, _ = io.Copy(client, behind)
	_ = client.Close()
	<-done
}

// TestProxy: requests go through the proxy of the environment, with its name
// and password, and what a proxy refuses is told as the proxy's doing. Its
// password stands in no error.
func TestProxy(t *testing.T) {
	ours := newPKI(t)
	behind := ours.server(t, answers(), nil)
	// No test listens on a port this low, so no other one gets it meanwhile.
	const closed = "http://127.0.0.1:1"
	const login = "me:s3cret-pw"
	for name, c := range map[string]struct {
		proxy *connectProxy
		at    string // in place of where the proxy listens
		user  string
		base  string
		want  string // the answer, or what the error tells
		fails bool
		again bool // it would be tried again
	}{
		"TLS through it":        {base: "https://far.invalid", want: "yes"},
		"TLS, with a login":     {proxy: &connectProxy{login: login}, user: login + "@", base: "https://far.invalid", want: "yes"},
		"plain":                 {base: "http://far.invalid", want: "by way of the proxy"},
		"plain, with a login":   {proxy: &connectProxy{login: login}, user: login + "@", base: "http://far.invalid", want: "by way of the proxy"},
		"no login":              {proxy: &connectProxy{login: login}, base: "https://far.invalid", want: "the proxy wants a name and a password|HTTPS_PROXY", fails: true},
		"a wrong login":         {proxy: &connectProxy{login: login}, user: "me:other-s3cret-pw@", base: "https://far.invalid", want: "or refuses those it was given (407)", fails: true},
		"plain, a wrong login":  {proxy: &connectProxy{login: login}, user: "me:other-s3cret-pw@", base: "http://far.invalid", want: "or refuses those it was given (407)|HTTP_PROXY", fails: true},
		"it does not let pass":  {proxy: &connectProxy{status: 403}, user: login + "@", base: "https://far.invalid", want: "the proxy does not let it through (403)|NO_PROXY", fails: true},
		"it cannot connect":     {proxy: &connectProxy{status: 502}, user: login + "@", base: "https://far.invalid", want: "the proxy answered 502 Bad Gateway", fails: true, again: true},
		"nobody listens":        {at: closed, user: login + "@", base: "https://far.invalid", want: "the proxy before it does not answer|HTTPS_PROXY", fails: true, again: true},
		"nobody listens, plain": {at: closed, user: login + "@", base: "http://far.invalid", want: "the proxy before it does not answer|HTTPS_PROXY", fails: true, again: true},
		"no such host":          {at: "http://no-such-proxy.invalid:1", user: login + "@", base: "https://far.invalid", want: "the proxy", fails: true, again: false},
		"another host behind":   {base: "https://other.invalid", want: "its certificate is not valid: it is for another host", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.proxy == nil {
				c.proxy = &connectProxy{}
			}
			c.proxy.to = behind.Listener.Addr().String()
			proxy := httptest.NewServer(c.proxy)
			defer proxy.Close()
			at := proxy.URL
			if c.at != "" {
				at = c.at
			}
			at = strings.Replace(at, "://", "://"+c.user, 1)
			got, err := get(t, c.base, HTTPConfig{CAFile: ours.file, Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(at) }})
			if c.fails {
				wantTrouble(t, err, c.want, "s3cret-pw")
				var f *Failure
				if !domain.HasCode(err, domain.Unavailable) || !errors.As(err, &f) || f.Retry != c.again && name != "no such host" {
					t.Errorf("%v", err)
				}
				return
			}
			if got != c.want || err != nil || c.proxy.asked.Load() != 1 {
				t.Errorf("%q, %v, %d requests", got, err, c.proxy.asked.Load())
			}
		})
	}
}

// TestProxy_TLS: a proxy that is itself reached over TLS is trusted like a
// provider, and blamed for its own certificate.
func TestProxy_TLS(t *testing.T) {
	ours, other := newPKI(t), newPKI(t)
	behind := ours.server(t, answers(), nil)
	proxy := other.server(t, &connectProxy{to: behind.Listener.Addr().String()}, nil)
	_, err := get(t, "https://far.invalid", HTTPConfig{CAFile: ours.file, Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }})
	wantTrouble(t, err, "the proxy's certificate is not valid|providers.p.ca_file", "")
}

// TestProxy_Setting: a proxy setting that is no address is told without its
// password.
func TestProxy_Setting(t *testing.T) {
	_, err := get(t, "https://far.invalid", HTTPConfig{Proxy: func(*http.Request) (*url.URL, error) {
		return nil, errors.New(`invalid proxy address "http://me:s3cret-pw@%zz"`)
	}})
	wantTrouble(t, err, "HTTPS_PROXY, HTTP_PROXY|is no address", "s3cret-pw")
}

// TestUnreachable: what is wrong with an address is told.
func TestUnreachable(t *testing.T) {
	plain := httptest.NewServer(answers())
	defer plain.Close()
	_, err := get(t, strings.Replace(plain.URL, "http", "https", 1), HTTPConfig{})
	wantTrouble(t, err, "speaks plain HTTP at an address that begins with https|providers.p.base_url", "")
	for said, want := range map[string]string{
		"<p>no words of HTTP</p>":      "https|speaks plain HTTP at an address that begins with https",
		"\x15\x03\x01\x00\x02\x02\x46": "http|wants https at an address that begins with http",
	} {
		scheme, want, _ := strings.Cut(want, "|")
		_, err := get(t, scheme+"://"+rawServer(t, said), HTTPConfig{})
		wantTrouble(t, err, want+"|providers.p.base_url", "")
	}
}

// rawServer reads the beginning of a request, says the same to everybody, and
// hangs up.
func rawServer(t *testing.T, said string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); served.Wait() })
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 64<<10))
			_, _ = conn.Write([]byte(said))
			_ = conn.Close()
		}
	})
	return l.Addr().String()
}
