package columns_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

func chosen(t *testing.T, f *columns.Fleet, p *api.Placement, present placement.Present) []string {
	t.Helper()
	q := enginetest.Compile(t, placement.NewQuery, p)
	var names []string
	for _, c := range placement.Decide(f, q, placement.NewView(f, q, ledger.Others{}, nil), ledger.Others{}, present, f.Now()).Choices {
		names = append(names, f.Name(c.Row))
	}
	return names
}

// In a simulation, an object may have the UID and generation of the live object but different content.
func TestSameGenerationOtherContent(t *testing.T) {
	old := &api.Cluster{Metadata: api.Metadata{Name: "c1", UID: "u", Generation: 7, Labels: map[string]string{"zone": "a"}}}
	f, _ := (&columns.Fleet{}).With(enginetest.Clusters(old), enginetest.Epoch)
	p := enginetest.NewPlacement("web")
	p.Spec.LabelConstraints = []string{"zone is b"}
	now := *old
	now.Metadata.Labels = map[string]string{"zone": "b"}
	now.Spec.Allocatable = api.Quantities{"cpu": "4"}
	f, delta := f.With(enginetest.Clusters(&now), enginetest.Epoch)
	if got := chosen(t, f, p, placement.Present{}); !slices.Equal(got, []string{"c1"}) {
		t.Errorf("chosen %q, want c1 by its new label", got)
	}
	if !slices.Equal(delta.Rows, []int{0}) {
		t.Errorf("delta %+v, want row 0", delta)
	}
	if got := ledger.Available(f, nil, 0)["cpu"]; got != "4" {
		t.Errorf("%q of cpu are available, want 4", got)
	}
}

// A heartbeat that says nothing new concerns nobody, and one that reports new
// amounts touches no set.
func TestHeartbeatTouchesNoSet(t *testing.T) {
	old := &api.Cluster{Metadata: api.Metadata{Name: "c1", Labels: map[string]string{"zone": "a"}}}
	old.Spec.Allocatable = api.Quantities{"cpu": "4", "memory": "1Gi"}
	f, _ := (&columns.Fleet{}).With(enginetest.Clusters(old), enginetest.Epoch)
	alive := *old
	alive.Status.LastHeartbeatAt = new(enginetest.Epoch)
	g, delta := f.With(enginetest.Clusters(&alive), enginetest.Epoch)
	if !delta.Empty() {
		t.Errorf("delta %+v, want an empty one", delta)
	}
	if g.Cluster(0) != &alive {
		t.Error("the fleet still has the old object")
	}
	g.Uncommitted() // builds the columns
	busy := alive
	busy.Status.Allocated = api.Quantities{"cpu": "1"}
	h, delta := g.With(enginetest.Clusters(&busy), enginetest.Epoch)
	if !slices.Equal(delta.Rows, []int{0}) {
		t.Errorf("delta %+v, want row 0", delta)
	}
	if h.Labels().Of("zone").Values["a"] != f.Labels().Of("zone").Values["a"] || h.Uncommitted()["memory"] != g.Uncommitted()["memory"] {
		t.Error("a report of cpu copied a set or another column")
	}
	if got := ledger.Available(h, nil, 0)["cpu"]; got != "3" {
		t.Errorf("%q of cpu are available, want 3", got)
	}
}

