package httpapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// How secrets are kept, which the fields themselves do not describe.
const (
	secretKept  = "Never returned. If omitted or null, the stored value is kept; an empty string removes it."
	secretsKept = "Never returned. If omitted or null, the stored values are kept. In a map, a null entry keeps its stored value, and an empty string removes it."
)

// describeFields adds what huma does not read from field tags: Markdown descriptions, defaults that
// depend on the field next to it, bounds of map values, minimum durations, and how secrets are
// kept.
func describeFields(document *huma.OpenAPI) {
	registry := document.Components.Schemas
	for name, schema := range registry.Map() {
		t := registry.TypeFromRef("#/components/schemas/" + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		for _, f := range api.Fields(t) {
			if property := schema.Properties[f.Name]; property != nil {
				describeField(property, &f)
			}
		}
	}
}

func describeField(property *huma.Schema, f *api.Field) {
	property.Description = f.Doc
	more := func(sentence string) {
		if sentence != "" {
			property.Description += " " + sentence
		}
	}
	more(f.Limits())
	if f.DefaultBy != nil {
		more(f.DefaultBy.Sentence())
	}
	isMap := f.Type.Kind() == reflect.Map
	switch {
	case f.Secret && isMap:
		more(secretsKept)
	case f.Secret && f.Type == reflect.TypeFor[api.Secret]():
		more(secretKept)
	}
	if elements, ok := property.AdditionalProperties.(*huma.Schema); ok && isMap {
		elements.Minimum, property.Minimum = f.Minimum, nil
		elements.Maximum, property.Maximum = f.Maximum, nil
		elements.MaxLength, property.MaxLength = property.MaxLength, nil
	}
}
