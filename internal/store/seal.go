package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/wholefile"
)

// ErrWrongKey is returned for a secret that was encrypted with another key.
var ErrWrongKey = errors.New("the secret was sealed under another key")

// ErrTampered is returned for a secret that was modified or belongs to another place.
var ErrTampered = errors.New("the sealed secret was changed or belongs to another object or field")

// keyBytes is the length of an encryption key: AES-256.
const keyBytes = 32

// sealFormat is the prefix of an encrypted text: format, key ID and data, joined by dots.
const sealFormat = "v1"

// sealer encrypts single texts with AES-256-GCM. Each is bound to its place, so that a ciphertext
// that was moved cannot be decrypted.
type sealer struct {
	aead cipher.AEAD
	id   string
}

func newSealer(key []byte) (*sealer, error) {
	if len(key) != keyBytes {
		return nil, fmt.Errorf("store: the sealing key has %d bytes, it must have %d", len(key), keyBytes)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	// The ID identifies the key without revealing anything about it.
	sum := sha256.Sum256(append([]byte("scheduler sealing key id\x00"), key...))
	return &sealer{aead, hex.EncodeToString(sum[:4])}, nil
}

// place returns what a ciphertext is bound to.
func place(key api.Key, field string) []byte {
	return []byte(strings.Join([]string{string(key.Kind), key.Namespace, key.Name, field}, "\x00"))
}

func (s *sealer) seal(key api.Key, field, text string) string {
	data := s.aead.Seal(nil, nil, []byte(text), place(key, field)) //nolint:gosec // this AEAD generates a random nonce itself
	return sealFormat + "." + s.id + "." + base64.RawStdEncoding.EncodeToString(data)
}

func (s *sealer) open(key api.Key, field, sealed string) (string, error) {
	parts := strings.SplitN(sealed, ".", 3)
	if len(parts) != 3 || parts[0] != sealFormat {
		return "", fmt.Errorf("%s of %s: %w: its format is not known", field, key, ErrTampered)
	}
	if parts[1] != s.id {
		return "", fmt.Errorf("%s of %s: %w: it needs the key with id %s, the key file holds the one with id %s", field, key, ErrWrongKey, parts[1], s.id)
	}
	data, err := base64.RawStdEncoding.DecodeString(parts[2])
	if err != nil {
		return "", fmt.Errorf("%s of %s: %w", field, key, ErrTampered)
	}
	text, err := s.aead.Open(nil, nil, data, place(key, field))
	if err != nil {
		return "", fmt.Errorf("%s of %s: %w", field, key, ErrTampered)
	}
	return string(text), nil
}

// readKeyFile reads an encryption key: 64 hexadecimal digits. If the file does not exist, it
// generates a new key in a file that only the owner can read. Without this file, the secrets in the
// store and its backups are lost.
func readKeyFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createKeyFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("the key file %s must hold %d hexadecimal digits", path, 2*keyBytes)
	}
	return key, nil
}

// createKeyFile writes a new key such that after a crash the file is either complete or absent:
// secrets encrypted with a lost key are lost too.
func createKeyFile(path string) ([]byte, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the key file: %w", err)
	}
	err := wholefile.Create(path, func(file *os.File) error {
		_, err := file.WriteString(hex.EncodeToString(key) + "\n")
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return readKeyFile(path) // another process was faster
	}
	if err != nil {
		return nil, fmt.Errorf("create the key file: %w", err)
	}
	return key, nil
}
