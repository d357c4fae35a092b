package certexpiry

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func issue(t *testing.T, name string, from, to time.Time) *certtest.Certificate {
	t.Helper()
	return certtest.SelfSigned(t, x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: to})
}

// A warning about a certificate is logged when it is close to expiry, when it has expired, and once a day in between.
// Warnings end when the certificate is renewed.
func TestExpiringCertificatesAreReportedInTime(t *testing.T) {
	now := start
	current := issue(t, "api", start.Add(-time.Hour), start.Add(31*24*time.Hour))
	var failure error
	var text strings.Builder
	m := New([]Source{{Use: "api", Read: func() ([]*x509.Certificate, error) {
		return []*x509.Certificate{current.Certificate}, failure
	}}}, slog.New(slog.NewTextHandler(&text, nil)), func() time.Time { return now })
	lines := func() string {
		text.Reset()
		for range 3 { // each is logged only once
			m.log(t.Context())
		}
		return text.String()
	}
	steps := []struct {
		what  string
		do    func()
		says  string // "" = nothing
		found string
	}{
		{"31 days left", func() {}, "", ""},
		{"29 days left", func() { now = start.Add(2 * 24 * time.Hour) }, "in 29 days", "in 29 days"},
		{"an hour later", func() { now = now.Add(time.Hour) }, "", "in 28 days"},
		{"a day later", func() { now = now.Add(24 * time.Hour) }, "in 27 days", "in 27 days"},
		{"one day left", func() { now = current.NotAfter.Add(-24 * time.Hour) }, "in 24 hours", "in 24 hours"},
		{"expired", func() { now = current.NotAfter.Add(time.Second) }, "level=ERROR", "expired at"},
		{"clock set back", func() { now = start.Add(-2 * time.Hour) }, "not valid before", "not valid before"},
		{"renewed", func() {
			now = start
			current = issue(t, "api", start.Add(-time.Hour), start.Add(365*24*time.Hour))
		}, "no longer needs attention", ""},
		{"unreadable file", func() { failure = errors.New("no such file") }, "no such file", "no such file"},
		{"readable again", func() { failure = nil }, "no longer needs attention", ""},
	}
	for _, s := range steps {
		s.do()
		got := lines()
		if s.says == "" && got != "" || !strings.Contains(got, s.says) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: the log says %q, want one line with %q", s.what, got, s.says)
		}
		findings := m.Findings()
		if len(findings) != 1 || (s.found == "") != (findings[0].Problem == "") || !strings.Contains(findings[0].Problem, s.found) {
			t.Errorf("%s: found %+v, want %q", s.what, findings, s.found)
		}
	}
}

// Every certificate in a file counts. Two that differ only in their serial number, as during the replacement of an
// authority, do not break the metrics.
func TestEveryCertificateOfAFileCounts(t *testing.T) {
	old, next := issue(t, "ca", start.Add(-time.Hour), start.Add(24*time.Hour)), issue(t, "ca", start, start.Add(365*24*time.Hour))
	path := filepath.Join(t.TempDir(), "ca.pem")
	var data []byte
	for _, c := range []*certtest.Certificate{old, next, next} {
		data = append(data, c.PEM()...)
	}
	data = append(data, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("no certificate")})...)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m := New([]Source{{Use: "client_ca", Read: File(path)}, {Use: "none", Read: File(path + ".none")}}, slog.New(slog.DiscardHandler), func() time.Time { return start })
	problems := 0
	for _, f := range m.Findings() {
		if f.Problem != "" {
			problems++
		}
	}
	if findings := m.Findings(); len(findings) != 4 || problems != 2 {
		t.Errorf("unexpected findings %+v", findings)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Errorf("metrics %v, %v, want 2", families, err)
	}
}
