package api

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestOnDemandAmount(t *testing.T) {
	const wrong = -1
	for _, tt := range []struct {
		text    string
		n       int64
		percent bool
	}{
		{"0", 0, false}, {"3", 3, false}, {"2147483647", math.MaxInt32, false}, {"0%", 0, true}, {"30%", 30, true}, {"100%", 100, true},
		{"", wrong, false}, {"%", wrong, false}, {"-1", wrong, false}, {"-1%", wrong, false}, {"101%", wrong, false}, {"2147483648", wrong, false},
		{"99999999999999999999", wrong, false}, {"1.5", wrong, false}, {"33.3%", wrong, false}, {"3 ", wrong, false}, {" 3", wrong, false}, {"30 %", wrong, false},
		{"+3", wrong, false}, {"03", wrong, false}, {"-0", wrong, false}, {"0x3", wrong, false}, {"1_0", wrong, false}, {"3%%", wrong, false}, {"%3", wrong, false}, {"three", wrong, false},
	} {
		n, percent, err := OnDemandAmount(tt.text).Parse()
		switch {
		case tt.n == wrong && (err == nil || !strings.Contains(err.Error(), strconv.Quote(tt.text))):
			t.Errorf("%q: read as %d, error %v", tt.text, n, err)
		case tt.n != wrong && (err != nil || n != tt.n || percent != tt.percent):
			t.Errorf("%q: read as %d, percent %t, %v", tt.text, n, percent, err)
		}
	}
}

// FuzzOnDemandAmount checks that accepted amounts have one spelling and are within bounds.
func FuzzOnDemandAmount(f *testing.F) {
	for _, seed := range []string{"", "0", "3", "30%", "100%", "101%", "-1", "+1", "007", "9223372036854775808", "3 %", "٣", "1e3", "\x00", "%%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, percent, err := OnDemandAmount(text).Parse()
		if err != nil {
			if n != 0 || percent {
				t.Fatalf("%q is rejected (%s), but read as %d", text, err, n)
			}
			return
		}
		again := strconv.FormatInt(n, 10)
		if percent {
			again += "%"
		}
		if again != text || n < 0 || n > maxReplicas || percent && n > 100 {
			t.Fatalf("%q is read as %d, percent %t", text, n, percent)
		}
	})
}

func TestDistributionValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(w *Workload)
		fields []string
	}{
		{"empty", func(w *Workload) { w.Spec.Distribution = &DistributionSpec{} }, nil},
		{"StatefulSet", func(w *Workload) {
			w.Spec.Kind, w.Spec.Distribution = KindStatefulSet, &DistributionSpec{Mode: ModeMajorityInOnDemand}
		}, nil},
		{"not replicated", func(w *Workload) { w.Spec.Replicas, w.Spec.Distribution = nil, &DistributionSpec{Mode: ModeAllInSpot} }, nil},
		{"count", func(w *Workload) { w.Spec.Distribution = &DistributionSpec{Mode: ModeCustom, CustomOnDemand: "2"} }, nil},
		{"count above the replicas", func(w *Workload) { w.Spec.Distribution = &DistributionSpec{Mode: ModeCustom, CustomOnDemand: "200"} }, nil},
		{"percentage", func(w *Workload) { w.Spec.Distribution = &DistributionSpec{Mode: ModeCustom, CustomOnDemand: "30%"} }, nil},
		{"amount that the mode does not use", func(w *Workload) { w.Spec.Distribution = &DistributionSpec{Mode: ModeAllInSpot, CustomOnDemand: "2"} }, nil},
		{"custom without an amount", func(w *Workload) { w.Spec.Distribution = &DistributionSpec{Mode: ModeCustom} }, []string{"spec.distribution.custom_on_demand"}},
		{"invalid amount that the mode does not use", func(w *Workload) { w.Spec.Distribution = &DistributionSpec{CustomOnDemand: "x"} }, []string{"spec.distribution.custom_on_demand"}},
		{"everything invalid", func(w *Workload) {
			w.Spec.Kind, w.Spec.Distribution = "DaemonSet", &DistributionSpec{Mode: "all-in-spot", CustomOnDemand: "130%"}
		}, []string{"spec.distribution", "spec.distribution.mode", "spec.distribution.custom_on_demand"}},
		{"Deployment of another group", func(w *Workload) {
			w.Spec.APIVersion, w.Spec.Distribution = "example.com/v1", &DistributionSpec{}
		}, []string{"spec.distribution"}},
	} {
		errs := testWorkload(tt.change).Validate()
		if got := paths(errs); !slices.Equal(got, tt.fields) {
			t.Errorf("%s: errors in %q, want %q: %v", tt.name, got, tt.fields, errs)
		}
	}
}

