package bootstrap

import (
	"bytes"
	"crypto/tls"
	"os"
	"testing"
	"time"
)

// TestCertificates: a renewed certificate is used within a minute; one that
// cannot be used changes nothing and is told once.
func TestCertificates(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cert, key := certificate(t, dir)
	c, err := loadCertificates(cert, key, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	renewed, failed := 0, 0
	c.changed = func(_ *tls.Certificate, err error) {
		if err != nil {
			failed++
		} else {
			renewed++
		}
	}
	current := func() []byte {
		pair, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	first := current()
	certificate(t, dir)
	if !bytes.Equal(current(), first) || renewed != 0 {
		t.Error("the files are looked at with every handshake")
	}
	now = now.Add(certificatePoll)
	second := current()
	if bytes.Equal(second, first) || renewed != 1 {
		t.Errorf("the renewed one is not used; %d renewals were told", renewed)
	}
	if err := os.WriteFile(cert, []byte("half a cert"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		now = now.Add(certificatePoll)
		if !bytes.Equal(current(), second) {
			t.Error("one that cannot be used is used")
		}
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	now = now.Add(certificatePoll)
	if !bytes.Equal(current(), second) || failed != 1 || renewed != 1 {
		t.Errorf("%d failures and %d renewals were told", failed, renewed)
	}
	certificate(t, dir)
	now = now.Add(certificatePoll)
	if bytes.Equal(current(), second) || renewed != 2 {
		t.Errorf("%d renewals were told", renewed)
	}
	if _, err := loadCertificates(cert+"x", key, time.Now); err == nil {
		t.Error("a file that is not there was read")
	}
}
