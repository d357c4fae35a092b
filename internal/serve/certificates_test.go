package serve_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.sign(template, nil)
	return a
}

func (a *authority) sign(template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, parentKey := template, key
	if by != nil {
		parent, parentKey = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// issue writes a certificate and its key to files.
func (a *authority) issue(name, certFile, keyFile string, notAfter time.Time) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, key := a.sign(template, a)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	write(a.t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	write(a.t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// secured is a server with a certificate.
type secured struct {
	address string
	logs    *logtest.Buffer
}

// serveTLS serves with the certificate of files until the test ends.
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
	// Under TLS 1.3 the server looks at the client's certificate after the
	// client believes to be done.
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
	ca, other := newAuthority(t), newAuthority(t)
	ca.issue("first", certFile, keyFile, time.Now().Add(time.Hour))
	// Each look at the clock finds that it is time to look at the files.
	var looks atomic.Int64
	now := func() time.Time { return time.Unix(0, 0).Add(time.Duration(looks.Add(1)) * time.Hour) }
	s := serveTLS(t, serve.Files{CertFile: certFile, KeyFile: keyFile}, now)
	trusting := &tls.Config{RootCAs: ca.pool()}

	if subject, err := s.handshake(trusting); err != nil || subject != "first" {
		t.Fatalf("subject %q, %v", subject, err)
	}
	if _, err := s.handshake(&tls.Config{RootCAs: other.pool()}); err == nil {
		t.Error("a client that trusts another authority connects")
	}
	if _, err := s.handshake(&tls.Config{RootCAs: ca.pool(), MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is taken")
	}

	// A certificate whose key has not been written yet leaves the old one.
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ca.issue("second", certFile, filepath.Join(dir, "later.key"), time.Now().Add(time.Hour))
	if subject, err := s.handshake(trusting); err != nil || subject != "first" || !strings.Contains(s.logs.String(), "not reloaded") {
		t.Errorf("halfway: subject %q, %v", subject, err)
	}
	later, err := os.ReadFile(filepath.Join(dir, "later.key"))
	if err != nil || string(later) == string(key) {
		t.Fatal(err)
	}
	write(t, keyFile, later)
	if subject, err := s.handshake(trusting); err != nil || subject != "second" {
		t.Errorf("renewed: subject %q, %v", subject, err)
	}
}

func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca, other := newAuthority(t), newAuthority(t)
	ca.issue("server", file("tls.crt"), file("tls.key"), time.Now().Add(time.Hour))
	write(t, file("clients.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}))
	s := serveTLS(t, serve.Files{CertFile: file("tls.crt"), KeyFile: file("tls.key"), ClientCAFile: file("clients.crt")}, time.Now)
	tests := []struct {
		name  string
		certs []tls.Certificate
		works bool
	}{
		{"good", []tls.Certificate{ca.issue("client", file("a"), file("b"), time.Now().Add(time.Hour))}, true},
		{"none", nil, false},
		{"expired", []tls.Certificate{ca.issue("client", file("a"), file("b"), time.Now().Add(-time.Hour))}, false},
		{"another authority", []tls.Certificate{other.issue("client", file("a"), file("b"), time.Now().Add(time.Hour))}, false},
	}
	for _, test := range tests {
		if _, err := s.handshake(&tls.Config{RootCAs: ca.pool(), Certificates: test.certs}); (err == nil) != test.works {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestTLSFilesThatDoNotWork(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca := newAuthority(t)
	ca.issue("server", file("tls.crt"), file("tls.key"), time.Now().Add(time.Hour))
	ca.issue("other", file("other.crt"), file("other.key"), time.Now().Add(time.Hour))
	write(t, file("empty"), nil)
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