func TestReturnInTime(t *testing.T) {
	w := enginetest.NewWorld()
	m := w.Gauge("load", 0, 1, 0.5)
	m.Spec.MaxAge = "30s"
	m.Status.Conditions[0] = api.Condition{
		Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider,
	}
	w.Cluster("c1", map[string]float64{"load": 1})
	f := w.Fleet()
	if at := f.NextAt(); !at.Equal(enginetest.Epoch.Add(30 * time.Second)) {
		t.Fatalf("NextAt %v, want the end of max_age", at)
	}
	p := enginetest.NewPlacement("web")
	late, delta := f.With(columns.Changes{}, enginetest.Epoch.Add(30*time.Second))
	if got := chosen(t, late, p, placement.Present{}); got != nil || !late.NextAt().IsZero() || !slices.Equal(delta.Rows, []int{0}) {
		t.Errorf("chosen %q, NextAt %v, delta %+v; want none, none and row 0", got, late.NextAt(), delta)
	}
	back, _ := late.With(columns.Changes{}, enginetest.Epoch.Add(29*time.Second))
	if got := chosen(t, back, p, placement.Present{}); len(got) != 1 || !back.NextAt().Equal(f.NextAt()) {
		t.Errorf("chosen %q, NextAt %v, want one cluster: the value is usable again at an earlier time", got, back.NextAt())
	}
}

// Providers and metrics may come in any order, go, and come again.
func TestArrivalOrder(t *testing.T) {
	w := enginetest.NewWorld()
	m := w.Gauge("load", 0, 1, 0.5)
	c := w.Cluster("c1", map[string]float64{"load": 1})
	provider := w.Providers[m.ProviderKey()]
	p := enginetest.NewPlacement("web")
	f := &columns.Fleet{}
	step := func(c columns.Changes, fits, names bool) {
		t.Helper()
		var delta columns.Delta
		f, delta = f.With(c, enginetest.Epoch)
		if got := chosen(t, f, p, placement.Present{}); (len(got) == 1) != fits {
			t.Errorf("%+v: chosen %q, want a choice: %t", c, got, fits)
		}
		if delta.Fleet.Any(columns.MetricNames) != names {
			t.Errorf("%+v: delta with MetricNames %t, want the opposite", c, delta.Fleet.Any(columns.MetricNames))
		}
	}
	metric := func(m *api.Metric) columns.Changes {
		return columns.Changes{Metrics: map[api.Key]*api.Metric{{Kind: api.KindMetric, Name: "load"}: m}}
	}
	from := func(p *api.MetricsProvider) columns.Changes {
		return columns.Changes{Providers: map[api.Key]*api.MetricsProvider{m.ProviderKey(): p}}
	}
	step(metric(nil), false, false)
	step(enginetest.Clusters(c), false, false)
	step(metric(m), false, true)
	step(from(provider), true, false)
	step(from(nil), false, false)
	step(from(provider), true, false)
	step(metric(nil), false, true)
	step(metric(m), true, true)
	step(enginetest.Clusters(&api.Cluster{Metadata: api.Metadata{Name: "c1"}}), true, false)
	step(columns.Changes{Clusters: map[string]*api.Cluster{"c1": nil, "c9": nil}}, false, false)
	if f.Len() != 0 || f.Slots() != 1 || f.Cluster(0) != nil || f.Cluster(99) != nil {
		t.Errorf("%d clusters in %d slots, want an empty slot", f.Len(), f.Slots())
	}
}

