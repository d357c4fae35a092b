package api

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads an object from JSON and sets defaults. It does not validate. Unknown fields,
// repeated fields and fields of a wrong type are returned as FieldErrors, together with an object
// made from the remaining fields, so that it can be validated too. If the kind is unknown, the
// object is nil.
func Decode(data []byte) (Object, error) {
	var head struct {
		Kind Kind `json:"kind"`
	}
	if err := json.Unmarshal(data, &head, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, decodeError(err)
	}
	info, ok := LookupKind(head.Kind)
	if !ok {
		var errs FieldErrors
		errs.check("kind", oneOf(head.Kind, kindNames()...))
		return nil, errs
	}
	object := info.New()
	err := DecodeInto(data, object)
	var fields FieldErrors
	if err != nil && !errors.As(err, &fields) {
		return nil, err
	}
	object.SetDefaults()
	return object, err
}

// Limits on how many invalid fields of one document are reported. The others are reported once
// these are fixed.
const (
	maxWrongFields   = 20
	maxSearchedBytes = 64 << 10
)

// strict rejects unknown fields and numbers that would lose precision.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.UnmarshalFromFunc(exactFloat)))

// exactFloat rejects an integer that a float64 cannot represent. Fractions are rounded as usual,
// but an integer that changes is data loss.
func exactFloat(d *jsontext.Decoder, f *float64) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported // the library reports the error
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	text := string(raw)
	if *f, err = strconv.ParseFloat(text, 64); err != nil {
		return fmt.Errorf("%s is too large a number", text)
	}
	const always = 15 // digits that a float64 always represents exactly
	if len(text) <= always || strings.ContainsAny(text, ".eE") {
		return nil
	}
	if kept := strconv.FormatFloat(*f, 'f', -1, 64); kept != text && strconv.FormatFloat(*f, 'f', 0, 64) != text {
		return fmt.Errorf("%s has more digits than can be kept: the nearest number that can is %s", text, kept)
	}
	return nil
}

// DecodeInto reads JSON into a struct of this package, as strictly as Decode. If it returns
// FieldErrors, the struct contains the remaining fields.
func DecodeInto(data []byte, into any) error {
	err := json.Unmarshal(data, into, strict)
	if err == nil {
		return nil
	}
	// Decoding stops at the first invalid field. Remove it and decode again to find the next.
	var errs FieldErrors
	var tree any
	for {
		failure := decodeError(err)
		var found FieldErrors
		if !errors.As(failure, &found) {
			return failure // not JSON
		}
		errs.Join(found)
		if len(errs) >= maxWrongFields || len(data) > maxSearchedBytes {
			return errs
		}
		// If a field is repeated, the last occurrence is checked.
		if tree == nil {
			var treeErr error
			if tree, treeErr = DecodeDocument(data); treeErr != nil {
				return errs
			}
		}
		var semantic *json.SemanticError
		if errors.As(err, &semantic) && !leaveOut(tree, semantic.JSONPointer) {
			return errs
		}
		rest, marshalErr := stdjson.Marshal(tree) // encoding/json supports json.Number
		if marshalErr != nil {
			return errs
		}
		if err = json.Unmarshal(rest, into, strict); err == nil {
			return errs
		}
	}
}

// DecodeAnyCase reads a document of another system into a struct. Keys match in any case, with or
// without dashes and underscores. Unknown fields are ignored unless strictly is set. Invalid fields
// are returned as FieldErrors.
func DecodeAnyCase(data []byte, into any, strictly bool) error {
	if err := json.Unmarshal(data, into, json.MatchCaseInsensitiveNames(true), json.RejectUnknownMembers(strictly)); err != nil {
		return decodeError(err)
	}
	return nil
}

// leaveOut removes the value at a pointer from a decoded document. A list element becomes null, so
// that the others keep their positions.
func leaveOut(tree any, pointer jsontext.Pointer) bool {
	last := pointer.LastToken()
	for token := range pointer.Parent().Tokens() {
		switch node := tree.(type) {
		case map[string]any:
			tree = node[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(node) {
				return false
			}
			tree = node[i]
		default:
			return false
		}
	}
	switch node := tree.(type) {
	case map[string]any:
		_, ok := node[last]
		delete(node, last)
		return ok
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil || i < 0 || i >= len(node) || node[i] == nil {
			return false
		}
		node[i] = nil
		return true
	}
	return false
}

func kindNames() []Kind {
	names := make([]Kind, len(Kinds))
	for i, info := range Kinds {
		names[i] = info.Kind
	}
	return names
}

// UnknownField is the message about a field that a type does not have.
const UnknownField = "is not a known field"

// decodeError converts an error of the JSON library into a field error.
func decodeError(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		message := "has a wrong type"
		switch {
		case errors.Is(err, json.ErrUnknownName):
			message = UnknownField
		case semantic.JSONKind == '"' && semantic.GoType != nil && wanted(semantic.GoType) == aTime:
			message = "is not a time of RFC 3339, such as 2026-01-31T00:00:00Z or 2026-01-31T01:00:00+01:00"
			if wrong, ok := errors.AsType[*time.ParseError](semantic.Err); ok {
				message = quote(wrong.Value) + " " + message + wrong.Message // ": day out of range"
			}
		case errors.Is(semantic.Err, strconv.ErrRange), errors.Is(semantic.Err, strconv.ErrSyntax):
			message = wrongNumber(semantic)
		case semantic.Err != nil && semantic.GoType != nil:
			message = semantic.Err.Error()
		case semantic.JSONKind != 0 && semantic.GoType != nil:
			message = wrongType(semantic)
		}
		return oneError(semantic.JSONPointer, message)
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return oneError(syntactic.JSONPointer, "is given twice")
		}
		return fmt.Errorf("not a JSON document: %w at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	return fmt.Errorf("not a JSON document: %w", err)
}

// oneError returns the error of the field at a pointer.
func oneError(at jsontext.Pointer, message string) FieldErrors {
	var errs FieldErrors
	errs.Add(pointerToField(at), "%s", message)
	return errs
}

// wrongNumber describes a number that is out of range for its field.
func wrongNumber(err *json.SemanticError) string {
	if kind := err.GoType.Kind(); kind == reflect.Int || kind == reflect.Int64 {
		return fmt.Sprintf("%s is not a whole number of at most 64 bits", err.JSONValue)
	}
	return fmt.Sprintf("%s is too large a number", err.JSONValue)
}

// pointerToField converts a JSON pointer to a field path: "/spec/metrics/0/name" becomes
// "spec.metrics[0].name". An invalid header name is left out, because it may be the header's value,
// which is a secret.
func pointerToField(pointer jsontext.Pointer) string {
	var b strings.Builder
	inHeaders := false
	for token := range pointer.Tokens() {
		if inHeaders && !isHeaderName(token) {
			break
		}
		inHeaders = token == "headers"
		switch _, err := strconv.Atoi(token); {
		case err == nil:
			b.WriteString("[" + token + "]")
		case token == "" || strings.ContainsAny(token, ".[]\" /"):
			b.WriteString("[" + quote(token) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(token)
		}
	}
	return b.String()
}
