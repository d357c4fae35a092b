package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Secret is a text that is accepted and used but never shown: it marshals to
// null, prints as "(secret)" and is logged as that. Only Reveal returns it, for
// the request that needs it and for the store, which seals it.
type Secret struct{ text string }

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text itself.
func (s Secret) Reveal() string { return s.text }

// IsZero reports that no secret is set; JSON then leaves the field out.
func (s Secret) IsZero() bool { return s.text == "" }

// String hides the text from fmt.
func (s Secret) String() string {
	if s.text == "" {
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

// UnmarshalJSON reads a JSON string or null.
func (s *Secret) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("expected a string: %w", err)
	}
	s.text = ""
	if text != nil {
		s.text = *text
	}
	return nil
}
