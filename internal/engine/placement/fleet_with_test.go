package placement

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

func clusters(list ...*api.Cluster) columns.Changes {
	c := columns.Changes{Clusters: map[string]*api.Cluster{}}
	for _, x := range list {
		c.Clusters[x.Metadata.Name] = x
	}
	return c
}

func chosen(t *testing.T, f *columns.Fleet, p *api.Placement, present Present) []string {
	t.Helper()
	q := compile(t, p)
	var names []string
	for _, c := range Decide(f, q, NewView(f, q, ledger.Others{}, nil), ledger.Others{}, present, f.Now()).Choices {
		names = append(names, f.Name(c.Row))
	}
	return names
}

// A simulation may lay an object over the fleet that has the uid and generation
// of the live one and says something else.
func TestSameGenerationOtherContent(t *testing.T) {
	old := &api.Cluster{Metadata: api.Metadata{Name: "c1", UID: "u", Generation: 7, Labels: map[string]string{"zone": "a"}}}
	f, _ := (&columns.Fleet{}).With(clusters(old), enginetest.Epoch)
	p := enginetest.NewPlacement("web")
	p.Spec.LabelConstraints = []string{"zone is b"}
	now := *old
	now.Metadata.Labels = map[string]string{"zone": "b"}
	now.Spec.Allocatable = api.Quantities{"cpu": "4"}
	f, delta := f.With(clusters(&now), enginetest.Epoch)
	if got := chosen(t, f, p, Present{}); !slices.Equal(got, []string{"c1"}) {
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
	f, _ := (&columns.Fleet{}).With(clusters(old), enginetest.Epoch)
	alive := *old
	alive.Status.LastHeartbeatAt = ptr(enginetest.Epoch)
	g, delta := f.With(clusters(&alive), enginetest.Epoch)
	if !delta.Empty() {
		t.Errorf("delta %+v, want an empty one", delta)
	}
	if g.Cluster(0) != &alive {
		t.Error("the fleet shows the old object")
	}
	busy := alive
	busy.Status.Allocated = api.Quantities{"cpu": "1"}
	h, delta := g.With(clusters(&busy), enginetest.Epoch)
	if !slices.Equal(delta.Rows, []int{0}) {
		t.Errorf("delta %+v, want row 0", delta)
	}
	if h.Labels().Values["zone"]["a"] != f.Labels().Values["zone"]["a"] || &h.Uncommitted()["memory"][0] != &g.Uncommitted()["memory"][0] {
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
	if got := chosen(t, late, p, Present{}); got != nil || !late.NextAt().IsZero() || !slices.Equal(delta.Rows, []int{0}) {
		t.Errorf("chosen %q, next %v, delta %+v; want none of each but row 0", got, late.NextAt(), delta)
	}
	back, _ := late.With(columns.Changes{}, enginetest.Epoch.Add(29*time.Second))
	if got := chosen(t, back, p, Present{}); len(got) != 1 || !back.NextAt().Equal(f.NextAt()) {
		t.Errorf("chosen %q until %v: at an earlier moment the value is usable again", got, back.NextAt())
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
		if got := chosen(t, f, p, Present{}); (len(got) == 1) != fits {
			t.Errorf("%+v: chosen %q, want one: %t", c, got, fits)
		}
		if delta.Fleet.Any(columns.MetricNames) != names {
			t.Errorf("%+v: MetricNames %t", c, delta.Fleet.Any(columns.MetricNames))
		}
	}
	metric := func(m *api.Metric) columns.Changes {
		return columns.Changes{Metrics: map[api.Key]*api.Metric{metricKey("load"): m}}
	}
	from := func(p *api.MetricsProvider) columns.Changes {
		return columns.Changes{Providers: map[api.Key]*api.MetricsProvider{m.ProviderKey(): p}}
	}
	step(metric(nil), false, false)
	step(clusters(c), false, false)
	step(metric(m), false, true)
	step(from(provider), true, false)
	step(from(nil), false, false)
	step(from(provider), true, false)
	step(metric(nil), false, true)
	step(metric(m), true, true)
	step(clusters(&api.Cluster{Metadata: api.Metadata{Name: "c1"}}), true, false)
	step(columns.Changes{Clusters: map[string]*api.Cluster{"c1": nil, "c9": nil}}, false, false)
	if f.Len() != 0 || f.Slots() != 1 || f.Cluster(0) != nil || f.Cluster(99) != nil {
		t.Errorf("%d clusters in %d slots, want an empty slot", f.Len(), f.Slots())
	}
}

// Rows that fall free are used again, and sets turn from lists to bitmaps and
// back as they grow and shrink.
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
		if f.Len() != n || f.Labels().Values["zone"][zone].Len() != n || f.Labels().Keys["zone"].Len() != n {
			t.Fatalf("%d clusters, %d in the zone; want %d", f.Len(), f.Labels().Values["zone"][zone].Len(), n)
		}
		for _, other := range []string{"a", "b"} {
			if other != zone && f.Labels().Values["zone"][other].Len() != 0 {
				t.Fatalf("%d clusters are still in zone %s", f.Labels().Values["zone"][other].Len(), other)
			}
		}
		count := 0
		f.Labels().Values["zone"][zone].Each(func(row int) {
			count++
			if f.Cluster(row) == nil || !f.Labels().Values["zone"][zone].Has(row) {
				t.Fatalf("row %d is in the zone and not in use", row)
			}
		})
		if count != n {
			t.Fatalf("%d rows, want %d", count, n)
		}
		if n > 600 && f.Labels().Values["zone"][zone].Dense == nil || n < 5 && f.Labels().Values["zone"][zone].Dense != nil {
			t.Errorf("%d of %d rows are kept in the wrong form", n, f.Slots())
		}
		p := enginetest.NewPlacement("web")
		p.Spec.NumberOfClusters, p.Spec.LabelConstraints = nil, []string{"zone is " + zone}
		if got := chosen(t, f, p, Present{}); len(got) != n {
			t.Fatalf("%d chosen, want %d", len(got), n)
		}
	}
	if f.Slots() != 1000 {
		t.Errorf("%d slots, want 1000: free ones are used before new ones", f.Slots())
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
		if got := chosen(t, w.Fleet(), p, Present{}); !slices.Contains(got, tt.cluster) {
			t.Errorf("%+v: chosen %q", tt, got)
		}
	}
}

