package api

import (
	"slices"
	"strings"
	"testing"
)

func TestSpotValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		spot   *SpotSpec
		want   SpotSpec // with defaults
		fields []string
	}{
		{"empty", &SpotSpec{}, SpotSpec{false, DefaultNodeTypeKey, OnDisableKeep}, nil},
		{"enabled", &SpotSpec{Enabled: true}, SpotSpec{true, DefaultNodeTypeKey, OnDisableKeep}, nil},
		{"Karpenter's key", &SpotSpec{Enabled: true, NodeTypeKey: "karpenter.sh/capacity-type", OnDisable: OnDisableRecreate}, SpotSpec{true, "karpenter.sh/capacity-type", OnDisableRecreate}, nil},
		{"key without a prefix", &SpotSpec{NodeTypeKey: "lifecycle"}, SpotSpec{false, "lifecycle", OnDisableKeep}, nil},
		{"everything invalid", &SpotSpec{NodeTypeKey: "a/b/c", OnDisable: "delete"}, SpotSpec{false, "a/b/c", "delete"}, []string{"spec.spot.node_type_key", "spec.spot.on_disable"}},
		{"key too long", &SpotSpec{NodeTypeKey: strings.Repeat("a", 64)}, SpotSpec{false, strings.Repeat("a", 64), OnDisableKeep}, []string{"spec.spot.node_type_key"}},
		{"domain with several parts", &SpotSpec{NodeTypeKey: "a-1.example.com/Capacity_type.x"}, SpotSpec{false, "a-1.example.com/Capacity_type.x", OnDisableKeep}, nil},
	} {
		c := &Cluster{Metadata: Metadata{Name: "c1"}, Spec: ClusterSpec{Spot: tt.spot}}
		c.SetDefaults()
		if *c.Spec.Spot != tt.want || c.SpotEnabled() != tt.want.Enabled {
			t.Errorf("%s: got %+v, want %+v", tt.name, *c.Spec.Spot, tt.want)
		}
		if errs := c.Validate(); !slices.Equal(paths(errs), tt.fields) {
			t.Errorf("%s: errors in %q, want %q: %v", tt.name, paths(errs), tt.fields, errs)
		}
	}
	plain := &Cluster{Metadata: Metadata{Name: "c1"}}
	plain.SetDefaults()
	if plain.Spec.Spot != nil || plain.SpotEnabled() {
		t.Errorf("spot is %+v by default, want nil", plain.Spec.Spot)
	}
}

// TestNodeTypeKeysOfKubernetes checks that keys that Kubernetes rejects are rejected. With such a
// key, no pod of a split workload could be created.
func TestNodeTypeKeysOfKubernetes(t *testing.T) {
	for _, key := range []string{
		"_x", "x_", "-x", "Foo.com/x", "foo..com/x", "foo_bar.com/x", "foo-.com/x", ".com/x", "/x", "x/", strings.Repeat("a", 64),
		"example.com/" + strings.Repeat("a", 64), strings.Repeat("a", 254) + "/x", strings.Repeat("x", 100_000),
	} {
		c := &Cluster{Metadata: Metadata{Name: "c1"}, Spec: ClusterSpec{Spot: &SpotSpec{Enabled: true, NodeTypeKey: key}}}
		c.SetDefaults()
		errs := c.Validate()
		if !slices.Equal(paths(errs), []string{"spec.spot.node_type_key"}) {
			t.Errorf("%.80q: errors in %q", key, paths(errs))
		} else if text := errs.Error(); len(text) > 1000 {
			t.Errorf("%.80q: the error has %d characters", key, len(text))
		}
	}
}