// Free rows are reused, and sets switch between lists and bitmaps as they grow and shrink.
func TestSlotsAndSets(t *testing.T) {
	named := func(i int, zone string) *api.Cluster {
		return &api.Cluster{Metadata: api.Metadata{Name: fmt.Sprintf("c%04d", i), Labels: map[string]string{"zone": zone}}}
	}
	f := &columns.Fleet{}
	for size, zone := range []string{"a", "a", "b", "a", "b", "b", "a"} {
		changes := columns.Changes{Clusters: map[string]*api.Cluster{}}
		n := []int{5, 70, 300, 1000, 40, 2, 600}[size]
		for i := range 1000 {
			c := named(i, zone)
			changes.Clusters[c.Metadata.Name] = c
			if i >= n {
				changes.Clusters[c.Metadata.Name] = nil
			}
		}
		f, _ = f.With(changes, enginetest.Epoch)
		if f.Len() != n || f.Labels().Of("zone").Values[zone].Len() != n || f.Labels().Of("zone").Rows.Len() != n {
			t.Fatalf("%d clusters, %d in the zone; want %d", f.Len(), f.Labels().Of("zone").Values[zone].Len(), n)
		}
		for _, other := range []string{"a", "b"} {
			if other != zone && f.Labels().Of("zone").Values[other].Len() != 0 {
				t.Fatalf("%d clusters are still in zone %s", f.Labels().Of("zone").Values[other].Len(), other)
			}
		}
		count := 0
		f.Labels().Of("zone").Values[zone].Each(func(row int) {
			count++
			if f.Cluster(row) == nil || !f.Labels().Of("zone").Values[zone].Has(row) {
				t.Fatalf("row %d is in the zone, but not in use", row)
			}
		})
		if count != n {
			t.Fatalf("%d rows, want %d", count, n)
		}
		if n > 600 && f.Labels().Of("zone").Values[zone].Dense() == nil || n < 5 && f.Labels().Of("zone").Values[zone].Dense() != nil {
			t.Errorf("the set of %d out of %d rows is stored in the wrong form", n, f.Slots())
		}
		p := enginetest.NewPlacement("web")
		p.Spec.NumberOfClusters, p.Spec.LabelConstraints = nil, []string{"zone is " + zone}
		if got := chosen(t, f, p, placement.Present{}); len(got) != n {
			t.Fatalf("%d chosen, want %d", len(got), n)
		}
	}
	if f.Slots() != 1000 {
		t.Errorf("%d slots, want 1000: free slots are reused first", f.Slots())
	}
}

// A name that means several metrics is the placement's own, else the global one,
// else the first listed.
func TestOneNameSeveralMetrics(t *testing.T) {
	w := enginetest.NewWorld()
	global := w.Gauge("load", 0, 10, 1)
	for namespace, value := range map[string]float64{"shop": 5, "bank": 9} {
		m := *global
		m.Metadata.Namespace, m.Status.Value = namespace, &value
		w.Metrics[api.KeyOf(&m)] = &m
		w.Providers[m.ProviderKey()] = &api.MetricsProvider{}
	}
	c := w.Cluster("all", nil)
	c.Spec.Metrics = []api.MetricRef{{Name: "load", Namespace: "bank"}, {Name: "load"}, {Name: "load", Namespace: "shop"}}
	c = w.Cluster("foreign", nil)
	c.Spec.Metrics = []api.MetricRef{{Name: "load", Namespace: "bank"}, {Name: "load", Namespace: "shop"}}
	for _, tt := range []struct{ namespace, constraint, cluster string }{
		{"shop", "load = 5", "all"}, {"bank", "load = 9", "all"}, {"default", "load = 1", "all"},
		{"shop", "load = 5", "foreign"}, {"default", "load = 9", "foreign"},
	} {
		p := enginetest.NewPlacement("web")
		p.Metadata.Namespace = tt.namespace
		p.Spec.NumberOfClusters, p.Spec.MetricConstraints = nil, []string{tt.constraint}
		if got := chosen(t, w.Fleet(), p, placement.Present{}); !slices.Contains(got, tt.cluster) {
			t.Errorf("%+v: chosen %q", tt, got)
		}
	}
}

// If a metric's range changes together with its value, its score stays the same, but constraints compare the raw value.
func TestRawValueAlone(t *testing.T) {
	w := enginetest.NewWorld()
	m := w.Gauge("load", 0, 10, 5)
	w.Cluster("c1", map[string]float64{"load": 1})
	f := w.Fleet()
	rescaled := *m
	rescaled.Spec.Max, rescaled.Status.Value = new(1.0), new(0.5)
	_, delta := f.With(columns.Changes{Metrics: map[api.Key]*api.Metric{{Kind: api.KindMetric, Name: "load"}: &rescaled}}, enginetest.Epoch)
	if !slices.Equal(delta.Rows, []int{0}) {
		t.Errorf("delta %+v, want row 0", delta)
	}
}

