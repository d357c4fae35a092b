package api

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A field that refers to another object has the tag ref, with the kind of that object and how to
// find its namespace. References and StatusReferences are derived from the tags alone. They are
// used both to check that referenced objects exist and that the writer may read them.
//
//	ref:"cluster"             a cluster, which has no namespace
//	ref:"workload,own"        a workload in the object's own namespace
//	ref:"metric,sibling"      a metric in the namespace given by the field next to it; absent = global
//	ref:"propagation_policy,path"  a policy as namespace/name
//	ref:"cluster,optional"    the object need not exist, or has its own conditions

// Reference is a reference from one object to another.
type Reference struct {
	// Field is the path of the reference.
	Field string
	// Key is the key of the referenced object. The name is empty if it refers to all objects in a
	// namespace.
	Key Key
	// Optional says that the object need not exist.
	Optional bool
}

// ReferenceField is a field in which objects of a kind refer to others.
type ReferenceField struct {
	Kind Kind
	// Field is the path, with [] for every list element: "spec.metrics[].name".
	Field string
	// To is the kind of the referenced objects.
	To Kind
	// In says how to find the namespace of the referenced object.
	In ReferenceNamespace
	// Optional says that the object need not exist.
	Optional bool
}

// ReferenceNamespace says how to find the namespace of a referenced object.
type ReferenceNamespace string

// Values of ReferenceNamespace.
const (
	// InNone: the kind has no namespace.
	InNone ReferenceNamespace = ""
	// InOwn: the namespace of the referring object.
	InOwn ReferenceNamespace = "own"
	// InSibling: the value of the field "namespace" next to the reference.
	InSibling ReferenceNamespace = "sibling"
	// InPath: the part of the reference before the slash.
	InPath ReferenceNamespace = "path"
)

// References returns the references in the spec of an object, in field order.
func References(object Object) []Reference {
	return referencesIn(object, "spec", object.SpecPart())
}

// StatusReferences returns the references in the status of an object that decisions start from.
// Users cannot write a status, but they can pass one to a simulation.
func StatusReferences(object Object) []Reference {
	return referencesIn(object, "status", object.StatusPart())
}

func referencesIn(object Object, field string, part any) []Reference {
	n := referenceNodes()[reflect.TypeOf(part).Elem()]
	if n == nil {
		return nil
	}
	r := references{own: object.Meta().Namespace}
	r.walk(n, reflect.ValueOf(part).Elem(), field)
	return r.found
}

// ReferenceFields lists every field that refers to objects.
var ReferenceFields = sync.OnceValue(func() []ReferenceField {
	var out []ReferenceField
	for _, info := range Kinds {
		object := info.New()
		for field, part := range map[string]any{"spec": object.SpecPart(), "status": object.StatusPart()} {
			out = append(out, referenceNodes()[reflect.TypeOf(part).Elem()].list(info.Kind, field)...)
		}
	}
	slices.SortFunc(out, func(a, b ReferenceField) int {
		if a.Kind != b.Kind {
			return strings.Compare(string(a.Kind), string(b.Kind))
		}
		return strings.Compare(a.Field, b.Field)
	})
	return out
})

// referenceNode is a type that contains references. Types without references have no node, so that
// they are skipped.
type referenceNode struct {
	name   *nameTag        // set if values of the type are references themselves
	elem   *referenceNode  // of a pointer or a list
	many   bool            // a list
	fields []referenceStep // of a struct
}

// referenceStep is a struct field that leads to references.
type referenceStep struct {
	index    int
	json     string // "" for an embedded struct, whose fields count as those of the outer one
	sibling  int    // index of the namespace field, or -1
	node     *referenceNode
	declared *nameTag
}

// nameTag is a parsed ref tag.
type nameTag struct {
	to       Kind
	in       ReferenceNamespace
	optional bool
}

func parseNameTag(text string) *nameTag {
	kind, rest, _ := strings.Cut(text, ",")
	tag := &nameTag{to: Kind(kind)}
	for option := range strings.SplitSeq(rest, ",") {
		switch option {
		case "":
		case "optional":
			tag.optional = true
		default:
			tag.in = ReferenceNamespace(option)
		}
	}
	return tag
}

