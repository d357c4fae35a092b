package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	day = 24 * time.Hour
	// authorityLife is the validity of an authority; it is replaced when a third of that is left.
	authorityLife = 10 * 365 * day
	// servingLife is the validity of a serving certificate; it is renewed when two thirds of that
	// have passed.
	servingLife = 90 * day
	// announcement is how long clusters have to fetch a new authority before it signs, and margin
	// how long an old one is kept after its last certificate.
	announcement = day
	margin       = day
	// skew is how far the clock of a cluster may be behind.
	skew = time.Hour
)

// issueAuthority creates a certificate authority.
func issueAuthority(now, signsFrom time.Time) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("make the key of a certificate authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      pkix.Name{Organization: []string{"scheduler-server"}, CommonName: "scheduler webhook authority " + now.UTC().Format(time.DateOnly)},
		NotBefore:    now.Add(-skew), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := sign(template, template, key, key)
	return authority{certificate: certificate, key: key, signsFrom: signsFrom}, err
}

// servingCertificate is the certificate that the webhook presents to clusters.
type servingCertificate struct {
	pair   tls.Certificate
	signer string // serial number of the authority
}

// issueServing issues a serving certificate, which does not outlive its authority.
func issueServing(by authority, hosts []string, now time.Time) (*servingCertificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the webhook's certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      pkix.Name{Organization: []string{"scheduler-server"}, CommonName: "scheduler webhook"},
		NotBefore:    now.Add(-skew), NotAfter: now.Add(servingLife),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if template.NotAfter.After(by.certificate.NotAfter) {
		template.NotAfter = by.certificate.NotAfter
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	certificate, err := sign(template, by.certificate, key, by.key)
	if err != nil {
		return nil, err
	}
	pair := tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate}
	return &servingCertificate{pair: pair, signer: by.serial()}, nil
}

// renewAt returns when two thirds of the certificate's validity have passed.
func (s *servingCertificate) renewAt() time.Time {
	leaf := s.pair.Leaf
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 3 * 2)
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate %q: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

// newSerial returns a random 127-bit number: serial numbers of one authority must be unique,
// whichever server issues the certificate.
func newSerial() *big.Int {
	var bytes [16]byte
	_, _ = rand.Read(bytes[:]) // never fails: crypto/rand crashes the program instead
	bytes[0] &= 0x7f
	bytes[15] |= 1
	return new(big.Int).SetBytes(bytes[:])
}
