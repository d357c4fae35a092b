package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads an object from its JSON document. Unknown fields, repeated
// fields and fields of a wrong type are errors that name the field; defaults
// are filled in. It does not validate.
func Decode(data []byte) (Object, error) {
	var head struct {
		Kind Kind `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, decodeError(err)
	}
	info, ok := LookupKind(head.Kind)
	if !ok {
		return nil, FieldErrors{{Field: "kind", Message: oneOf(head.Kind, kindNames()...)}}
	}
	object := info.New()
	if err := DecodeInto(data, object); err != nil {
		return nil, err
	}
	object.SetDefaults()
	return object, nil
}

// DecodeInto reads a JSON document into a struct of this package, as strictly
// as Decode.
func DecodeInto(data []byte, into any) error {
	if err := json.Unmarshal(data, into, json.RejectUnknownMembers(true)); err != nil {
		return decodeError(err)
	}
	return nil
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
		case semantic.Err != nil && semantic.GoType != nil:
			message = semantic.Err.Error()
		case semantic.JSONKind != 0 && semantic.GoType != nil:
			message = fmt.Sprintf("cannot be a JSON %s", semantic.JSONKind)
		}
		return FieldErrors{{Field: pointerToField(semantic.JSONPointer), Message: message}}
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return FieldErrors{{Field: pointerToField(syntactic.JSONPointer), Message: "is given twice"}}
		}
		return fmt.Errorf("not a JSON document: %w at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	return fmt.Errorf("not a JSON document: %w", err)
}

// pointerToField renders a JSON pointer as a field path: "/spec/metrics/0/name"
// is "spec.metrics[0].name".
func pointerToField(pointer jsontext.Pointer) string {
	var b strings.Builder
	for token := range pointer.Tokens() {
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
