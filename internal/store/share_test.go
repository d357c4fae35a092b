package store

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Equal parts of two objects are stored in memory once, and changing one object does not change the other.
func TestDecodedObjectsShareWhatIsAlike(t *testing.T) {
	codec, err := NewCodec(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	decode := func(name, cluster string, labels map[string]string) *api.Placement {
		t.Helper()
		p := &api.Placement{Metadata: api.Metadata{Name: name, Namespace: "a", Labels: labels, CreatedAt: &at}}
		p.Spec.LabelConstraints = []string{"location is DE"}
		p.Spec.ResourceRequests = api.Quantities{"cpu": "1"}
		p.SetDefaults()
		p.Status.Clusters = []string{cluster}
		p.Status.Decisions = []api.Decision{{Cluster: cluster, Rank: 1, Since: &at}}
		api.SetCondition(&p.Status.Conditions, api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}, at)
		spec, err := codec.EncodeSpec(p)
		if err != nil {
			t.Fatal(err)
		}
		status, err := codec.EncodeStatus(p)
		if err != nil {
			t.Fatal(err)
		}
		object, err := codec.DecodeSpec(api.KindPlacement, bytes.Clone(spec))
		if err != nil {
			t.Fatal(err)
		}
		if err := codec.DecodeStatus(object, bytes.Clone(status)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(object, p) {
			t.Fatalf("decoded\n%+v, want\n%+v", object, p)
		}
		return object.(*api.Placement)
	}
	labels := map[string]string{"team": "blue"}
	x, y := decode("x", "c1", labels), decode("y", "c1", labels)
	other := decode("z", "c2", map[string]string{"team": "red"})
	for _, part := range []struct {
		name string
		of   func(*api.Placement) unsafe.Pointer
		all  bool // also shared with the other object
	}{
		{"time", func(p *api.Placement) unsafe.Pointer { return unsafe.Pointer(p.Metadata.CreatedAt) }, true},
		{"labels", func(p *api.Placement) unsafe.Pointer { return reflect.ValueOf(p.Metadata.Labels).UnsafePointer() }, false},
		{"requests", func(p *api.Placement) unsafe.Pointer { return reflect.ValueOf(p.Spec.ResourceRequests).UnsafePointer() }, true},
		{"constraints", func(p *api.Placement) unsafe.Pointer { return unsafe.Pointer(&p.Spec.LabelConstraints[0]) }, true},
		{"clusters", func(p *api.Placement) unsafe.Pointer { return unsafe.Pointer(&p.Status.Clusters[0]) }, false},
		{"decisions", func(p *api.Placement) unsafe.Pointer { return unsafe.Pointer(&p.Status.Decisions[0]) }, false},
		{"conditions", func(p *api.Placement) unsafe.Pointer { return unsafe.Pointer(&p.Status.Conditions[0]) }, true},
	} {
		if part.of(x) != part.of(y) {
			t.Errorf("equal %s are not shared", part.name)
		}
		if (part.of(x) == part.of(other)) != part.all {
			t.Errorf("different %s are shared, or equal ones are not", part.name)
		}
	}
}

// The memory of the sharing is bounded however much differs, and long values are never shared.
func TestSharingIsBounded(t *testing.T) {
	t.Parallel()
	s := &shared[[]string]{known: map[string][]string{}}
	for i := range 3 * maxShared {
		text := `["` + strings.Repeat("x", i%900) + time.Duration(i).String() + `"]`
		if list, err := s.decode([]byte(text)); err != nil || len(list) != 1 || `["`+list[0]+`"]` != text {
			t.Fatalf("decode(%s) = %q, %v", text, list, err)
		}
		if len(s.known) > maxShared {
			t.Fatalf("%d values are stored", len(s.known))
		}
	}
	clear(s.known)
	if _, err := s.decode([]byte(`["` + strings.Repeat("x", maxSharedText) + `"]`)); err != nil || len(s.known) > 0 {
		t.Errorf("%d values of a long text are stored, %v", len(s.known), err)
	}
	if _, err := s.decode([]byte(`[1]`)); err == nil || len(s.known) > 0 {
		t.Errorf("%d values of an invalid text are stored, %v", len(s.known), err)
	}
}