// A metric whose range moves along with its value has the same score, but
// constraints compare the raw value.
func TestRawValueAlone(t *testing.T) {
	w := enginetest.NewWorld()
	m := w.Gauge("load", 0, 10, 5)
	w.Cluster("c1", map[string]float64{"load": 1})
	f := w.Fleet()
	rescaled := *m
	rescaled.Spec.Max, rescaled.Status.Value = ptr(1.0), ptr(0.5)
	_, delta := f.With(columns.Changes{Metrics: map[api.Key]*api.Metric{metricKey("load"): &rescaled}}, enginetest.Epoch)
	if !slices.Equal(delta.Rows, []int{0}) {
		t.Errorf("delta %+v, want row 0", delta)
	}
}

// A hold ends with the first report newer than it, and comes back only if the
// cluster does: deleted and made again, it has reported nothing yet.
func TestReservationFollowsReports(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1"}, Spec: api.ClusterSpec{Allocatable: api.Quantities{"cpu": "4"}}}
	reported := func(at time.Duration) *api.Cluster {
		d := *c
		d.Status.CapacityReportedAt = ptr(enginetest.Epoch.Add(at))
		return &d
	}
	p := enginetest.NewPlacement("web")
	p.Spec.ResourceRequests = api.Quantities{"cpu": "1"}
	q := compile(t, p)
	reserved := ledger.NewReservations()
	f := &columns.Fleet{}
	step := func(changes columns.Changes, want api.Quantity) {
		t.Helper()
		var delta columns.Delta
		f, delta = f.With(changes, enginetest.Epoch)
		reserved.Sync(f, delta)
		row, ok := f.Row("c1")
		if ok && ledger.Available(f, reserved, row)["cpu"] != want || !ok && want != "" {
			t.Errorf("%s of cpu are available, want %s", ledger.Available(f, reserved, row)["cpu"], want)
		}
		for _, held := range reserved.Sums["cpu"] {
			if held < 0 {
				t.Errorf("%d are held", held)
			}
		}
	}
	reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch) // before the fleet knows the cluster
	step(clusters(c), "3")
	step(clusters(reported(-time.Second)), "3")
	step(clusters(reported(0)), "4") // the report has it in
	step(clusters(reported(time.Hour)), "4")
	step(columns.Changes{Clusters: map[string]*api.Cluster{"c1": nil}}, "")
	step(clusters(&api.Cluster{Metadata: api.Metadata{Name: "c0"}}), "") // takes the row
	step(clusters(c), "3")
	step(clusters(reported(time.Hour)), "4")
	reserved.Release(f, q.Key, "c1")
	step(columns.Changes{}, "4")
	step(clusters(c), "4")
	reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch)
	reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch) // replaces, never adds
	step(columns.Changes{}, "3")
	reserved.Release(f, q.Key, "c1")
	reserved.Release(f, q.Key, "c1")
	step(columns.Changes{}, "4")
	if reserved.Holds.Len() != 0 {
		t.Errorf("%d holds are left in an empty ledger", reserved.Holds.Len())
	}
}

