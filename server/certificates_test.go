package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// writeCertificate replaces a certificate for 127.0.0.1 and its key.
func writeCertificate(t *testing.T, certificateFile, keyFile string, notAfter time.Time) {
	t.Helper()
	template := certtest.Loopback("scheduler-server")
	template.NotBefore, template.NotAfter = notAfter.Add(-365*24*time.Hour), notAfter
	certtest.SelfSigned(t, template).Write(t, certificateFile, keyFile)
}

// A certificate that has expired, or expires tomorrow, causes a warning in the log, the metrics and the readiness
// checks, which still pass. Renewing it ends the warning without a restart.
func TestExpiringCertificatesAreLogged(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	tomorrow := time.Now().Add(24 * time.Hour)
	writeCertificate(t, certificate, key, tomorrow)

	c := testConfig(t.TempDir())
	c.TLSCertFile, c.TLSKeyFile = certificate, key
	c.WebhookListen = "127.0.0.1:0"
	s := start(t, c)
	ask := func(path string) (int, string) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it may have expired
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	expect := func(what string, lines ...string) {
		t.Helper()
		var status int
		var text, shown string
		eventually.True(t, what, func() bool {
			status, text = ask("/readyz?verbose")
			for _, line := range lines {
				if !strings.Contains(text, line) {
					if text != shown {
						t.Logf("no %q yet in %s", line, text)
						shown = text
					}
					return false
				}
			}
			return true
		})
		if status != http.StatusOK || !strings.HasSuffix(text, "readyz check passed\n") {
			t.Errorf("%s: unexpected answer %d %s", what, status, text)
		}
	}
	expect("a certificate that ends tomorrow", "[+]running ok", "[+]loaded ok", "[+]store ok", "[!]certificate api warning: CN=scheduler-server expires at ",
		"[+]certificate webhook ok", "[+]certificate webhook_ca ok")
	if status, text := ask("/readyz"); status != http.StatusOK || text != "ok\n" {
		t.Errorf("/readyz: got %d %q, want 200 ok", status, text)
	}
	eventually.True(t, "the log contains the warning", func() bool {
		return strings.Contains(s.logs.String(), "a certificate of the server needs attention")
	})
	if _, text := ask("/metrics"); !strings.Contains(text, `scheduler_certificate_expiry_timestamp_seconds{certificate="api",`) {
		t.Error("no metric for the certificate")
	}
	writeCertificate(t, certificate, key, time.Now().Add(-time.Hour))
	expect("an expired one", "[!]certificate api warning: CN=scheduler-server expired at ")
	writeCertificate(t, certificate, key, time.Now().Add(200*24*time.Hour))
	expect("a renewed one", "[+]certificate api ok")

	// An expired certificate does not prevent the server from starting and warning.
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, certificate, key, time.Now().Add(-time.Hour))
	s = start(t, c)
	expect("an expired one at the start", "[!]certificate api warning: CN=scheduler-server expired at ")
}

// With verbose, readiness names the check that fails.
func TestReadinessListsItsChecks(t *testing.T) {
	t.Parallel()
	s, p := behindProxy(t)
	p.Down(t)
	eventually.True(t, "a failing check", func() bool {
		a := s.ask(http.MethodGet, "/readyz?verbose", "", "")
		return a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "[+]loaded ok\n") && strings.Contains(a.body, "\n[-]store error: the store is unavailable: ") &&
			strings.HasSuffix(a.body, "readyz check failed\n")
	})
	p.Up(t)
	eventually.True(t, "all checks pass", func() bool {
		a := s.ask(http.MethodGet, "/readyz?verbose", "", "")
		return a.status == http.StatusOK && strings.Contains(a.body, "[+]store ok\n")
	})
}