// referenceNodes holds the nodes of all specs and statuses.
var referenceNodes = sync.OnceValue(func() map[reflect.Type]*referenceNode {
	known := map[reflect.Type]*referenceNode{}
	for _, info := range Kinds {
		object := info.New()
		for _, part := range []any{object.SpecPart(), object.StatusPart()} {
			t := reflect.TypeOf(part).Elem()
			known[t] = nodeOf(t, nil)
		}
	}
	return known
})

// nodeOf returns the node of a type, or nil if it contains no references. tag is the tag of the
// field with that type.
func nodeOf(t reflect.Type, tag *nameTag) *referenceNode {
	switch t.Kind() {
	case reflect.String:
		if tag != nil {
			return &referenceNode{name: tag}
		}
	case reflect.Pointer, reflect.Slice:
		if elem := nodeOf(t.Elem(), tag); elem != nil {
			return &referenceNode{elem: elem, many: t.Kind() == reflect.Slice}
		}
	case reflect.Struct:
		node := &referenceNode{}
		for i := range t.NumField() {
			field := t.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.IsExported() || name == "-" {
				continue
			}
			var declared *nameTag
			if text := field.Tag.Get("ref"); text != "" {
				declared = parseNameTag(text)
			}
			if below := nodeOf(field.Type, declared); below != nil {
				step := referenceStep{index: i, json: name, sibling: -1, node: below, declared: declared}
				if beside, ok := t.FieldByName("Namespace"); ok && declared != nil && declared.in == InSibling {
					step.sibling = beside.Index[0]
				}
				node.fields = append(node.fields, step)
			}
		}
		if len(node.fields) > 0 {
			return node
		}
	default: // other types contain no references
	}
	return nil
}

func (n *referenceNode) list(kind Kind, field string) []ReferenceField {
	switch {
	case n == nil:
		return nil
	case n.name != nil:
		return []ReferenceField{{Kind: kind, Field: field, To: n.name.to, In: n.name.in, Optional: n.name.optional}}
	case n.many:
		return n.elem.list(kind, field+"[]")
	case n.elem != nil:
		return n.elem.list(kind, field)
	}
	var out []ReferenceField
	for i := range n.fields {
		out = append(out, n.fields[i].node.list(kind, under(field, n.fields[i].json))...)
	}
	return out
}

func under(field, name string) string {
	if field == "" || name == "" {
		return field + name
	}
	return field + "." + name
}

// references collects the references of one object.
type references struct {
	own   string
	found []Reference
}

func (r *references) walk(n *referenceNode, v reflect.Value, field string) {
	switch {
	case n.name != nil:
		r.add(n.name, v.String(), r.own, field)
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			r.walk(n.elem, v.Elem(), field)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			r.walk(n.elem, v.Index(i), index(field, i))
		}
	default:
		for i := range n.fields {
			step := &n.fields[i]
			value := v.Field(step.index)
			if step.sibling >= 0 {
				r.add(step.declared, value.String(), v.Field(step.sibling).String(), under(field, step.json))
				continue
			}
			r.walk(step.node, value, under(field, step.json))
		}
	}
}

// add adds the reference in a field. namespace is that of the sibling field, or of the object
// itself.
func (r *references) add(tag *nameTag, name, namespace, field string) {
	key := Key{Kind: tag.to, Name: name}
	switch tag.in {
	case InOwn, InSibling:
		key.Namespace = namespace
	case InPath:
		if before, after, ok := strings.Cut(name, "/"); ok {
			key.Namespace, key.Name = before, after
		}
	case InNone:
	}
	info, _ := LookupKind(tag.to)
	if name == "" && (tag.in != InSibling || namespace == "") || key.Namespace == "" && info.Scope == Namespaced {
		return // no reference, or one to every namespace
	}
	r.found = append(r.found, Reference{Field: field, Key: key, Optional: tag.optional})
}
