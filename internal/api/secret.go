package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"unique"
)

// Secret is a text that is accepted and used but never shown: it marshals to
// null, prints as "(secret)" and is logged as that. Only Reveal returns it, for
// the request that needs it and for the store, which seals it.
//
// What was read from an answer is withheld: there is a secret, and its text is
// not told.
//
// The text stands behind a handle, because fmt asks no method of a value it
// reaches with a verb that does not fit (a pointer under %s) but prints its
// fields. Equal texts have equal handles, so secrets can be compared.
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

// WithheldSecret is a secret whose text is not told.
func WithheldSecret() Secret { return Secret{withheld: true} }

// Withheld reports that there is a secret, and its text is not known here.
func (s Secret) Withheld() bool { return s.withheld }

// Reveal returns the text itself; of one that is withheld there is none.
func (s Secret) Reveal() string {
	if s.IsZero() || s.withheld {
		return ""
	}
	return s.text.Value()
}

// IsZero reports that no secret is set; JSON then leaves the field out.
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

// Format hides the text from every other verb, %x among them.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue hides the text from structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON never writes the text.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// UnmarshalJSON reads a JSON string, or the null that stands in its place.
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
