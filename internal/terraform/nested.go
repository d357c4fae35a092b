package terraform

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// nesting is what the attributes in another one belong to.
type nesting int

const (
	inNothing nesting = iota // there are none
	inObject
	inList // in each element
	inSet  // in each element
)

// inside are the attributes in an attribute of a resource, and what they belong to.
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

// walk visits the attributes of a resource or of a data source, in the order of their
// names, and those in them. at are the names that lead to an attribute.
func walk[A schema.Attribute](attributes map[string]A, at []string, visit func(at []string, attribute schema.Attribute)) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		at := append(slices.Clip(at), name)
		visit(at, attributes[name])
		if nested, ok := any(attributes[name]).(schema.NestedAttribute); ok {
			walk(nested.GetNestedObject().GetAttributes(), at, visit)
		}
	}
}
