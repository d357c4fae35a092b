// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// Certificate is a certificate and its key.
type Certificate struct {
	*x509.Certificate

	key    *ecdsa.PrivateKey
	keyDER []byte
}

// Authority makes a certificate authority.
func Authority(t testing.TB) *Certificate {
	t.Helper()
	return SelfSigned(t, x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

// Loopback is the template of a certificate for 127.0.0.1, good for servers and clients.
func Loopback(name string) x509.Certificate {
	return x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// SelfSigned makes a certificate that is its own authority.
func SelfSigned(t testing.TB, template x509.Certificate) *Certificate {
	t.Helper()
	return must(t)(Sign(template, nil))
}

// Issue makes a certificate with c as its authority.
func (c *Certificate) Issue(t testing.TB, template x509.Certificate) *Certificate {
	t.Helper()
	return must(t)(Sign(template, c))
}

func must(t testing.TB) func(*Certificate, error) *Certificate {
	return func(c *Certificate, err error) *Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// Sign makes a certificate with by as its authority. If by is nil, it is its own. If the template names no serial
// number, it is random. If it names no end, the certificate is valid from an hour ago for a day.
func Sign(template x509.Certificate, by *Certificate) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber == nil {
		if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126)); err != nil {
			return nil, err
		}
	}
	if template.NotAfter.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
		template.NotAfter = template.NotBefore.Add(24 * time.Hour)
	}
	parent, parentKey := &template, key
	if by != nil {
		parent, parentKey = by.Certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &Certificate{Certificate: parsed, key: key, keyDER: keyDER}, nil
}

// PEM is the certificate as files have it.
func (c *Certificate) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// KeyPEM is the private key as files have it.
func (c *Certificate) KeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: c.keyDER})
}

// TLS is the certificate and its key, to show to the other side of a connection.
func (c *Certificate) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: c.key}
}

// Pool trusts the certificate and what it has issued, and nothing else.
func (c *Certificate) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.Certificate)
	return pool
}

// Write writes the certificate and its key to files, the key first: programs that reload both when the certificate
// changes find its key.
func (c *Certificate) Write(t testing.TB, certFile, keyFile string) {
	t.Helper()
	Write(t, keyFile, c.KeyPEM())
	Write(t, certFile, c.PEM())
}

// Write writes a file that only its owner can read.
func Write(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
