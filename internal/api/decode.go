package api

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads an object from its JSON document. Unknown fields, repeated
// fields and fields of a wrong type are FieldErrors; defaults are filled in. It
// does not validate. With FieldErrors the object is what the other fields say,
// nil where the kind is not known, so that it can be validated, too.
func Decode(data []byte) (Object, error) {
	var head struct {
		Kind Kind `json:"kind"`
	}
	if err := json.Unmarshal(data, &head, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, decodeError(err)
	}
	info, ok := LookupKind(head.Kind)
	if !ok {
		return nil, FieldErrors{{Field: "kind", Message: oneOf(head.Kind, kindNames()...)}}
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

// Of a document with wrong fields, as many are named as can be found within
// these limits; the rest shows when those are mended.
const (
	maxWrongFields   = 20
	maxSearchedBytes = 64 << 10
)

// strict reads only what is known, and only as exactly as it was written.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.UnmarshalFromFunc(exactFloat)))

// exactFloat refuses a whole number that a float64 does not hold. Fractions are
// rounded, as everywhere; a whole number that comes back as another one is a loss.
func exactFloat(d *jsontext.Decoder, f *float64) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported // the library says what is wrong
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	text := string(raw)
	if *f, err = strconv.ParseFloat(text, 64); err != nil {
		return fmt.Errorf("%s is too large a number", text)
	}
	const always = 15 // digits that a float64 holds
	if len(text) <= always || strings.ContainsAny(text, ".eE") {
		return nil
	}
	if kept := strconv.FormatFloat(*f, 'f', -1, 64); kept != text && strconv.FormatFloat(*f, 'f', 0, 64) != text {
		return fmt.Errorf("%s has more digits than can be kept: the nearest number that can is %s", text, kept)
	}
	return nil
}

// DecodeInto reads a JSON document into a struct of this package, as strictly
// as Decode. With FieldErrors the struct is what the other fields say.
func DecodeInto(data []byte, into any) error {
	err := json.Unmarshal(data, into, strict)
	if err == nil {
		return nil
	}
	// One wrong field ends the decoding. Leaving it out and decoding again finds
	// the next.
	var errs FieldErrors
	var tree any
	for {
		failure := decodeError(err)
		var found FieldErrors
		if !errors.As(failure, &found) {
			return failure // not JSON at all
		}
		errs = append(errs, found...)
		if len(errs) >= maxWrongFields || len(data) > maxSearchedBytes {
			return errs
		}
		// Of a field that is given twice, the last one is looked at further.
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
		rest, marshalErr := stdjson.Marshal(tree) // the library that knows json.Number
		if marshalErr != nil {
			return errs
		}
		if err = json.Unmarshal(rest, into, strict); err == nil {
			return errs
		}
	}
}

// DecodeAnyCase reads a document of another system into a struct: its keys may be
// spelled in any case, with or without dashes and underscores. Unknown fields are
// passed over unless strictly is set. Wrong fields are FieldErrors.
func DecodeAnyCase(data []byte, into any, strictly bool) error {
	if err := json.Unmarshal(data, into, json.MatchCaseInsensitiveNames(true), json.RejectUnknownMembers(strictly)); err != nil {
		return decodeError(err)
	}
	return nil
}

// leaveOut removes what a pointer points at from a decoded document; an element
// of a list becomes null, so that the others keep their places.
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

// decodeError turns an error of the JSON library into the field it is about.
func decodeError(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		message := "has a wrong type"
		switch {
		case errors.Is(err, json.ErrUnknownName):
			message = "is not a known field"
		case semantic.JSONKind == '"' && semantic.GoType != nil && wanted(semantic.GoType) == aTime:
			message = fmt.Sprintf("%s is not a time of RFC 3339, such as 2026-01-31T00:00:00Z or 2026-01-31T01:00:00+01:00", semantic.JSONValue)
		case errors.Is(semantic.Err, strconv.ErrRange), errors.Is(semantic.Err, strconv.ErrSyntax):
			message = wrongNumber(semantic)
		case semantic.Err != nil && semantic.GoType != nil:
			message = semantic.Err.Error()
		case semantic.JSONKind != 0 && semantic.GoType != nil:
			message = wrongType(semantic)
		}
		return FieldErrors{{Field: Redact(pointerToField(semantic.JSONPointer)), Message: Redact(message)}}
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return FieldErrors{{Field: Redact(pointerToField(syntactic.JSONPointer)), Message: "is given twice"}}
		}
		return fmt.Errorf("not a JSON document: %w at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	return fmt.Errorf("not a JSON document: %w", err)
}

// wrongNumber words a number that its field cannot hold.
func wrongNumber(err *json.SemanticError) string {
	if kind := err.GoType.Kind(); kind == reflect.Int || kind == reflect.Int64 {
		return fmt.Sprintf("%s is not a whole number of at most 64 bits", err.JSONValue)
	}
	return fmt.Sprintf("%s is too large a number", err.JSONValue)
}

// pointerToField renders a JSON pointer as a field path: "/spec/metrics/0/name"
// is "spec.metrics[0].name". It ends before the name of a header that cannot be one:
// that may be the header's value, which is a secret.
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
