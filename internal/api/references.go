package api

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Where an object names another one is said at the field, with the tag ref: the
// kind of what is named, and how its namespace is found. It is said nowhere else:
// whether what is named exists, and whether who writes the name may read it, are
// both asked of References and StatusReferences.
//
//	ref:"cluster"             a cluster, which has no namespace
//	ref:"workload,own"        a workload of the object's own namespace
//	ref:"metric,sibling"      a metric of the namespace in the field beside it; absent = global
//	ref:"propagation_policy,path"  a policy as namespace/name
//	ref:"cluster,optional"    what is named need not exist, or has conditions of its own

// Reference is where an object names another one.
type Reference struct {
	// Field is the path of the name.
	Field string
	// Key is that of the object that is named. Its name is empty where all objects
	// of a namespace are meant.
	Key Key
	// Optional says that it is nothing to complain of where there is no such object.
	Optional bool
}

// ReferenceField is a field by which objects of a kind name others.
type ReferenceField struct {
	Kind Kind
	// Field is the path, with [] for every element of a list:
	// "spec.metrics[].name".
	Field string
	// To is the kind of what is named.
	To Kind
	// In says how the namespace of what is named is found.
	In ReferenceNamespace
	// Optional says that it is nothing to complain of where there is no such object.
	Optional bool
}

// ReferenceNamespace says how the namespace of what a field names is found.
type ReferenceNamespace string

// The ways to find the namespace of what is named.
const (
	// InNone is that of kinds without a namespace.
	InNone ReferenceNamespace = ""
	// InOwn is the namespace of the object that names the other.
	InOwn ReferenceNamespace = "own"
	// InSibling is the namespace that the field "namespace" beside the name holds.
	InSibling ReferenceNamespace = "sibling"
	// InPath is the part of the name before the slash.
	InPath ReferenceNamespace = "path"
)

// References are the objects that the spec of an object names, in the order of its
// fields.
func References(object Object) []Reference {
	return referencesIn(object, "spec", object.SpecPart())
}

// StatusReferences are the objects that the status of an object names, as far as
// decisions start from it. Nobody writes a status, but a simulation may be given one.
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

// ReferenceFields lists every field by which objects name others.
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

// referenceNode is a type in which there are names of objects. Types without any
// have none, so that reading references looks at nothing else.
type referenceNode struct {
	name   *nameTag        // the values of the type are names themselves
	elem   *referenceNode  // of a pointer or a list
	many   bool            // a list
	fields []referenceStep // of a structure
}

// referenceStep is a field of a structure that leads to names.
type referenceStep struct {
	index    int
	json     string // "" = the fields of an embedded structure are those of the outer one
	sibling  int    // position of the field with the namespace, -1 where there is none
	node     *referenceNode
	declared *nameTag
}

// nameTag is the tag of a field.
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

// referenceNodes are those of all specs and statuses.
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

// nodeOf is the node of a type, nil where there are no names in it. tag is that of
// the field that has the type.
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
	default: // nothing else holds names
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

// references collects those of one object.
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

// add adds what a field names. namespace is what is beside the name, or the
// object's own.
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
		return // nothing is named, or something of every namespace
	}
	r.found = append(r.found, Reference{Field: field, Key: key, Optional: tag.optional})
}
