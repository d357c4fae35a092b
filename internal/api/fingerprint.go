package api

import (
	"crypto/sha256"
	"encoding/base64"
	"reflect"
	"strings"
	"sync"
)

// Fingerprint identifies the kinds and the fields of their specs that this build knows. Builds with
// the same fingerprint know the same.
var Fingerprint = sync.OnceValue(func() string {
	var all strings.Builder
	for _, info := range Kinds {
		addFields(&all, reflect.TypeOf(info.New().SpecPart()), string(info.Kind))
	}
	sum := sha256.Sum256([]byte(all.String()))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
})

func addFields(all *strings.Builder, t reflect.Type, at string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, field := range Fields(t) {
		inner := at + "." + field.Name
		all.WriteString(inner + "\n")
		addFields(all, field.Type, inner)
	}
}
