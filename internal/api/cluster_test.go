package api

import (
	"slices"
	"testing"
)

func TestClusterOwnersAreValidated(t *testing.T) {
	for text, field := range map[string]string{
		`{}`: "", `{"namespace":"a"}`: "", `{"namespaces":["a"]}`: "", `{"namespaces":["b","a"]}`: "", `{"namespaces":null}`: "",
		`{"namespaces":[]}`:                        "spec.namespaces",
		`{"namespace":"a","namespaces":["a","b"]}`: "spec.namespaces",
		`{"namespaces":["a","a"]}`:                 "spec.namespaces[1]",
		`{"namespaces":["a",""]}`:                  "spec.namespaces[1]",
		`{"namespaces":["*"]}`:                     "spec.namespaces[0]",
		`{"namespaces":["a","Not a name"]}`:        "spec.namespaces[1]",
		`{"namespaces":["a",null]}`:                "spec.namespaces[1]",
		`{"namespace":"a","namespaces":[]}`:        "spec.namespaces",
	} {
		o, err := Decode([]byte(`{"kind":"cluster","metadata":{"name":"c"},"spec":` + text + `}`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		errs := o.Validate()
		if field == "" && len(errs) > 0 || field != "" && (len(errs) != 1 || errs[0].Field != field) {
			t.Errorf("%s: got %v, want an error of %q", text, errs, field)
		}
	}
}

func TestClusterVisibility(t *testing.T) {
	for _, test := range []struct {
		spec   ClusterSpec
		owners []string
		sees   []string
		hidden []string
	}{
		{ClusterSpec{}, nil, []string{"", "a", "b"}, nil},
		{ClusterSpec{Namespace: "a"}, []string{"a"}, []string{"a"}, []string{"", "b"}},
		{ClusterSpec{Namespaces: []string{"a", "b"}}, []string{"a", "b"}, []string{"a", "b"}, []string{"", "c"}},
	} {
		c := &Cluster{Spec: test.spec}
		if !slices.Equal(c.Owners(), test.owners) {
			t.Errorf("Owners() of %+v = %v", test.spec, c.Owners())
		}
		for _, namespace := range test.sees {
			if !c.VisibleTo(namespace) {
				t.Errorf("%q does not see a cluster of %v", namespace, test.owners)
			}
		}
		for _, namespace := range test.hidden {
			if c.VisibleTo(namespace) {
				t.Errorf("%q sees a cluster of %v", namespace, test.owners)
			}
		}
	}
}

// TestPlaceOfACluster: what is declared comes before what was observed, and that before the zone that
// the cluster represents. The region and the zones are found independently.
func TestPlaceOfACluster(t *testing.T) {
	represented := &ClusterOpenStack{Cloud: "paris", Region: "west", AvailabilityZone: "az1"}
	for name, tt := range map[string]struct {
		spec   ClusterSpec
		status ClusterStatus
		region string
		zones  []string
	}{
		"unknown":               {},
		"declared":              {ClusterSpec{Region: "eu", Zones: []string{"a", "b"}}, ClusterStatus{Region: "us", Zones: []string{"c"}}, "eu", []string{"a", "b"}},
		"observed":              {ClusterSpec{OpenStack: represented}, ClusterStatus{Region: "us", Zones: []string{"c"}}, "us", []string{"c"}},
		"represented":           {ClusterSpec{OpenStack: represented}, ClusterStatus{}, "west", []string{"az1"}},
		"declared region only":  {ClusterSpec{Region: "eu", OpenStack: represented}, ClusterStatus{}, "eu", []string{"az1"}},
		"observed zones only":   {ClusterSpec{OpenStack: represented}, ClusterStatus{Zones: []string{"c"}}, "west", []string{"c"}},
		"empty list is no zone": {ClusterSpec{Zones: []string{}, OpenStack: represented}, ClusterStatus{}, "west", []string{"az1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{Spec: tt.spec, Status: tt.status}
			if region, zones := c.Region(), c.Zones(); region != tt.region || !slices.Equal(zones, tt.zones) {
				t.Errorf("in region %q, zones %q, want %q and %q", region, zones, tt.region, tt.zones)
			}
		})
	}
}
