package bootstrap

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
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
		c.looked = now
		if fresh := c.stat(); !sameFile(fresh[0], c.seen[0]) || !sameFile(fresh[1], c.seen[1]) {
			err := c.load()
			c.changed(c.pair, err)
		}
	}
	return c.pair, nil
}

// sameFile reports whether a file is as it was. One that is not there now is
// on its way.
func sameFile(now, before os.FileInfo) bool {
	if now == nil || before == nil {
		return now == nil
	}
	return os.SameFile(now, before) && now.Size() == before.Size() && now.ModTime().Equal(before.ModTime())
}
