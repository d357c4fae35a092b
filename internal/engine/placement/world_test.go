package placement

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// epoch is the moment around which all tests take place.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a fleet as plain objects: what the engine is given, and all that the
// oracle looks at.
type world struct {
	now       time.Time
	clusters  map[string]*api.Cluster
	metrics   map[api.Key]*api.Metric
	providers map[api.Key]*api.MetricsProvider
	sets      map[string]*api.ClusterSet
	scores    map[api.Key]*api.PlacementScore
}

func newWorld() *world {
	return &world{
		now: epoch, clusters: map[string]*api.Cluster{},
		metrics: map[api.Key]*api.Metric{}, providers: map[api.Key]*api.MetricsProvider{},
		sets: map[string]*api.ClusterSet{}, scores: map[api.Key]*api.PlacementScore{},
	}
}

// changes are all objects of the world.
func (w *world) changes() columns.Changes {
	return columns.Changes{Clusters: w.clusters, Metrics: w.metrics, Providers: w.providers, Sets: w.sets, Scores: w.scores}
}

// fleet builds the world from scratch.
func (w *world) fleet() *columns.Fleet {
	f, _ := (&columns.Fleet{}).With(w.changes(), w.now)
	return f
}

// apply lays changes over the world.
func (w *world) apply(c columns.Changes, now time.Time) {
	w.now = now
	lay(w.clusters, c.Clusters)
	lay(w.metrics, c.Metrics)
	lay(w.providers, c.Providers)
	lay(w.sets, c.Sets)
	lay(w.scores, c.Scores)
}

func lay[K comparable, V any](base, over map[K]*V) {
	for k, v := range over {
		if v == nil {
			delete(base, k)
		} else {
			base[k] = v
		}
	}
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.clusters)) }

func ptr[T any](v T) *T { return &v }

// dice draws a number from 0 to n-1.
type dice func(n int) int

func pick[T any](d dice, from ...T) T { return from[d(len(from))] }

// chance is true once in n.
func (d dice) chance(n int) bool { return d(n) == 0 }

var (
	labelValues = []string{"a", "b", "c"}
	metricKeys  = []api.Key{
		{Kind: api.KindMetric, Name: "load"},
		{Kind: api.KindMetric, Name: "cost"},
		{Kind: api.KindMetric, Name: "power"},
		{Kind: api.KindMetric, Namespace: "shop", Name: "load"},
		{Kind: api.KindMetric, Namespace: "bank", Name: "load"},
		{Kind: api.KindMetric, Namespace: "shop", Name: "rare"},
	}
	providerKeys = []api.Key{
		{Kind: api.KindMetricsProvider, Name: "p"},
		{Kind: api.KindMetricsProvider, Name: "q"},
		{Kind: api.KindMetricsProvider, Namespace: "shop", Name: "p"},
		{Kind: api.KindMetricsProvider, Namespace: "bank", Name: "p"},
	}
	placementNamespaces = []string{"shop", "bank", "default"}
)

// rollQuantities draws amounts of cpu and memory, or none.
func rollQuantities(d dice) api.Quantities {
	if d.chance(2) {
		return nil
	}
	q := api.Quantities{}
	if !d.chance(4) {
		q["cpu"] = pick[api.Quantity](d, "0", "500m", "1", "2", "4")
	}
	if !d.chance(3) {
		q["memory"] = pick[api.Quantity](d, "1Gi", "8Gi", "100P")
	}
	return q
}

