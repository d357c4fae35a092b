package certificate

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// recordKey is the key of the record that holds the authority, shared by all servers.
var recordKey = api.Key{Kind: "webhook_authority", Name: "distribution"}

// documentFormat is the format that this program writes.
const documentFormat = 1

// maxAuthorities limits how many authorities are read from the store. There are two around a
// rotation, otherwise one.
const maxAuthorities = 8

// document is the stored form of the keyring.
type document struct {
	Format int `json:"format"`
	// Secret is encrypted.
	Secret      string              `json:"secret"`
	Authorities []authorityDocument `json:"authorities"`
}

type authorityDocument struct {
	Certificate string `json:"certificate"` // PEM
	// PrivateKey is PKCS #8 in base64, encrypted.
	PrivateKey string    `json:"private_key"`
	SignsFrom  time.Time `json:"signs_from"`
}

// secretField is the place that the encrypted secret is bound to.
const secretField = "secret"

// privateKeyField is the place that an encrypted key is bound to, so that keys cannot be exchanged.
func privateKeyField(serial string) string { return "authorities." + serial + ".private_key" }

// encode returns the value of the record.
func (k keyring) encode(sealer Sealer) ([]byte, error) {
	d := document{Format: documentFormat, Secret: sealer.Seal(recordKey, secretField, hex.EncodeToString(k.secret))}
	for _, a := range k.authorities {
		der, err := x509.MarshalPKCS8PrivateKey(a.key)
		if err != nil {
			return nil, fmt.Errorf("encode the key of the webhook's certificate authority: %w", err)
		}
		d.Authorities = append(d.Authorities, authorityDocument{
			Certificate: string(certificatePEM(a.certificate)),
			PrivateKey:  sealer.Seal(recordKey, privateKeyField(a.serial()), base64.StdEncoding.EncodeToString(der)),
			SignsFrom:   a.signsFrom.UTC(),
		})
	}
	return json.Marshal(d) //nolint:gosec // secrets are encrypted
}

// decode decodes the value of the record.
func decode(value []byte, sealer Sealer) (keyring, error) {
	k, err := decodeDocument(value, sealer)
	if err != nil {
		return keyring{}, fmt.Errorf("the certificate authority of the webhook (record %s of kind %s in the store) cannot be read: %w; "+
			"start with the key file it was sealed with, or restore a backup of the store: a new one is not created, because clusters trust this one",
			recordKey.Name, string(recordKey.Kind), err)
	}
	return k, nil
}

func decodeDocument(value []byte, sealer Sealer) (keyring, error) {
	var d document
	if err := json.Unmarshal(value, &d); err != nil {
		return keyring{}, fmt.Errorf("it is not JSON of this form: %w", err)
	}
	switch {
	case d.Format > documentFormat:
		return keyring{}, fmt.Errorf("it has format %d, this program knows formats up to %d: use a newer program", d.Format, documentFormat)
	case d.Format < 1:
		return keyring{}, fmt.Errorf("format is %d, it must be at least 1", d.Format)
	case len(d.Authorities) == 0 || len(d.Authorities) > maxAuthorities:
		return keyring{}, fmt.Errorf("authorities has %d entries, it must have 1 to %d", len(d.Authorities), maxAuthorities)
	}
	text, err := sealer.Unseal(recordKey, secretField, d.Secret)
	if err != nil {
		return keyring{}, err
	}
	var k keyring
	if k.secret, err = hex.DecodeString(text); err != nil || len(k.secret) != sha256.Size {
		return keyring{}, fmt.Errorf("secret must hold %d hexadecimal digits", 2*sha256.Size)
	}
	for i, stored := range d.Authorities {
		a, err := stored.decode(sealer)
		if err != nil {
			return keyring{}, fmt.Errorf("authorities[%d]: %w", i, err)
		}
		if i > 0 && a.signsFrom.Before(k.authorities[i-1].signsFrom) {
			return keyring{}, fmt.Errorf("authorities[%d].signs_from is before that of the one before", i)
		}
		k.authorities = append(k.authorities, a)
	}
	return k, nil
}

func (d authorityDocument) decode(sealer Sealer) (authority, error) {
	block, rest := pem.Decode([]byte(d.Certificate))
	if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 {
		return authority{}, errors.New("certificate must be one certificate in PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return authority{}, fmt.Errorf("certificate: %w", err)
	}
	if !certificate.IsCA {
		return authority{}, errors.New("certificate is not that of a certificate authority")
	}
	a := authority{certificate: certificate, signsFrom: d.SignsFrom}
	text, err := sealer.Unseal(recordKey, privateKeyField(a.serial()), d.PrivateKey)
	if err != nil {
		return authority{}, err
	}
	// The text must not appear in an error.
	errKey := errors.New("private_key must be an ECDSA key in PKCS #8 that belongs to the certificate")
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return authority{}, errKey
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return authority{}, errKey
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(certificate.PublicKey) {
		return authority{}, errKey
	}
	a.key = key
	return a, nil
}
