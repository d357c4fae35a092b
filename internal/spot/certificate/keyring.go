package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/ca"
)

// authority is one certificate authority with its key.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// signsFrom is when it takes over from the previous one.
	signsFrom time.Time
}

func (a authority) serial() string { return a.certificate.SerialNumber.Text(16) }

// keyring is what all servers of a store share. It is not modified in place.
type keyring struct {
	secret      []byte
	authorities []authority // in the order in which they sign
}

// newKeyring returns the keyring for a store that has none.
func newKeyring(now time.Time) (keyring, error) {
	first, err := issueAuthority(now, now)
	if err != nil {
		return keyring{}, err
	}
	return keyring{secret: newSecret(), authorities: []authority{first}}, nil
}

// rotated returns the keyring that should be in use at a time, and whether it has changed.
func (k keyring) rotated(now time.Time) (next keyring, changed bool, err error) {
	next = keyring{secret: k.secret}
	for i, a := range k.authorities {
		if i+1 < len(k.authorities) && gone(a, k.authorities[i+1], now) {
			changed = true
			continue
		}
		next.authorities = append(next.authorities, a)
	}
	newest := next.authorities[len(next.authorities)-1].certificate
	if now.Before(newest.NotAfter.Add(-authorityLife / 3)) {
		return next, changed, nil
	}
	signsFrom := now.Add(announcement)
	if last := newest.NotAfter.Add(-ca.Skew); signsFrom.After(last) {
		// No server ran for years, so there is no time to announce it.
		signsFrom = last
	}
	if signsFrom.Before(now) {
		signsFrom = now
	}
	added, err := issueAuthority(now, signsFrom)
	if err != nil {
		return keyring{}, false, err
	}
	next.authorities = append(next.authorities, added)
	return next, true, nil
}

// gone reports whether no certificate of an authority can be in use anymore.
func gone(a, successor authority, now time.Time) bool {
	lastServed := successor.signsFrom.Add(servingLife)
	if a.certificate.NotAfter.Before(lastServed) {
		lastServed = a.certificate.NotAfter
	}
	return !now.Before(lastServed.Add(margin))
}

// signer returns the authority that signs at a time. Before the first one's time, if the clock was
// set back, it is the first.
func (k keyring) signer(now time.Time) authority {
	signer := k.authorities[0]
	for _, a := range k.authorities[1:] {
		if !now.Before(a.signsFrom) {
			signer = a
		}
	}
	return signer
}

// has reports whether an authority is in the keyring.
func (k keyring) has(serial string) bool {
	return slices.ContainsFunc(k.authorities, func(a authority) bool { return a.serial() == serial })
}

// bundle returns the PEM of all authorities.
func (k keyring) bundle() []byte {
	var out bytes.Buffer
	for _, a := range k.authorities {
		out.Write(certificatePEM(a.certificate))
	}
	return out.Bytes()
}

func certificatePEM(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}
