package storetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Addresses reserves addresses for n members of a cluster, for as long as this process runs and nobody else takes
// them: each has an IP address that others do not use, from which no connection goes out.
func Addresses(t testing.TB, n int) []string {
	t.Helper()
	list := make([]string, n)
	for i := range list {
		var drawn [2]byte
		_, _ = rand.Read(drawn[:]) // never fails
		host := fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, drawn[0], 1+drawn[1]%250)
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		list[i] = listener.Addr().String()
		_ = listener.Close()
	}
	return list
}

// Certificate is a certificate with its key and the authority that issued it, in files.
type Certificate struct{ CertFile, KeyFile, CAFile string }

// NewCertificate issues a certificate, by an authority of its own, with which the servers at some loopback addresses
// know each other.
func NewCertificate(t testing.TB, addresses ...string) Certificate {
	t.Helper()
	authorityKey, key := newKey(t), newKey(t)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "scheduler-server"}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		leaf.IPAddresses = append(leaf.IPAddresses, net.ParseIP(host))
	}
	dir := t.TempDir()
	c := Certificate{filepath.Join(dir, "peer.crt"), filepath.Join(dir, "peer.key"), filepath.Join(dir, "ca.crt")}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		c.CAFile:   {Type: "CERTIFICATE", Bytes: issue(t, authority, authority, authorityKey, authorityKey)},
		c.CertFile: {Type: "CERTIFICATE", Bytes: issue(t, leaf, authority, key, authorityKey)},
		c.KeyFile:  {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func issue(t testing.TB, certificate, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