// rollCluster draws a cluster. In a calm fleet nearly all clusters are fit to
// take workloads, so that large selections are walked.
func rollCluster(d dice, name string, calm bool) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{
		Name: name, UID: "uid-" + name, Generation: int64(d(3)),
		Labels: map[string]string{"host": name},
	}}
	for _, key := range []string{"zone", "tier", "example.com/gpu"} {
		if !d.chance(4) {
			c.Metadata.Labels[key] = pick(d, labelValues...)
		}
	}
	rare := 4
	if calm {
		rare = 60
	}
	if d.chance(rare) {
		c.Spec.Namespace = pick(d, placementNamespaces...)
	}
	if d.chance(rare) {
		c.Status.State = pick(d, api.StateOffline, api.StatePending, api.StateUnhealthy, "degraded")
	} else if d.chance(2) {
		c.Status.State = api.StateOnline
	}
	if d.chance(2 * rare) {
		c.Spec.Health = &api.HealthSpec{URL: "http://" + name}
	}
	c.Spec.Paused = d.chance(2 * rare)
	c.Spec.Region = pick(d, "", "eu", "us")
	if d.chance(2) {
		c.Spec.Claims = map[string]string{"version": pick(d, "1.30", "1.31"), "id": name}
	}
	rollTaints(d, c, rare)
	for _, crd := range []string{"a.example.com", "b.example.com"} {
		if !d.chance(3) {
			c.Spec.CustomResources = append(c.Spec.CustomResources, crd)
		}
	}
	for _, key := range metricKeys {
		if d.chance(4) {
			ref := api.MetricRef{Name: key.Name, Namespace: key.Namespace}
			if !d.chance(5) {
				ref.Weight = ptr(pick(d, 0, 0.1, 1, 1, 2.5, 10))
			}
			c.Spec.Metrics = append(c.Spec.Metrics, ref)
		}
	}
	if d.chance(10) {
		c.Metadata.Labels = nil
	}
	rollObserved(d, c)
	c.Spec.Allocatable, c.Spec.Allocated = rollQuantities(d), rollQuantities(d)
	if d.chance(3) {
		c.Status.Allocatable = rollQuantities(d)
	}
	if d.chance(2) {
		c.Spec.Capacity, c.Status.Capacity = rollQuantities(d), rollQuantities(d)
	}
	if d.chance(3) {
		c.Status.Allocated = rollQuantities(d)
	}
	if d.chance(2) {
		c.Status.CapacityReportedAt = ptr(epoch.Add(time.Duration(d(5)-2) * 30 * time.Second))
	}
	return c
}

// rollObserved draws what has no column.
func rollObserved(d dice, c *api.Cluster) {
	c.Status.Conditions, c.Status.KubernetesVersion = nil, ""
	if d.chance(3) {
		c.Status.Conditions = []api.Condition{{Type: api.ConditionReady, Status: api.ConditionTrue, Reason: pick(d, "", "Slow")}}
	}
	if d.chance(3) {
		c.Status.KubernetesVersion = pick(d, "v1.32.0", "v1.32.1-eks-4f2e1a", "v1.33.0", "v1.33.2+k3s1", "latest")
	}
}

// rollHeartbeat draws a change of nothing but the status.
func rollHeartbeat(d dice, old *api.Cluster) *api.Cluster {
	c := *old
	c.Status.LastHeartbeatAt = ptr(epoch.Add(time.Duration(d(100)) * time.Second))
	switch d(6) {
	case 0:
		c.Status.Allocated = rollQuantities(d)
		c.Status.CapacityReportedAt = ptr(epoch.Add(time.Duration(d(5)-2) * 30 * time.Second))
	case 1:
		c.Status.State = pick(d, api.StateOnline, api.StateOffline)
		rollTaints(d, &c, 2)
	case 2:
		c.Status.CapacityReportedAt = ptr(epoch.Add(time.Duration(d(5)-2) * 30 * time.Second))
	case 3:
		rollObserved(d, &c)
	case 4:
		c.Status.State = pick(d, api.StateOffline, api.StateUnhealthy, api.StateNotReady)
	}
	return &c
}

func rollMetric(d dice, key api.Key, calm bool) *api.Metric {
	m := &api.Metric{Metadata: api.Metadata{Name: key.Name, Namespace: key.Namespace}}
	span := pick(d, [2]float64{0, 1}, [2]float64{0, 10}, [2]float64{-5, 5})
	m.Spec.Min, m.Spec.Max = &span[0], &span[1]
	m.Spec.Direction = pick(d, api.Ascending, api.Descending)
	m.Spec.OnFailure = pick(d, api.FailureExclude, api.FailureIgnore, api.FailureLastValue)
	m.Spec.MaxAge = pick[api.Duration](d, "", "", "0s", "30s", "2m")
	m.Spec.MetricsProvider = api.MetricProviderRef{Name: pick(d, "p", "p", "q"), Metric: "x"}
	if d.chance(6) {
		m.Spec.AllowedValues = []float64{span[0], span[1]}
	}
	if !d.chance(8) || calm {
		m.Status.Value = ptr(span[0] + (span[1]-span[0])*float64(d(5))/4)
		if d.chance(10) {
			m.Status.Value = ptr(span[1] + 1)
		}
	}
	if !d.chance(5) {
		m.Status.ObservedAt = ptr(epoch.Add(-time.Duration(d(5)) * 20 * time.Second))
	}
	if d.chance(2) && !calm {
		m.Status.Conditions = []api.Condition{{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: pick(d,
			api.ReasonUnreachableMetricsProvider, api.ReasonUnreachableMetricsProvider, api.ReasonInvalidMetric,
			api.ReasonUnknownMetric, "")}}
	}
	return m
}

