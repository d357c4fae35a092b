package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/jsonform"
)

// ErrDamaged is returned for a stored value that cannot be decoded.
var ErrDamaged = errors.New("the stored data is damaged")

// Codec encodes objects as the values of their parts, and decodes them. It is the only place that
// writes the text of a secret, encrypted. It is safe for concurrent use.
type Codec struct {
	sealer  *sealer
	sharing jsonv2.Options
}

// NewCodec returns a codec that encrypts secrets with a 32-byte key; see readKeyFile.
func NewCodec(key []byte) (*Codec, error) {
	sealer, err := newSealer(key)
	if err != nil {
		return nil, err
	}
	return &Codec{sealer, newSharing()}, nil
}

// OpenCodec returns a codec with the key in a file, which is created on first use.
func OpenCodec(keyFile string) (*Codec, error) {
	key, err := readKeyFile(keyFile)
	if err != nil {
		return nil, err
	}
	return NewCodec(key)
}

// specDocument is the JSON of a Spec part.
type specDocument struct {
	Metadata api.Metadata      `json:"metadata"`
	Spec     any               `json:"spec"`
	Sealed   map[string]string `json:"sealed,omitempty"`
}

// EncodeSpec returns the value of the user-written part of an object.
func (c *Codec) EncodeSpec(object api.Object) ([]byte, error) {
	document := specDocument{Metadata: *object.Meta(), Spec: object.SpecPart()}
	// The resource version is the value's revision, not part of the value.
	document.Metadata.ResourceVersion = ""
	key := api.KeyOf(object)
	if secrets := object.Secrets(); len(secrets) > 0 {
		document.Sealed = make(map[string]string, len(secrets))
		for field, secret := range secrets {
			document.Sealed[field] = c.sealer.seal(key, field, secret.Reveal())
		}
	}
	value, err := jsonform.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return value, nil
}

// DecodeSpec decodes the user-written part of an object of a kind. The status of the result is
// empty.
func (c *Codec) DecodeSpec(kind api.Kind, value []byte) (api.Object, error) {
	info, ok := api.LookupKind(kind)
	if !ok {
		return nil, fmt.Errorf("%w: %q is not a kind of object", ErrDamaged, string(kind))
	}
	object := info.New()
	// Fields added by a later version are ignored.
	if err := jsonv2.Unmarshal(value, object, c.sharing); err != nil {
		return nil, fmt.Errorf("%w: object of kind %s: %w", ErrDamaged, kind, err)
	}
	// Fields added by a later version get their defaults.
	object.SetDefaults()
	reflect.ValueOf(object.StatusPart()).Elem().SetZero()
	// An encrypted secret is null in the document. A null without one means nothing.
	for field, secret := range object.Secrets() {
		if secret.Withheld() {
			object.SetSecret(field, api.Secret{})
		}
	}
	if !bytes.Contains(value, []byte(`"sealed"`)) {
		return object, nil
	}
	var sealed struct {
		Sealed map[string]string `json:"sealed"`
	}
	if err := jsonv2.Unmarshal(value, &sealed); err != nil {
		return nil, fmt.Errorf("%w: secrets of %s: %w", ErrDamaged, api.KeyOf(object), err)
	}
	for _, field := range slices.Sorted(maps.Keys(sealed.Sealed)) {
		text, err := c.sealer.open(api.KeyOf(object), field, sealed.Sealed[field])
		if err != nil {
			return nil, err
		}
		object.SetSecret(field, api.NewSecret(text))
	}
	return object, nil
}

// compressAbove is the size above which a status is compressed. A decision for all of 10,000
// clusters is more than a megabyte of JSON, and etcd rejects requests of 1.5 MiB; compression
// reduces it to a tenth.
const compressAbove = 64 << 10

// EncodeStatus returns the value of the derived part of an object: JSON, compressed with gzip if it
// is large.
func (c *Codec) EncodeStatus(object api.Object) ([]byte, error) {
	value, err := jsonform.Marshal(object.StatusPart())
	if err != nil {
		return nil, fmt.Errorf("encode the status of %s: %w", api.KeyOf(object), err)
	}
	if len(value) < compressAbove {
		return value, nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(value); err != nil {
		return nil, fmt.Errorf("compress the status of %s: %w", api.KeyOf(object), err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress the status of %s: %w", api.KeyOf(object), err)
	}
	return packed.Bytes(), nil
}

// unpack decompresses a status if necessary. JSON never starts with the magic number of gzip.
func unpack(value []byte) ([]byte, error) {
	if !bytes.HasPrefix(value, []byte{0x1f, 0x8b}) {
		return value, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	value, err = io.ReadAll(io.LimitReader(r, maxStatus+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompress: %w", err)
	case len(value) > maxStatus:
		return nil, fmt.Errorf("decompress: more than %d MiB", maxStatus/mebibyte)
	}
	return value, nil
}

// maxStatus limits the size of a decompressed status.
const maxStatus = 256 * mebibyte

// DecodeStatus replaces the status of an object by a stored one. Data that the old status shares
// with other objects is not modified.
func (c *Codec) DecodeStatus(object api.Object, value []byte) error {
	return decodeStatus(object, value, c.sharing)
}

// DecodeDecision is like the DecodeStatus of a codec, and faster: it leaves out what says no more about where something was
// placed, such as conditions and scores.
func DecodeDecision(object api.Object, value []byte) error {
	return decodeStatus(object, value, deciding)
}

var deciding = jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
	leftOut[[]api.Condition](), leftOut[[]api.Decision](), leftOut[[]api.ClusterHealth](), leftOut[[]api.ClusterDistribution](),
))

func leftOut[T any]() *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *T) error { return d.SkipValue() })
}

func decodeStatus(object api.Object, value []byte, options jsonv2.Options) error {
	status := object.StatusPart()
	reflect.ValueOf(status).Elem().SetZero()
	value, err := unpack(value)
	if err == nil {
		err = jsonv2.Unmarshal(value, status, options)
	}
	if err != nil {
		return fmt.Errorf("%w: status of %s: %w", ErrDamaged, api.KeyOf(object), err)
	}
	return nil
}

// KeyID identifies the key without revealing anything else about it.
func (c *Codec) KeyID() string { return c.sealer.id }

// Seal encrypts a text of a record that is not an object, such as a private key of the server
// itself. The ciphertext is bound to the record and field.
func (c *Codec) Seal(key api.Key, field, text string) string { return c.sealer.seal(key, field, text) }

// Unseal decrypts the result of Seal. It returns ErrWrongKey or ErrTampered if the text was not
// encrypted for this place with this key.
func (c *Codec) Unseal(key api.Key, field, sealed string) (string, error) {
	return c.sealer.open(key, field, sealed)
}
