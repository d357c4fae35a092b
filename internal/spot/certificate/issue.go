package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/ca"
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
)

// issueAuthority creates a certificate authority.
func issueAuthority(now, signsFrom time.Time) (authority, error) {
	made, err := ca.New("scheduler webhook authority "+now.UTC().Format(time.DateOnly), now, authorityLife)
	return authority{certificate: made.Certificate, key: made.Key, signsFrom: signsFrom}, err
}

// servingCertificate is the certificate that the webhook presents to clusters.
type servingCertificate struct {
	pair   tls.Certificate
	signer string // serial number of the authority
}

// issueServing issues a serving certificate, which does not outlive its authority.
func issueServing(by authority, hosts []string, now time.Time) (*servingCertificate, error) {
	issuer := ca.Authority{Certificate: by.certificate, Key: by.key}
	pair, err := issuer.Issue("scheduler webhook", hosts, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, now, servingLife)
	if err != nil {
		return nil, err
	}
	return &servingCertificate{pair: pair, signer: by.serial()}, nil
}

// renewAt returns when two thirds of the certificate's validity have passed.
func (s *servingCertificate) renewAt() time.Time {
	leaf := s.pair.Leaf
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 3 * 2)
}