// A report declared in the spec is known before the status says so. In between,
// the amounts must not be charged together with the holds they contain: that put
// running workloads off their cluster.
func TestDeclaredReportEndsHoldsAtOnce(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1", Generation: 1, ModifiedAt: ptr(enginetest.Epoch)}}
	c.Spec.Allocatable, c.Spec.Allocated = api.Quantities{"cpu": "4"}, api.Quantities{"cpu": "1"}
	c.Status.ObservedGeneration, c.Status.CapacityReportedAt = 1, ptr(enginetest.Epoch)
	declared := *c
	declared.Metadata.Generation, declared.Metadata.ModifiedAt = 2, ptr(enginetest.Epoch.Add(time.Minute))
	declared.Spec.Allocated = api.Quantities{"cpu": "3"}
	labelled := declared
	labelled.Metadata.Generation, labelled.Metadata.ModifiedAt = 3, ptr(enginetest.Epoch.Add(time.Hour))
	observed := labelled
	observed.Status.ObservedGeneration, observed.Status.CapacityReportedAt = 3, ptr(enginetest.Epoch.Add(time.Minute))

	p := enginetest.NewPlacement("web")
	p.Spec.ResourceRequests = api.Quantities{"cpu": "2"}
	q := compile(t, p)
	reserved := ledger.NewReservations()
	f, delta := (&columns.Fleet{}).With(clusters(c), enginetest.Epoch)
	reserved.Sync(f, delta)
	reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch.Add(time.Second))
	small := enginetest.NewPlacement("small")
	small.Spec.ResourceRequests = api.Quantities{"cpu": "500m"}
	for i, next := range []*api.Cluster{&declared, &labelled, &observed} {
		f, delta = f.With(clusters(next), enginetest.Epoch)
		reserved.Sync(f, delta)
		if !Admits(f, q, reserved, 0, true) {
			t.Errorf("step %d: the placement does not fit where it is", i)
		}
		want := api.Quantity("1")
		if i > 0 {
			want = "500m" // held by a decision newer than the report
		}
		if got := ledger.Available(f, reserved, 0)["cpu"]; got != want {
			t.Errorf("step %d: %s of cpu are available, want %s", i, got, want)
		}
		if i == 0 {
			reserve(t, reserved, f, small, "c1", enginetest.Epoch.Add(2*time.Minute))
		}
	}
}

// Where a heartbeat gave the amounts in use, they count until the status says
// that the declared ones are newer, and so do the reservations they lack.
func TestDeclaredReportWaitsForTheHeartbeatsStatus(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1", Generation: 1, ModifiedAt: ptr(enginetest.Epoch)}}
	c.Spec.Allocatable = api.Quantities{"cpu": "4"}
	c.Status.ObservedGeneration, c.Status.CapacityReportedAt = 1, ptr(enginetest.Epoch)
	c.Status.Allocated = api.Quantities{"cpu": "1"}
	p := enginetest.NewPlacement("web")
	p.Spec.ResourceRequests = api.Quantities{"cpu": "2"}
	reserved := ledger.NewReservations()
	f, delta := (&columns.Fleet{}).With(clusters(c), enginetest.Epoch)
	reserved.Sync(f, delta)
	reserve(t, reserved, f, p, "c1", enginetest.Epoch.Add(time.Second))

	declared := *c
	declared.Metadata.Generation, declared.Metadata.ModifiedAt = 2, ptr(enginetest.Epoch.Add(time.Minute))
	declared.Spec.Allocated = api.Quantities{"cpu": "3"}
	observed := declared
	observed.Status.ObservedGeneration, observed.Status.CapacityReportedAt = 2, ptr(enginetest.Epoch.Add(time.Minute))
	observed.Status.Allocated = nil
	for _, next := range []*api.Cluster{&declared, &observed} {
		f, delta = f.With(clusters(next), enginetest.Epoch)
		reserved.Sync(f, delta)
		if got := ledger.Available(f, reserved, 0)["cpu"]; got != "1" {
			t.Errorf("%s of cpu are available, want 1: 4 less 1 and a hold of 2, then 4 less 3", got)
		}
	}
}

