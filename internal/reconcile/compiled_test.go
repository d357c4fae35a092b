package reconcile

import (
	"reflect"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// A spec is compiled once for all placements of a namespace that share its memory.
func TestPlacementsOfOneSpecAreCompiledOnce(t *testing.T) {
	c := compiled{}
	query := func(namespace, name string, spec api.PlacementSpec) *placement.Query {
		t.Helper()
		p := &api.Placement{Metadata: api.Metadata{Namespace: namespace, Name: name, UID: name}, Spec: spec}
		q, err := c.query(p)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := placement.NewQuery(p); err != nil || !reflect.DeepEqual(q, want) {
			t.Errorf("the query of %s/%s is %+v, want %+v as compiled separately, error %v", namespace, name, q, want, err)
		}
		return q
	}
	object := newPlacement("a", 1, func(s *api.PlacementSpec) { s.LabelConstraints = []string{"tier is gold"} })
	object.SetDefaults()
	spec := object.Spec
	first := query("shop", "a", spec)
	if !query("shop", "b", spec).Shares(first) {
		t.Error("an equal spec is compiled again")
	}
	if query("other", "a", spec).Shares(first) {
		t.Error("placements of different namespaces share a query")
	}
	if _, err := c.query(&api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "bad"}, Spec: api.PlacementSpec{Strategy: "none", Metrics: spec.Metrics}}); err == nil {
		t.Error("an invalid spec is mistaken for another one")
	}
}

// Whatever differs in a spec has it compiled by itself.
func TestOnlyEqualSpecsAreAlike(t *testing.T) {
	object := newPlacement("a", 1)
	object.SetDefaults()
	spec := object.Spec
	if other := spec; !sameMemory(&spec, &other) {
		t.Fatal("sameMemory() = false for a copy")
	}
	for i := range reflect.TypeFor[api.PlacementSpec]().NumField() {
		other := spec
		field := reflect.ValueOf(&other).Elem().Field(i)
		name := reflect.TypeFor[api.PlacementSpec]().Field(i).Name
		switch field.Kind() {
		case reflect.Pointer:
			field.Set(reflect.New(field.Type().Elem()))
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
			filled := other
			if field.Set(reflect.MakeSlice(field.Type(), 1, 1)); sameMemory(&filled, &other) {
				t.Errorf("sameMemory() = true for specs with different %s", name)
			}
		case reflect.Map:
			field.Set(reflect.ValueOf(api.Quantities{"cpu": "1"}))
		case reflect.String:
			field.SetString(field.String() + "x")
		case reflect.Float64:
			field.SetFloat(field.Float() + 1)
		default:
			t.Fatalf("%s has the type %s, which the test does not change", name, field.Type())
		}
		if sameMemory(&spec, &other) {
			t.Errorf("sameMemory() = true for specs with different %s", name)
		}
	}
}

// However many specs there are, few are kept.
func TestCompiledSpecsAreBounded(t *testing.T) {
	c := compiled{}
	for range maxCompiled + 10 {
		p := newPlacement("a", 1)
		p.SetDefaults()
		if _, err := c.query(p); err != nil {
			t.Fatal(err)
		}
	}
	if len(c) != 10 {
		t.Errorf("%d specs are kept, want 10", len(c))
	}
}