func rollProvider(d dice, key api.Key) *api.MetricsProvider {
	return &api.MetricsProvider{
		Metadata: api.Metadata{Name: key.Name, Namespace: key.Namespace},
		Spec:     api.MetricsProviderSpec{Interval: pick[api.Duration](d, "", "5s", "15s", "60s")},
	}
}

// rollTaints draws taints, and as the server would the one of a cluster that is
// offline.
func rollTaints(d dice, c *api.Cluster, rare int) {
	c.Spec.Taints, c.Status.Taints = nil, nil
	for range 2 {
		if !d.chance(rare) {
			continue
		}
		declared := api.Taint{Key: pick(d, "disk", "gpu"), Value: pick(d, "", "full"), Effect: pick(d, api.TaintEffects...)}
		if slices.ContainsFunc(c.Spec.Taints, func(t api.Taint) bool {
			return t.Key == declared.Key && t.Value == declared.Value && t.Effect.Canonical() == declared.Effect.Canonical()
		}) {
			continue
		}
		c.Spec.Taints = append(c.Spec.Taints, declared)
		if !d.chance(4) {
			c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{
				Key: declared.Key, Value: declared.Value, Effect: declared.Effect, TimeAdded: rollPast(d),
			})
		}
	}
	if c.Status.State != "" && c.Status.State != api.StateOnline && !d.chance(4) {
		c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{
			Key: pick(d, api.TaintUnreachable, api.TaintUnhealthy), Effect: api.EffectNoSelect, TimeAdded: rollPast(d),
		})
	}
}

// rollPast draws a moment, mostly of the last minutes; a clock that is ahead gives
// one that is still to come.
func rollPast(d dice) *time.Time {
	if d.chance(8) {
		return nil
	}
	if d.chance(8) {
		return ptr(epoch.Add(time.Duration(1+d(5)) * 30 * time.Second))
	}
	return ptr(epoch.Add(-time.Duration(d(5)) * 30 * time.Second))
}

var setNames = []string{"blue", "green", "red"}

func rollSet(d dice, name string, n int) *api.ClusterSet {
	s := &api.ClusterSet{Metadata: api.Metadata{Name: name}}
	switch d(4) {
	case 0:
		s.Spec.Clusters = []string{}
		for range d(6) {
			s.Spec.Clusters = append(s.Spec.Clusters, fmt.Sprintf("c%03d", d(n)))
		}
	case 1:
		s.Spec.Selector = &api.LabelSelector{}
	default:
		s.Spec.Selector = rollSelector(d, "zone", "tier")
	}
	if d.chance(3) {
		s.Spec.Namespaces = []string{pick(d, placementNamespaces...)}
	}
	s.SetDefaults()
	return s
}