// TestDistributionOnTheWire checks that an absent and an empty distribution stay distinct.
func TestDistributionOnTheWire(t *testing.T) {
	var intents []*Workload
	for text, want := range map[string]*DistributionSpec{
		`{}`: nil, `{"distribution":null}`: nil, `{"distribution":{}}`: {}, `{"distribution":{"mode":"all_in_spot"}}`: {Mode: ModeAllInSpot},
		`{"distribution":{"mode":"custom","custom_on_demand":"30%"}}`: {Mode: ModeCustom, CustomOnDemand: "30%"},
	} {
		o, err := Decode([]byte(`{"kind":"workload","metadata":{"name":"w"},"spec":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := o.(*Workload).Spec.Distribution; (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%s is read as %+v", text, got)
			}
			written, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if o, err = Decode(written); err != nil {
				t.Fatal(err)
			}
		}
		intents = append(intents, o.(*Workload))
	}
	for i, a := range intents {
		for j, b := range intents {
			same := i == j || a.Spec.Distribution == nil && b.Spec.Distribution == nil
			if SameIntent(a, b) != same {
				t.Errorf("SameIntent() of %+v and %+v = %t", a.Spec.Distribution, b.Spec.Distribution, !same)
			}
		}
	}
	for _, text := range []string{`{"mode":1}`, `{"custom_on_demand":3}`, `{"percent":"30%"}`, `[]`} {
		if o, err := Decode([]byte(`{"kind":"workload","metadata":{"name":"w"},"spec":{"distribution":` + text + `}}`)); err == nil {
			t.Errorf("%s is read as %+v", text, o.(*Workload).Spec.Distribution)
		}
	}
}

// TestSplitStatusRoundTrip checks that the split in a status survives a round trip. No replicas on
// on-demand nodes is not the same as no split.
func TestSplitStatusRoundTrip(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := testWorkload(func(w *Workload) {
		w.Status.Clusters = []WorkloadCluster{{Name: "a", Replicas: 3, OnDemand: new(int64(0)), Spot: new(int64(3))}, {Name: "b", Replicas: 3}}
		w.Status.Distribution = []ClusterDistribution{{
			Cluster: "a", Replicas: 3, Mode: ModeAllInSpot, TargetSpot: 3, Spot: 3, FallenBack: 1, Replaced: 2, State: DistributionDegraded, Message: "m", ObservedAt: &at,
		}, {Cluster: "b", State: DistributionAbsent}}
	})
	first, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := json.Marshal(again); err != nil || string(second) != string(first) {
		t.Errorf("encoded as\n%s, then as\n%s (%v)", first, second, err)
	}
	for _, want := range []string{
		`{"name":"a","replicas":3,"on_demand":0,"spot":3}`, `{"name":"b","replicas":3}`,
		`{"cluster":"b","replicas":0,"target_on_demand":0,"target_spot":0,"on_demand":0,"spot":0,"state":"absent"}`,
	} {
		if !strings.Contains(string(first), want) {
			t.Errorf("%s\ndoes not contain %s", first, want)
		}
	}
}

func TestSameDistribution(t *testing.T) {
	at, later := time.Unix(1, 0), time.Unix(2, 0)
	base := ClusterDistribution{Cluster: "a", Replicas: 3, State: DistributionConverged, ObservedAt: &at}
	for name, tt := range map[string]struct {
		change func(d *ClusterDistribution)
		same   bool
	}{
		"nothing":      {func(*ClusterDistribution) {}, true},
		"later":        {func(d *ClusterDistribution) { d.ObservedAt = &later }, true},
		"never":        {func(d *ClusterDistribution) { d.ObservedAt = nil }, true},
		"another pod":  {func(d *ClusterDistribution) { d.Spot++ }, false},
		"fallen back":  {func(d *ClusterDistribution) { d.FallenBack++ }, false},
		"another word": {func(d *ClusterDistribution) { d.Message = "m" }, false},
		"state":        {func(d *ClusterDistribution) { d.State = DistributionWaiting }, false},
	} {
		other := base
		tt.change(&other)
		if base.Same(other) != tt.same || other.Same(base) != tt.same {
			t.Errorf("%s: Same() is not %t", name, tt.same)
		}
	}
	if base.ObservedAt != &at {
		t.Error("Same() modified the distribution")
	}
}
