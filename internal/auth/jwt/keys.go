package jwt

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"

	"github.com/go-jose/go-jose/v4"
)

// fixed is a set of keys that never changes.
type fixed struct{ set jose.JSONWebKeySet }

// Keys implements Keys.
func (f fixed) Keys(context.Context, func(jose.JSONWebKeySet) bool) (jose.JSONWebKeySet, error) {
	return f.set, nil
}

// parsePublicKeys parses PEM public keys and certificates.
func parsePublicKeys(texts []string) (fixed, error) {
	var set jose.JSONWebKeySet
	for n, text := range texts {
		block, rest := pem.Decode([]byte(text))
		if block == nil {
			return fixed{}, fmt.Errorf("number %d is not PEM", n+1)
		}
		for ; block != nil; block, rest = pem.Decode(rest) {
			key, err := publicKey(block)
			if err != nil {
				return fixed{}, fmt.Errorf("number %d: %w", n+1, err)
			}
			k := jose.JSONWebKey{Key: key}
			switch {
			case !strong(key):
				return fixed{}, fmt.Errorf("number %d: an RSA key must have at least 2048 bits", n+1)
			case !usable(k):
				return fixed{}, fmt.Errorf("number %d: it is no key for signatures: it must be an RSA, ECDSA (P-256, P-384, P-521) or Ed25519 key", n+1)
			}
			set.Keys = append(set.Keys, k)
		}
	}
	return fixed{set}, nil
}

func publicKey(block *pem.Block) (crypto.PublicKey, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return certificate.PublicKey, nil
	}
	return nil, fmt.Errorf("it is a PEM block of type %q, not PUBLIC KEY or CERTIFICATE", block.Type)
}

// ParseKeySet returns the keys of a JSON Web Key Set (RFC 7517) that can verify a signature safely, and how many it has
// besides: as section 5 of the RFC wants it, a key that is not understood or of no use costs the others nothing.
func ParseKeySet(document []byte) (set jose.JSONWebKeySet, others int, err error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &raw); err != nil {
		return set, 0, errors.New("it is not a JSON object with a list of keys (keys)")
	}
	for _, text := range raw.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(text) != nil || !usable(key) {
			others++
			continue
		}
		set.Keys = append(set.Keys, key)
	}
	if len(set.Keys) == 0 {
		return set, others, fmt.Errorf("the key set has no public key that can be used, and %d others", others)
	}
	return set, others, nil
}

// usable reports whether a key can verify a signature safely: not a symmetric or private key, or an RSA key shorter than
// 2048 bits (NIST SP 800-131A).
func usable(key jose.JSONWebKey) bool { return key.Valid() && key.IsPublic() && strong(key.Key) }

// strong reports whether a key is long enough.
func strong(key any) bool {
	k, ok := key.(*rsa.PublicKey)
	return !ok || k.N.BitLen() >= 2048
}

// equal reports whether two keys are the same.
func equal(a, b jose.JSONWebKey) bool {
	k, ok := a.Key.(interface{ Equal(crypto.PublicKey) bool })
	return ok && a.KeyID == b.KeyID && a.Use == b.Use && k.Equal(b.Key)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
