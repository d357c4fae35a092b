package expression

import (
	"reflect"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// subject is a cluster during one evaluation: the variables of the expression. Its objects are part
// of it, so that reading a field allocates nothing.
type subject struct {
	cluster Cluster
	cost    int
	objects [shapeCount]object
}

// subjects is the pool of unused subjects: computing a mask evaluates an expression ten thousand
// times in a row.
var subjects = sync.Pool{New: func() any {
	s := &subject{}
	for i := range s.objects {
		s.objects[i] = object{subject: s, shape: &shapes[i]}
	}
	return s
}}

// ResolveName implements interpreter.Activation.
func (s *subject) ResolveName(name string) (any, bool) {
	switch name {
	case clusterVariable:
		return &s.objects[shapeCluster], true
	case managedClusterVariable:
		return &s.objects[shapeManagedCluster], true
	case costVariable:
		return s, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (s *subject) Parent() cel.Activation { return nil }

// object is a part of a cluster that has fields. A field's value is computed when it is read. For
// `managedCluster` it is a map, because Open Cluster Management does not type it; for `cluster` it
// has its own type, so that misspelled fields are detected when the expression is compiled.
type object struct {
	subject *subject
	shape   *shape
}

// shape lists the fields of an object.
type shape struct {
	typ    *types.Type
	fields []field
}

// field is one field of an object; get returns nil if the cluster has no value.
type field struct {
	name string
	typ  *types.Type
	get  func(s *subject) ref.Val
}

func (s *shape) field(name string) *field {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	f := o.shape.field(string(name))
	if f == nil {
		return nil, false
	}
	v := f.get(o.subject)
	return v, v != nil
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val { return get(o, key) }

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val { return contains(o, key) }

// Size implements traits.Sizer.
func (o *object) Size() ref.Val { return o.whole().Size() }

// Iterator implements traits.Iterable.
func (o *object) Iterator() traits.Iterator { return o.whole().Iterator() }

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(t reflect.Type) (any, error) { return o.whole().ConvertToNative(t) }

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val { return convert(o, t) }

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val {
	if v, ok := other.(*object); ok && v.shape == o.shape && v.subject == o.subject {
		return types.True
	}
	return o.whole().Equal(other)
}

// Type implements ref.Val.
func (o *object) Type() ref.Type { return o.shape.typ }

// Value implements ref.Val.
func (o *object) Value() any { return o }

// whole returns the object with all its fields as a map, for the rare expression that iterates over
// them.
func (o *object) whole() *table {
	entries := make(map[string]ref.Val, len(o.shape.fields))
	for i := range o.shape.fields {
		f := &o.shape.fields[i]
		if v := f.get(o.subject); v != nil {
			entries[f.name] = v
		}
	}
	return newTable(entries)
}
