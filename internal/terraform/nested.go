package terraform

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// nesting is how attributes are nested in another one.
type nesting int

const (
	inNothing nesting = iota // no nested attributes
	inObject
	inList // in each element
	inSet  // in each element
)

// inside returns the attributes nested in an attribute, and how.
func inside(attribute schema.Attribute) (map[string]schema.Attribute, nesting) {
	switch a := attribute.(type) {
	case schema.SingleNestedAttribute:
		return a.Attributes, inObject
	case schema.ListNestedAttribute:
		return a.NestedObject.Attributes, inList
	case schema.SetNestedAttribute:
		return a.NestedObject.Attributes, inSet
	}
	return nil, inNothing
}

// walk visits attributes and their nested attributes, ordered by name. at is the path of names.
func walk[A schema.Attribute](attributes map[string]A, at []string, visit func(at []string, attribute schema.Attribute)) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		at := append(slices.Clip(at), name)
		visit(at, attributes[name])
		if nested, ok := any(attributes[name]).(schema.NestedAttribute); ok {
			walk(nested.GetNestedObject().GetAttributes(), at, visit)
		}
	}
}