// rollSelector draws conditions on some keys, with the values of labels and
// claims.
func rollSelector(d dice, keys ...string) *api.LabelSelector {
	s := &api.LabelSelector{}
	if d.chance(3) {
		s.MatchLabels = map[string]string{pick(d, keys...): pick(d, "a", "b", "1.30")}
	}
	for range d(3) {
		r := api.SelectorRequirement{Key: pick(d, append(keys, "ghost")...), Operator: pick(d,
			api.SelectorIn, api.SelectorNotIn, api.SelectorExists, api.SelectorDoesNotExist)}
		if r.Operator == api.SelectorIn || r.Operator == api.SelectorNotIn {
			for range 1 + d(3) {
				r.Values = append(r.Values, pick(d, "a", "b", "c", "1.30", "1.31"))
			}
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

var (
	scoreResources = []string{"balance", "speed"}
	scoreNames     = []string{"cpu", "net"}
)

func scoreKey(cluster, name string) api.Key {
	return api.Key{Kind: api.KindPlacementScore, Namespace: cluster, Name: name}
}

func rollScore(d dice, key api.Key) *api.PlacementScore {
	s := &api.PlacementScore{Metadata: api.Metadata{Name: key.Name, Cluster: key.Namespace}}
	s.Spec.Scores = map[string]int64{}
	for _, name := range scoreNames {
		if !d.chance(4) {
			s.Spec.Scores[name] = int64(pick(d, -100, -1, 0, 7, 100))
		}
	}
	if !d.chance(4) {
		s.Spec.ValidUntil = ptr(epoch.Add(time.Duration(d(7)-2) * 20 * time.Second))
	}
	return s
}

// rollWorld draws a fleet of n clusters.
func rollWorld(d dice, n int, calm bool) *world {
	w := newWorld()
	for _, key := range providerKeys {
		if calm || !d.chance(4) {
			w.providers[key] = rollProvider(d, key)
		}
	}
	for _, key := range metricKeys {
		if calm || !d.chance(5) {
			w.metrics[key] = rollMetric(d, key, calm)
		}
	}
	for i := range n {
		name := fmt.Sprintf("c%03d", i)
		w.clusters[name] = rollCluster(d, name, calm)
		if d.chance(3) {
			continue
		}
		for _, resource := range scoreResources {
			w.scores[scoreKey(name, resource)] = rollScore(d, scoreKey(name, resource))
		}
	}
	for _, name := range setNames {
		if !d.chance(4) {
			w.sets[name] = rollSet(d, name, max(n, 1))
		}
	}
	return w
}

// rollChange draws a change of the world: some objects new, changed or gone, and
// time a step further, or back.
func rollChange(d dice, w *world, n int) (columns.Changes, time.Time) {
	c := columns.Changes{
		Clusters: map[string]*api.Cluster{}, Metrics: map[api.Key]*api.Metric{}, Providers: map[api.Key]*api.MetricsProvider{},
		Sets: map[string]*api.ClusterSet{}, Scores: map[api.Key]*api.PlacementScore{},
	}
	for range d(4) {
		name := fmt.Sprintf("c%03d", d(n))
		switch old, known := w.clusters[name]; {
		case d.chance(3):
			c.Clusters[name] = nil
		case known && d.chance(2):
			c.Clusters[name] = rollHeartbeat(d, old)
		default:
			c.Clusters[name] = rollCluster(d, name, false)
		}
	}
	for range d(3) {
		key := pick(d, metricKeys...)
		c.Metrics[key] = nil
		if !d.chance(4) {
			c.Metrics[key] = rollMetric(d, key, false)
		}
	}
	if d.chance(4) {
		key := pick(d, providerKeys...)
		c.Providers[key] = nil
		if !d.chance(3) {
			c.Providers[key] = rollProvider(d, key)
		}
	}
	if d.chance(3) {
		name := pick(d, setNames...)
		c.Sets[name] = nil
		if !d.chance(4) {
			c.Sets[name] = rollSet(d, name, n)
		}
	}
	for range d(5) {
		key := scoreKey(fmt.Sprintf("c%03d", d(n)), pick(d, scoreResources...))
		c.Scores[key] = nil
		if !d.chance(4) {
			c.Scores[key] = rollScore(d, key)
		}
	}
	now := w.now.Add(time.Duration(pick(d, 0, 0, 1, 20, 60, -40)) * time.Second)
	return c, now
}

// rollPlacement draws a placement, with its present decision.
func rollPlacement(d dice, w *world) (*api.Placement, Present) {
	p := &api.Placement{Metadata: api.Metadata{
		Name: pick(d, "web", "db", "job"), Namespace: pick(d, placementNamespaces...),
	}}
	p.Metadata.UID = pick(d, "", "uid-"+p.Metadata.Name)
	s := &p.Spec
	if !d.chance(4) {
		s.NumberOfClusters = ptr(pick[int64](d, 0, 1, 1, 2, 3, 5, 70, 1000))
	}
	for range d(3) {
		s.LabelConstraints = append(s.LabelConstraints, pick(d,
			"zone is a", "zone is not b", "zone in (a, b)", "zone in (c, a, nowhere)", "zone not in (c)", "tier != a",
			"tier = c", "host not in (c001, c002)", "host is c003", "ghost != x", "example.com/gpu == b", "zone in (b)"))
	}
	if d.chance(3) {
		for range 1 + d(2) {
			s.MetricConstraints = append(s.MetricConstraints, pick(d,
				"load < 5", "load > 0.4", "load >= 0.25", "cost is not 0", "cost != 1", "power <= 0.5", "ghost > 0", "rare > -1"))
		}
	}
	s.MetricConstraintBasis = pick(d, api.BasisRaw, api.BasisNormalized, api.BasisWeighted)
	if d.chance(4) {
		s.CustomResources = []string{pick(d, "a.example.com", "b.example.com", "c.example.com")}
	}
	if d.chance(6) {
		for range 1 + d(3) {
			s.ClusterNames = append(s.ClusterNames, pick(d, "c000", "c001", "c002", "c003", "gone"))
		}
	}
	if d.chance(6) {
		for range 1 + d(3) {
			s.ExcludeClusters = append(s.ExcludeClusters, pick(d, "c000", "c001", "c002", "c003", "gone"))
		}
	}
	if d.chance(6) {
		s.KubernetesVersion = pick(d, slices.Sorted(maps.Keys(versionsOf))...)
	}
	if d.chance(3) {
		s.ResourceRequests = api.Quantities{pick(d, "cpu", "cpu", "memory", "nvidia.com/gpu"): pick[api.Quantity](d, "0", "500m", "1", "1Gi")}
	}
	if d.chance(4) {
		s.Metrics = &api.MetricsStrategy{Stickiness: ptr(pick(d, 0, 0.1, 1, 5))}
	}
	rollFilters(d, s)
	s.RescheduleAfter = pick[api.Duration](d, "0s", "30s", "60s")
	s.MinImprovement = pick(d, 0, 0, 0.05, 0.5)
	s.Migration = ptr(!d.chance(4))
	p.SetDefaults()
	present := rollPresent(d, w)
	if n := len(present.Decisions); n > 0 && d.chance(3) {
		// Nothing but scores keeps the seats, and there are as many as before.
		s.NumberOfClusters, s.LabelConstraints, s.MetricConstraints = ptr(int64(n)), nil, nil
		s.Migration, present.Answered = ptr(true), false
	}
	return p, present
}

// rollFilters draws cluster sets, tolerations and predicates.
func rollFilters(d dice, s *api.PlacementSpec) {
	if d.chance(4) {
		for range 1 + d(2) {
			s.ClusterSets = append(s.ClusterSets, pick(d, append(setNames, "ghost")...))
		}
	}
	for range d(4) {
		t := api.Toleration{Key: pick(d, "disk", "gpu", api.TaintUnreachable, api.TaintUnhealthy, "")}
		if t.Key == "" || d.chance(2) {
			t.Operator = api.TolerationExists
		} else {
			t.Value = pick(d, "", "full")
		}
		if d.chance(2) {
			t.Effect = pick(d, api.TaintEffects...)
		}
		if d.chance(2) {
			t.TolerationSeconds = ptr(pick[int64](d, -1, 0, 30, 60, 61, 90, 1<<62))
		}
		s.Tolerations = append(s.Tolerations, t)
	}
	if !d.chance(4) {
		return
	}
	for range 1 + d(3) {
		p := api.Predicate{}
		if d.chance(2) {
			p.LabelSelector = rollSelector(d, "zone", "tier")
		}
		if d.chance(3) {
			p.ClaimSelector = rollSelector(d, "version", "id")
		}
		for range d(3) {
			p.CEL = append(p.CEL, pick(d, slices.Sorted(maps.Keys(oracleCEL))...))
		}
		s.Predicates = append(s.Predicates, p)
	}
}

func rollPresent(d dice, w *world) Present {
	var now Present
	names := append(w.names(), "gone")
	for range pick(d, 0, 1, 1, 2, 3, 12) {
		name := pick(d, names...)
		if !slices.ContainsFunc(now.Decisions, func(x api.Decision) bool { return x.Cluster == name }) {
			now.Decisions = append(now.Decisions, api.Decision{Cluster: name, Since: ptr(epoch)})
		}
	}
	now.ScheduledAt = w.now.Add(-time.Duration(pick(d, 0, 29, 30, 59, 60, 90)) * time.Second)
	now.Answered = !d.chance(3)
	now.Fresh = d.chance(5)
	return now
}