// Those who look at a fleet may do so at once, and while later ones are made of it:
// what they are the first to ask for is made once for all.
func TestReadersAtOnce(t *testing.T) {
	w := enginetest.NewWorld()
	for i := range 200 {
		c := w.Cluster(fmt.Sprintf("c%03d", i), nil)
		c.Metadata.Labels = map[string]string{"zone": fmt.Sprintf("z%d", i%3), "host": c.Metadata.Name}
		c.Spec.Claims = map[string]string{"id": c.Metadata.Name}
		c.Spec.Allocatable = api.Quantities{"cpu": "4"}
	}
	f := w.Fleet()
	var all sync.WaitGroup
	for step := range 20 {
		now := f
		for range 4 {
			all.Go(func() {
				zone := now.Labels().Of("zone")
				if zone.Rows.Len() != 200 || now.Labels().Of("none").Rows.Len() != 0 || now.Claims().Of("id").Rows.Len() != 200 {
					t.Errorf("%d clusters are in a zone, want all 200", zone.Rows.Len())
				}
				if left := now.Uncommitted()["cpu"].At(0); left != amount.Units(4) {
					t.Errorf("%s of cpu are left, want 4000", left)
				}
			})
		}
		moved := *w.Clusters[fmt.Sprintf("c%03d", step)]
		moved.Metadata.Labels = map[string]string{"zone": "z9", "host": "moved"}
		moved.Spec.Allocated = api.Quantities{"memory": "1"}
		f, _ = f.With(enginetest.Clusters(&moved), enginetest.Epoch)
	}
	all.Wait()
	if n := f.Labels().Of("zone").Values["z9"].Len(); n != 20 {
		t.Errorf("%d clusters moved to zone z9, want 20", n)
	}
}

// A cluster without labels makes the bitmaps longer all the same: the fleet before it
// is not given those of the fleet with it.
func TestOlderFleetKeepsItsLength(t *testing.T) {
	w := enginetest.NewWorld()
	for i := range 64 {
		w.Cluster(fmt.Sprintf("c%02d", i), nil).Metadata.Labels = map[string]string{"zone": "a"}
	}
	f := w.Fleet()
	g, _ := f.With(enginetest.Clusters(&api.Cluster{Metadata: api.Metadata{Name: "c64"}}), enginetest.Epoch)
	for _, f := range []*columns.Fleet{g, f} {
		rows := columns.NewBitmap(f.Slots())
		f.Labels().Of("zone").Values["a"].OrInto(rows)
		if rows.Count() != 64 {
			t.Errorf("%d of %d clusters are in the zone, want 64", rows.Count(), f.Len())
		}
	}
}

// Most labels are never read and must cost neither memory nor time, even if each cluster has a label of its own.
func TestSetsAreBuiltOnDemand(t *testing.T) {
	w := enginetest.NewWorld()
	for _, name := range []string{"c1", "c2"} {
		w.Cluster(name, nil).Metadata.Labels = map[string]string{"zone": "a", "host": name}
	}
	f := w.Fleet()
	f.Labels().Of("zone")
	if made := f.Labels().Made(); !slices.Equal(made, []string{"zone"}) {
		t.Errorf("sets for the labels %q, want zone only", made)
	}
	moved := *w.Clusters["c1"]
	moved.Metadata.Labels = map[string]string{"zone": "b", "host": "other"}
	f, _ = f.With(enginetest.Clusters(&moved), enginetest.Epoch)
	if made := f.Labels().Made(); !slices.Equal(made, []string{"zone"}) {
		t.Errorf("sets for the labels %q after a change, want zone only", made)
	}
	f.Labels().Of("none") // no cluster has it
	if made := f.Labels().Made(); !slices.Equal(made, []string{"host", "zone"}) {
		t.Errorf("sets for the labels %q, want all: otherwise every lookup of an unused label scans all clusters", made)
	}
}