func TestAmountsAtTheEdge(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1"}}
	for _, tt := range []struct {
		allocatable, allocated, request api.Quantity
		fits, staysOn                   bool
	}{
		{"100P", "0", "1", true, true}, // more than an int64 of thousandths
		{"100P", "100P", "1", false, true},
		{"1", "100P", "1", false, true},
		{"1", "2", "0", true, true},
		{"1", "1", "1m", false, true},
		{"1.0001", "0", "1", true, true},
	} {
		c.Spec.Allocatable = api.Quantities{"memory": tt.allocatable}
		c.Spec.Allocated = api.Quantities{"memory": tt.allocated}
		f, _ := (&columns.Fleet{}).With(clusters(c), enginetest.Epoch)
		p := enginetest.NewPlacement("web")
		p.Spec.ResourceRequests = api.Quantities{"memory": tt.request}
		q := compile(t, p)
		reserved := ledger.NewReservations()
		if got := Admits(f, q, reserved, 0, false); got != tt.fits {
			t.Errorf("%+v: fits %t", tt, got)
		}
		c.Status.CapacityReportedAt = ptr(enginetest.Epoch)
		f, _ = (&columns.Fleet{}).With(clusters(c), enginetest.Epoch)
		reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch.Add(-time.Minute)) // what is allocated has it in
		if got := Admits(f, q, reserved, 0, true); got != tt.staysOn {
			t.Errorf("%+v: stays %t", tt, got)
		}
		c.Status.CapacityReportedAt = nil
	}
}

// Weights and stickiness may be as large as floats are; scores stay numbers.
func TestScoreOfHugeWeights(t *testing.T) {
	w := enginetest.NewWorld()
	w.Gauge("half", 0, 1, 0.5)
	w.Cluster("c1", map[string]float64{"half": math.MaxFloat64})
	w.Cluster("c2", map[string]float64{"half": math.MaxFloat64})
	w.Cluster("c3", nil)
	p := enginetest.NewPlacement("web")
	p.Spec.NumberOfClusters = nil
	p.Spec.Metrics.Stickiness, p.Spec.MinImprovement = ptr(math.MaxFloat64), math.MaxFloat64
	f, q := w.Fleet(), compile(t, p)
	e := Explain(f, q, nil, ledger.Others{}, on(w, time.Hour, "c1", "c3"), w.Now)
	for _, c := range e.Render().Candidates {
		for _, part := range c.Scores {
			if math.IsNaN(part.Share) || math.IsInf(part.Share, 0) {
				t.Errorf("%s: part %+v", c.Cluster, part)
			}
		}
		if math.IsNaN(*c.Score) || math.IsInf(*c.Score, 0) {
			t.Errorf("%s scores %v", c.Cluster, *c.Score)
		}
	}
	if got := e.Choices[0].Score; got != 0.75 {
		t.Errorf("score %v, want 0.75", got)
	}
	p.Spec.NumberOfClusters, p.Spec.LabelConstraints = ptr[int64](1), []string{"plain is yes"}
	for _, name := range []string{"c3", "c4"} {
		w.Cluster(name, nil).Metadata.Labels = map[string]string{"plain": "yes"}
	}
	margin := Explain(w.Fleet(), compile(t, p), nil, ledger.Others{}, on(w, time.Hour, "c3"), w.Now).Render().Margin
	if margin == nil || math.IsInf(margin.Margin, 0) {
		t.Errorf("margin %+v, want a number", margin)
	}
}

// Several seats may move in one look.
func TestAllSeatsMove(t *testing.T) {
	for _, n := range []int{20, 1000} { // looked at one by one, and walked
		w := enginetest.NewWorld()
		w.Gauge("low", 0, 1, 0.1)
		w.Gauge("high", 0, 1, 0.9)
		for i := range n {
			w.Cluster(fmt.Sprintf("low%d", i), map[string]float64{"low": 1})
		}
		for i := range 3 {
			w.Cluster(fmt.Sprintf("high%d", i), map[string]float64{"high": 1})
		}
		p := enginetest.NewPlacement("web")
		p.Spec.NumberOfClusters = ptr[int64](4)
		names, out := decide(t, w, p, on(w, time.Hour, "low3", "low5", "low7", "low9"))
		slices.Sort(names)
		if len(names) != 4 || !slices.Equal(names[:3], []string{"high0", "high1", "high2"}) || !slices.Contains([]string{"low3", "low5", "low7", "low9"}, names[3]) {
			t.Errorf("of %d: chosen %q, want the three high ones and one that was there", n, names)
		}
		if !out.HasNext || !out.Full {
			t.Errorf("of %d: %+v", n, out)
		}
	}
}

func TestDecisionThatNamesAClusterTwice(t *testing.T) {
	w := enginetest.NewWorld()
	w.Cluster("c1", nil)
	w.Cluster("c2", nil)
	p := enginetest.NewPlacement("web")
	p.Spec.NumberOfClusters = ptr[int64](2)
	names, out := decide(t, w, p, on(w, time.Second, "c1", "c1"))
	slices.Sort(names)
	if !slices.Equal(names, []string{"c1", "c2"}) || out.Same {
		t.Errorf("chosen %q, same %t", names, out.Same)
	}
}
