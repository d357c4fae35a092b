package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"unique"
)

// Secret is text that is accepted and used but never shown: it marshals to null, and it is printed
// and logged as "(secret)". Only Reveal returns the text, for the request that needs it and for the
// store, which encrypts it.
//
// A secret that was read from a response is withheld: it exists, but its text is not known.
//
// The text is behind a unique.Handle, because fmt prints the fields of a value without calling its
// methods if the verb does not fit (such as %s for a pointer). Equal texts have equal handles, so
// secrets can be compared.
type Secret struct {
	text     unique.Handle[string]
	withheld bool
}

// NewSecret wraps a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: unique.Make(text)}
}

// WithheldSecret returns a secret whose text is not known.
func WithheldSecret() Secret { return Secret{withheld: true} }

// Withheld reports whether the secret exists but its text is not known.
func (s Secret) Withheld() bool { return s.withheld }

// Reveal returns the text. It is empty for a withheld secret.
func (s Secret) Reveal() string {
	if s.IsZero() || s.withheld {
		return ""
	}
	return s.text.Value()
}

// IsZero reports whether no secret is set; JSON then omits the field.
func (s Secret) IsZero() bool { return s == Secret{} }

// String hides the text from fmt.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return "(secret)"
}

// GoString hides the text from %#v.
func (s Secret) GoString() string { return "api.Secret(" + s.String() + ")" }

// Format hides the text from all other verbs, including %x.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue hides the text from structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON never writes the text.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// UnmarshalJSON reads a JSON string or null.
func (s *Secret) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("expected a string: %w", err)
	}
	*s = WithheldSecret()
	if text != nil {
		*s = NewSecret(*text)
	}
	return nil
}
