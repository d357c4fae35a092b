package store

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ErrDamaged is returned for a stored value that cannot be read back.
var ErrDamaged = errors.New("the stored data is damaged")

// Codec turns objects into the values of their parts and back. It is the only
// place where the real text of a secret is written, sealed. A codec may be used
// by many goroutines.
type Codec struct {
	sealer  *sealer
	sharing jsonv2.Options
}

// NewCodec makes a codec that seals secrets under a key of 32 bytes; see
// ReadKeyFile.
func NewCodec(key []byte) (*Codec, error) {
	sealer, err := newSealer(key)
	if err != nil {
		return nil, err
	}
	return &Codec{sealer, newSharing()}, nil
}

// OpenCodec makes a codec with the key in a file, which is created on first use.
func OpenCodec(keyFile string) (*Codec, error) {
	key, err := ReadKeyFile(keyFile)
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

// EncodeSpec is the value of the user-written part of an object.
func (c *Codec) EncodeSpec(object api.Object) ([]byte, error) {
	document := specDocument{Metadata: *object.Meta(), Spec: object.SpecPart()}
	// The resource version is where the value is stored, not part of it.
	document.Metadata.ResourceVersion = ""
	key := api.KeyOf(object)
	if secrets := object.Secrets(); len(secrets) > 0 {
		document.Sealed = make(map[string]string, len(secrets))
		for field, secret := range secrets {
			document.Sealed[field] = c.sealer.seal(key, field, secret.Reveal())
		}
	}
	value, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return value, nil
}

// DecodeSpec reads the user-written part of an object of a kind. The status of
// the result is empty.
func (c *Codec) DecodeSpec(kind api.Kind, value []byte) (api.Object, error) {
	info, ok := api.LookupKind(kind)
	if !ok {
		return nil, fmt.Errorf("%w: %q is not a kind of object", ErrDamaged, string(kind))
	}
	object := info.New()
	// Fields that a later program has added are skipped.
	if err := jsonv2.Unmarshal(value, object, c.sharing); err != nil {
		return nil, fmt.Errorf("%w: object of kind %s: %w", ErrDamaged, kind, err)
	}
	// A field that a later program has added gets its default.
	object.SetDefaults()
	reflect.ValueOf(object.StatusPart()).Elem().SetZero()
	// A null stands in the place of a sealed secret. Without one it means nothing.
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

// compressAbove is the size from which a status is compressed. A decision for
// every one of 10,000 clusters takes more than a megabyte of JSON, and etcd
// refuses requests of 1.5 MiB; compressed it takes a tenth.
const compressAbove = 64 << 10

// EncodeStatus is the value of the derived part of an object: JSON, compressed
// with gzip where it is large.
func (c *Codec) EncodeStatus(object api.Object) ([]byte, error) {
	value, err := json.Marshal(object.StatusPart())
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

// unpack undoes the compression of a status. JSON never begins with the magic
// number of gzip.
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

// maxStatus limits a decompressed status.
const maxStatus = 256 * mebibyte

// DecodeStatus replaces the status of an object by a stored one. What the old
// status shares with other objects is left alone.
func (c *Codec) DecodeStatus(object api.Object, value []byte) error {
	status := object.StatusPart()
	reflect.ValueOf(status).Elem().SetZero()
	value, err := unpack(value)
	if err == nil {
		err = jsonv2.Unmarshal(value, status, c.sharing)
	}
	if err != nil {
		return fmt.Errorf("%w: status of %s: %w", ErrDamaged, api.KeyOf(object), err)
	}
	return nil
}

// KeyID tells the key apart from others, and says nothing else about it.
func (c *Codec) KeyID() string { return c.sealer.id }

// Seal seals a text of a record that is no object, such as a private key of the
// server itself. It is bound to the record and the field.
func (c *Codec) Seal(key api.Key, field, text string) string { return c.sealer.seal(key, field, text) }

// Unseal is the inverse of Seal. It returns ErrWrongKey or ErrTampered for what
// was not sealed for this place under this key.
func (c *Codec) Unseal(key api.Key, field, sealed string) (string, error) {
	return c.sealer.open(key, field, sealed)
}
