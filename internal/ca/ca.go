// Package ca creates certificate authorities and issues certificates from them.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Skew is how far the clock of a peer may be behind: certificates are valid from that long before they are made.
const Skew = time.Hour

// Authority is a certificate authority.
type Authority struct {
	Certificate *x509.Certificate
	Key         *ecdsa.PrivateKey
}

// New creates an authority.
func New(name string, now time.Time, life time.Duration) (Authority, error) {
	key, err := newKey(name)
	if err != nil {
		return Authority{}, err
	}
	template := certificate(name, now, life)
	template.IsCA, template.MaxPathLenZero, template.KeyUsage = true, true, x509.KeyUsageCertSign
	made, err := sign(template, template, key, key)
	return Authority{Certificate: made, Key: key}, err
}

// Issue issues a certificate with a new key for hosts, which are DNS names and IP addresses. It does
// not outlive the authority.
func (a Authority) Issue(name string, hosts []string, usages []x509.ExtKeyUsage, now time.Time, life time.Duration) (tls.Certificate, error) {
	key, err := newKey(name)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := certificate(name, now, life)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, usages
	if template.NotAfter.After(a.Certificate.NotAfter) {
		template.NotAfter = a.Certificate.NotAfter
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	leaf, err := sign(template, a.Certificate, key, a.Key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// EncodeCertificate returns a certificate as PEM.
func EncodeCertificate(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// EncodeKey returns a private key as PEM, in PKCS #8.
func EncodeKey(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// certificate returns what all certificates have in common.
func certificate(name string, now time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      pkix.Name{Organization: []string{"scheduler-server"}, CommonName: name},
		NotBefore:    now.Add(-Skew), NotAfter: now.Add(life),
		BasicConstraintsValid: true,
	}
}

func newKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the certificate %q: %w", name, err)
	}
	return key, nil
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate %q: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

// newSerial returns a random 127-bit number: serial numbers of one authority must be unique,
// whoever issues the certificate.
func newSerial() *big.Int {
	var bytes [16]byte
	_, _ = rand.Read(bytes[:]) // never fails: crypto/rand crashes the program instead
	bytes[0] &= 0x7f
	bytes[15] |= 1
	return new(big.Int).SetBytes(bytes[:])
}
