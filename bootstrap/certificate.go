package bootstrap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// certificatePoll is how often handshakes look whether the files changed.
const certificatePoll = time.Minute

// certificates is the gateway's certificate, which follows its files: they are
// renewed every few weeks, and nobody restarts for that.
type certificates struct {
	cert, key string
	now       func() time.Time
	changed   func(*tls.Certificate, error) // told of a renewal, and of one that cannot be used

	mu     sync.Mutex
	pair   *tls.Certificate
	seen   [2]os.FileInfo
	looked time.Time
}

// loadCertificates reads the files for the first time.
func loadCertificates(cert, key string, now func() time.Time) (*certificates, error) {
	c := &certificates{cert: cert, key: key, now: now, changed: func(*tls.Certificate, error) {}}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("gateway.tls_cert and gateway.tls_key: %w", err)
	}
	c.looked = now()
	return c, nil
}

// load reads the files. What there was stays when they cannot be used.
func (c *certificates) load() error {
	c.seen = c.stat()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.pair = &pair
	return nil
}

func (c *certificates) stat() (infos [2]os.FileInfo) {
	for i, name := range []string{c.cert, c.key} {
		infos[i], _ = os.Stat(name)
	}
	return infos
}

// get is the certificate for a handshake.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= certificatePoll || now.Before(c.looked) {
		c.look(now)
	}
	return c.pair, nil
}

// refresh looks at the files now.
func (c *certificates) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look(c.now())
}

// look takes over the files if they changed. The caller holds the mutex.
func (c *certificates) look(now time.Time) {
	c.looked = now
	if fresh := c.stat(); !sameFile(fresh[0], c.seen[0]) || !sameFile(fresh[1], c.seen[1]) {
		err := c.load()
		c.changed(c.pair, err)
	}
}

// ends is when the certificate stops to be good.
func (c *certificates) ends() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pair.Leaf.NotAfter
}

// soon is how long before its end a certificate is called old: those that are
// renewed by themselves were renewed by then.
const soon = 14 * 24 * time.Hour

// doubts says what clients will not like about the time of a certificate; ""
// when there is nothing. good is whether they take it all the same.
func doubts(leaf *x509.Certificate, now time.Time) (why string, good bool) {
	const form = "2006-01-02 15:04 MST"
	switch {
	case now.After(leaf.NotAfter):
		return "the certificate was good until " + leaf.NotAfter.UTC().Format(form) + ", so clients refuse it; renew gateway.tls_cert", false
	case now.Before(leaf.NotBefore):
		return "the certificate is not good before " + leaf.NotBefore.UTC().Format(form) + ", so clients refuse it; check gateway.tls_cert and the clock of this machine", false
	case now.Add(soon).After(leaf.NotAfter):
		return "the certificate is good until " + leaf.NotAfter.UTC().Format(form) + "; renew gateway.tls_cert before that", true
	}
	return "", true
}

// sameFile reports whether a file is as it was. One that is not there now is
// on its way.
func sameFile(now, before os.FileInfo) bool {
	if now == nil || before == nil {
		return now == nil
	}
	return os.SameFile(now, before) && now.Size() == before.Size() && now.ModTime().Equal(before.ModTime())
}

// renewed tells of another certificate, also those who know the gateway by it.
func (s *daemonServer) renewed(now *tls.Certificate, err error) {
	ctx := context.Background()
	if err == nil && s.gateway.ready.Load() { // at the end the file is taken away
		info := *s.info.Load()
		info.Fingerprint = fingerprint(now.Certificate[0])
		s.info.Store(&info)
		err = announce(s.cfg.DataDir, info, s.keys.bridge)
	}
	if err != nil {
		s.gateway.observer.Observe(ctx, domain.Trouble{Where: "gateway: the renewed certificate", Err: err})
		return
	}
	s.gateway.observer.Observe(ctx, domain.Noted{What: "the certificate was renewed"})
	s.doubt(ctx, now)
}

// doubt tells what clients will not like about a certificate.
func (s *daemonServer) doubt(ctx context.Context, c *tls.Certificate) {
	switch why, good := doubts(c.Leaf, s.gateway.clock()); {
	case why == "":
	case good:
		s.gateway.observer.Observe(ctx, domain.Noted{What: why})
	default:
		s.gateway.observer.Observe(ctx, domain.Trouble{Where: why})
	}
}
