package jwt

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
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
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key})
		}
	}
	if set = Usable(set); len(set.Keys) < len(texts) {
		return fixed{}, errors.New("an RSA key must have at least 2048 bits")
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

// Usable returns the keys of a set that can verify a signature safely, without symmetric and private keys, and RSA keys
// shorter than 2048 bits (NIST SP 800-131A).
func Usable(set jose.JSONWebKeySet) jose.JSONWebKeySet {
	var out jose.JSONWebKeySet
	for _, key := range set.Keys {
		if key.Valid() && key.IsPublic() && strong(key.Key) {
			out.Keys = append(out.Keys, key)
		}
	}
	return out
}

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
