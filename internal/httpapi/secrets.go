package httpapi

import (
	"maps"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// checkWithheld refuses a document that has null where the stored object has a
// secret. That is what an answer shows in its place: who reads an object, edits
// it and writes it back would lose the secret without a word.
func checkWithheld(current, object api.Object, document []byte) error {
	var errs api.FieldErrors
	given := object.Secrets()
	for _, field := range slices.Sorted(maps.Keys(current.Secrets())) {
		if _, ok := given[field]; !ok && isNull(document, field) {
			errs.Add(field, "null is what answers show in place of a secret: give the secret again, or leave the field out to remove it")
		}
	}
	return errs.Err()
}

// isNull reports that a document spells a field out as null.
func isNull(document []byte, field string) bool {
	value, err := api.DecodeDocument(document)
	if err != nil {
		return false
	}
	for _, step := range api.SplitField(field) {
		name, isName := step.(string)
		object, isObject := value.(map[string]any)
		if !isName || !isObject {
			return false
		}
		inner, ok := object[name]
		if !ok {
			return false
		}
		value = inner
	}
	return value == nil
}
