package bootstrap

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
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
	third := current()
	certificate(t, dir)
	if c.refresh(); bytes.Equal(current(), third) || renewed != 3 {
		t.Errorf("who asks waits for a minute; %d renewals were told", renewed)
	}
	if _, err := loadCertificates(cert+"x", key, time.Now); err == nil {
		t.Error("a file that is not there was read")
	}
}

// What is wrong with a certificate's time is told before clients find out.
func TestDoubts(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	leaf := &x509.Certificate{NotBefore: from, NotAfter: from.AddDate(0, 3, 0)}
	for _, tt := range []struct {
		name string
		now  time.Time
		why  string
		good bool
	}{
		{"good", from.AddDate(0, 1, 0), "", true},
		{"not yet", from.Add(-time.Second), "not good before 2026-01-01", false},
		{"nearly over", leaf.NotAfter.Add(-soon + time.Second), "good until 2026-04-01 00:00 UTC; renew", true},
		{"over", leaf.NotAfter.Add(time.Second), "was good until 2026-04-01", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			why, good := doubts(leaf, tt.now)
			if good != tt.good || (why == "") != (tt.why == "") || !strings.Contains(why, tt.why) {
				t.Errorf("%q and %v, want %q and %v", why, good, tt.why, tt.good)
			}
		})
	}
}

// The daemon tells of a certificate that is over, and takes a renewed one when
// it is asked to reload, whatever is wrong with the configuration.
func TestDaemon_Certificates(t *testing.T) {
	w := written{t, t.TempDir()}
	cert, key := certificate(t, w.dir)
	d, log := w.daemonOf("tls_cert = \""+cert+"\"\ntls_key = \""+key+"\"\n", WithClock(func() time.Time { return time.Now().AddDate(0, 0, 1) }))
	before := d.Info().Fingerprint
	certificate(t, w.dir)
	w.set("[gateway\n")
	if err := d.Reload(); err == nil {
		t.Error("a broken configuration was taken")
	}
	if d.Info().Fingerprint == before {
		t.Error("the certificate is the old one")
	}
	if got, want := d.app.opts.metrics.Text(), fmt.Sprintf("berth_gateway_certificate_expiry_timestamp_seconds %v\n", float64(d.server.certificates.ends().Unix())); !bytes.Contains(got, []byte(want)) {
		t.Errorf("a scrape lacks %s", want)
	}
	if err := d.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); strings.Count(got, "the certificate was good until") != 2 || !strings.Contains(got, "the certificate was renewed") {
		t.Errorf("the log:\n%s", got)
	}
}
