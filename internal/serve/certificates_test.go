package serve_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

// issue writes a certificate and its key to files.
func issue(t *testing.T, ca *certtest.Certificate, name, certFile, keyFile string, notAfter time.Time) tls.Certificate {
	t.Helper()
	template := certtest.Loopback(name)
	template.NotBefore, template.NotAfter = time.Now().Add(-2*time.Hour), notAfter
	c := ca.Issue(t, template)
	c.Write(t, certFile, keyFile)
	return c.TLS()
}

// secured is a server with a certificate.
type secured struct {
	address string
	logs    *logtest.Buffer
}

// serveTLS serves with the certificate in the files until the test ends.
func serveTLS(t *testing.T, files serve.Files, now func() time.Time) *secured {
	t.Helper()
	s := &secured{logs: &logtest.Buffer{}}
	logger := slog.New(slog.NewTextHandler(s.logs, nil))
	certificates, err := serve.LoadCertificates(files, logger, now)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serve.Run(ctx, serve.Options{
			Name: "api", Listener: listener, Handler: http.NotFoundHandler(), TLS: certificates.TLS(),
			Connections: serve.NewLimit(serve.LimitOptions{}), HeaderTimeout: time.Minute, DrainTime: time.Minute, Logger: logger,
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return s
}

func (s *secured) handshake(config *tls.Config) (subject string, err error) {
	conn, err := tls.Dial("tcp", s.address, config)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// Under TLS 1.3, the server checks the client's certificate after the client considers the handshake complete.
	if _, err := conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")); err != nil {
		return "", err
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return "", err
	}
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	ca, other := certtest.Authority(t), certtest.Authority(t)
	issue(t, ca, "first", certFile, keyFile, time.Now().Add(time.Hour))
	// Each reading of the clock makes the files due for a check.
	var looks atomic.Int64
	now := func() time.Time { return time.Unix(0, 0).Add(time.Duration(looks.Add(1)) * time.Hour) }
	s := serveTLS(t, serve.Files{CertFile: certFile, KeyFile: keyFile}, now)
	trusting := &tls.Config{RootCAs: ca.Pool()}

	if subject, err := s.handshake(trusting); err != nil || subject != "first" {
		t.Fatalf("subject %q, %v", subject, err)
	}
	if _, err := s.handshake(&tls.Config{RootCAs: other.Pool()}); err == nil {
		t.Error("a client that trusts another authority connected")
	}
	if _, err := s.handshake(&tls.Config{RootCAs: ca.Pool(), MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 was accepted")
	}

	// A certificate whose key has not been written yet is not loaded; the previous one stays.
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	issue(t, ca, "second", certFile, filepath.Join(dir, "later.key"), time.Now().Add(time.Hour))
	if subject, err := s.handshake(trusting); err != nil || subject != "first" || !strings.Contains(s.logs.String(), "not reloaded") {
		t.Errorf("half renewed: subject %q, %v", subject, err)
	}
	later, err := os.ReadFile(filepath.Join(dir, "later.key"))
	if err != nil || string(later) == string(key) {
		t.Fatal(err)
	}
	certtest.Write(t, keyFile, later)
	if subject, err := s.handshake(trusting); err != nil || subject != "second" {
		t.Errorf("renewed: subject %q, %v", subject, err)
	}
}

func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca, other := certtest.Authority(t), certtest.Authority(t)
	issue(t, ca, "server", file("tls.crt"), file("tls.key"), time.Now().Add(time.Hour))
	certtest.Write(t, file("clients.crt"), ca.PEM())
	s := serveTLS(t, serve.Files{CertFile: file("tls.crt"), KeyFile: file("tls.key"), ClientCAFile: file("clients.crt")}, time.Now)
	tests := []struct {
		name  string
		certs []tls.Certificate
		works bool
	}{
		{"valid", []tls.Certificate{issue(t, ca, "client", file("a"), file("b"), time.Now().Add(time.Hour))}, true},
		{"none", nil, false},
		{"expired", []tls.Certificate{issue(t, ca, "client", file("a"), file("b"), time.Now().Add(-time.Hour))}, false},
		{"other authority", []tls.Certificate{issue(t, other, "client", file("a"), file("b"), time.Now().Add(time.Hour))}, false},
	}
	for _, test := range tests {
		if _, err := s.handshake(&tls.Config{RootCAs: ca.Pool(), Certificates: test.certs}); (err == nil) != test.works {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestTLSFilesThatDoNotWork(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca := certtest.Authority(t)
	issue(t, ca, "server", file("tls.crt"), file("tls.key"), time.Now().Add(time.Hour))
	issue(t, ca, "other", file("other.crt"), file("other.key"), time.Now().Add(time.Hour))
	certtest.Write(t, file("empty"), nil)
	for name, options := range map[string]serve.Files{
		"no file":        {CertFile: file("none"), KeyFile: file("tls.key")},
		"no certificate": {CertFile: file("empty"), KeyFile: file("tls.key")},
		"other key":      {CertFile: file("tls.crt"), KeyFile: file("other.key")},
		"no client CA":   {CertFile: file("tls.crt"), KeyFile: file("tls.key"), ClientCAFile: file("empty")},
	} {
		if _, err := serve.LoadCertificates(options, slog.New(slog.DiscardHandler), time.Now); err == nil || !strings.Contains(err.Error(), "TLS") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
