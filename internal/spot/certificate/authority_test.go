package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

func bundleOf(a *Authority) string {
	bundle, _ := a.Bundle()
	return string(bundle)
}

func pool(t testing.TB, bundle []byte) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(bundle) {
		t.Fatalf("no certificate in the bundle %q", bundle)
	}
	return p
}

// shake connects to the webhook as a cluster that trusts a bundle does.
func shake(t *testing.T, a *Authority, bundle []byte, host string, version uint16) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", a.TLSConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, conn) // completes the handshake, and waits for the end
			_ = conn.Close()
		}
	}()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return tls.Client(conn, &tls.Config{RootCAs: pool(t, bundle), ServerName: host, MaxVersion: version}).HandshakeContext(t.Context())
}

func TestClustersTrustTheWebhook(t *testing.T) {
	a := opened(t, &memory{}, "127.0.0.1", "scheduler.example.com", "2001:db8::1")
	bundle, _ := a.Bundle()
	cases := []struct {
		host    string
		version uint16
		trusted bool
	}{
		{"127.0.0.1", tls.VersionTLS13, true},
		{"127.0.0.1", tls.VersionTLS12, true},
		{"127.0.0.1", tls.VersionTLS11, false},
		{"scheduler.example.com", tls.VersionTLS13, true},
		{"2001:db8::1", tls.VersionTLS13, true},
		{"127.0.0.2", tls.VersionTLS13, false},
		{"other.example.com", tls.VersionTLS13, false},
	}
	for _, c := range cases {
		if err := shake(t, a, bundle, c.host, c.version); (err == nil) != c.trusted {
			t.Errorf("%s with TLS version %x: %v", c.host, c.version, err)
		}
	}
	other, _ := opened(t, &memory{}).Bundle()
	if err := shake(t, a, other, "127.0.0.1", tls.VersionTLS13); err == nil {
		t.Error("a client with the bundle of another server trusts this one")
	}
}

func TestRestartChangesNothing(t *testing.T) {
	s := &memory{}
	first := opened(t, s)
	again := opened(t, s)
	if bundleOf(first) != bundleOf(again) {
		t.Error("the authority changed after a restart")
	}
	secret := first.Secret("uid-1")
	if again.Secret("uid-1") != secret {
		t.Error("the secret of a cluster changed after a restart")
	}
	if _, err := hex.DecodeString(secret); err != nil || len(secret) != 32 {
		t.Errorf("secret with %d characters, %v; want 32 hexadecimal digits", len(secret), err)
	}
	if first.Secret("uid-2") == secret {
		t.Error("two clusters have the same secret")
	}
	if opened(t, &memory{}).Secret("uid-1") == secret {
		t.Error("two servers have the same secret for a cluster")
	}
	if s.commits != 1 {
		t.Errorf("%d writes, want 1", s.commits)
	}
}

func TestSecretsAreUnknownBeforeOpen(t *testing.T) {
	options := Options{Store: &memory{}, Sealer: newSealer(t, 1), Hosts: []string{"a.example.com"}}
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if a.Secret("uid-1") == b.Secret("uid-1") {
		t.Error("the secret does not depend on the authority")
	}
	if _, err := a.TLSConfig().GetCertificate(&tls.ClientHelloInfo{}); err == nil {
		t.Error("a certificate is served before one was issued")
	}
}

func TestOtherHostsGetAnotherCertificateAtOnce(t *testing.T) {
	s := &memory{}
	before := opened(t, s, "old.example.com")
	after := opened(t, s, "10.1.2.3")
	bundle, _ := before.Bundle()
	if err := shake(t, after, bundle, "10.1.2.3", tls.VersionTLS13); err != nil {
		t.Errorf("new address: %v", err)
	}
	if err := shake(t, after, bundle, "old.example.com", tls.VersionTLS13); err == nil {
		t.Error("the certificate is still valid for the old name")
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	good := Options{Store: &memory{}, Sealer: newSealer(t, 1), Hosts: []string{"a.example.com"}}
	cases := map[string]func(*Options){
		"no store":          func(o *Options) { o.Store = nil },
		"no sealer":         func(o *Options) { o.Sealer = nil },
		"no host":           func(o *Options) { o.Hosts = nil },
		"host with a port":  func(o *Options) { o.Hosts = []string{"a.example.com:8443"} },
		"address of a page": func(o *Options) { o.Hosts = []string{"https://a.example.com"} },
		"empty host":        func(o *Options) { o.Hosts = []string{""} },
	}
	for name, change := range cases {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("New() accepts %s", name)
		}
	}
}

func TestServersThatStartTogetherAgree(t *testing.T) {
	s := &memory{}
	authorities := make([]*Authority, 8)
	var group sync.WaitGroup
	for i := range authorities {
		group.Go(func() {
			a, err := New(Options{Store: s, Sealer: newSealer(t, 1), Hosts: []string{"127.0.0.1"}})
			if err == nil {
				err = a.Open(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			authorities[i] = a
		})
	}
	group.Wait()
	for _, a := range authorities {
		if bundleOf(a) != bundleOf(authorities[0]) || a.Secret("uid") != authorities[0].Secret("uid") {
			t.Fatal("two servers with one store have different authorities or secrets")
		}
	}
	if s.commits != 1 {
		t.Errorf("%d writes, want 1", s.commits)
	}
}

func TestPrivateKeysAreSealed(t *testing.T) {
	s := &memory{}
	a := opened(t, s)
	der, err := x509.MarshalPKCS8PrivateKey(a.ring.authorities[0].key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"private key": base64.StdEncoding.EncodeToString(der), "secret": hex.EncodeToString(a.ring.secret), "PEM": "PRIVATE KEY---",
	} {
		if strings.Contains(string(s.value), text) {
			t.Errorf("the stored record contains the %s", name)
		}
	}
}

func TestAuthorityComesBackFromABackup(t *testing.T) {
	dir := t.TempDir()
	codec, err := store.OpenCodec(filepath.Join(dir, "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	start := func(dataDir string) (*store.Store, *Authority) {
		s, err := store.Open(t.Context(), store.Options{DataDir: dataDir, NoFsync: true, MinFreeBytes: 1 << 20, RequestTimeout: storetest.Patience, Patience: storetest.Patience, Fatal: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		a, err := New(Options{Store: s, Sealer: codec, Hosts: []string{"127.0.0.1"}})
		if err == nil {
			err = a.Open(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return s, a
	}
	s, before := start(filepath.Join(dir, "old"))
	var archive bytes.Buffer
	if err := s.Backup(t.Context(), &archive, nil); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(archive.Bytes(), bytes.TrimSpace(key)) {
		t.Error("the backup contains the sealing key")
	}
	if err := store.Restore(t.Context(), &archive, filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	_, after := start(filepath.Join(dir, "new"))
	if bundleOf(before) != bundleOf(after) || before.Secret("uid") != after.Secret("uid") {
		t.Error("the restored store has a different authority or secret")
	}
}

func TestRemainingTimeIsMeasured(t *testing.T) {
	a, err := New(Options{Store: &memory{}, Sealer: newSealer(t, 1), Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	for _, c := range a.Collectors() {
		registry.MustRegister(c)
	}
	seconds := func() float64 {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatalf("got %v, %v", families, err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	if got := seconds(); got != 0 {
		t.Errorf("%v seconds before the first certificate, want 0", got)
	}
	if err := a.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := seconds(); got < (servingLife-day).Seconds() || got > servingLife.Seconds() {
		t.Errorf("%v seconds left of a new certificate", got)
	}
}
