package enginetest

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

var (
	labelValues = []string{"a", "b", "c"}
	// MetricKeys are the metrics that may exist.
	MetricKeys = []api.Key{
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

// RollFleet draws a world: a handful of clusters of all kinds, or hundreds that mostly fit, so that
// both ways of selecting are tested.
func RollFleet(t *rapid.T) (Dice, *World) {
	large := rapid.IntRange(0, 3).Draw(t, "large") == 0
	d := Rolling(t, large)
	if large {
		return d, RollWorld(d, 130+d(200), true)
	}
	return d, RollWorld(d, d(14), false)
}

// RollWorld draws a fleet of n clusters.
func RollWorld(d Dice, n int, calm bool) *World {
	w := NewWorld()
	for _, key := range providerKeys {
		if calm || !d.Chance(4) {
			w.Providers[key] = rollProvider(d, key)
		}
	}
	for _, key := range MetricKeys {
		if calm || !d.Chance(5) {
			w.Metrics[key] = rollMetric(d, key, calm)
		}
	}
	for i := range n {
		name := fmt.Sprintf("c%03d", i)
		w.Clusters[name] = RollCluster(d, name, calm)
		if d.Chance(3) {
			continue
		}
		for _, resource := range ScoreResources {
			w.Scores[ScoreKey(name, resource)] = RollScore(d, ScoreKey(name, resource))
		}
	}
	for _, name := range SetNames {
		if !d.Chance(4) {
			w.Sets[name] = rollSet(d, name, max(n, 1))
		}
	}
	return w
}

// RollChange draws a change of the world: some objects are created, changed or deleted, and the
// time moves forward or back.
func RollChange(d Dice, w *World, n int) (columns.Changes, time.Time) {
	c := columns.Changes{
		Clusters: map[string]*api.Cluster{}, Metrics: map[api.Key]*api.Metric{}, Providers: map[api.Key]*api.MetricsProvider{},
		Sets: map[string]*api.ClusterSet{}, Scores: map[api.Key]*api.PlacementScore{},
	}
	for range d(4) {
		name := fmt.Sprintf("c%03d", d(n))
		switch old, known := w.Clusters[name]; {
		case d.Chance(3):
			c.Clusters[name] = nil
		case known && d.Chance(2):
			c.Clusters[name] = rollHeartbeat(d, old)
		default:
			c.Clusters[name] = RollCluster(d, name, false)
		}
	}
	for range d(3) {
		key := Pick(d, MetricKeys...)
		c.Metrics[key] = nil
		if !d.Chance(4) {
			c.Metrics[key] = rollMetric(d, key, false)
		}
	}
	if d.Chance(4) {
		key := Pick(d, providerKeys...)
		c.Providers[key] = nil
		if !d.Chance(3) {
			c.Providers[key] = rollProvider(d, key)
		}
	}
	if d.Chance(3) {
		name := Pick(d, SetNames...)
		c.Sets[name] = nil
		if !d.Chance(4) {
			c.Sets[name] = rollSet(d, name, n)
		}
	}
	for range d(5) {
		key := ScoreKey(fmt.Sprintf("c%03d", d(n)), Pick(d, ScoreResources...))
		c.Scores[key] = nil
		if !d.Chance(4) {
			c.Scores[key] = RollScore(d, key)
		}
	}
	now := w.Now.Add(time.Duration(Pick(d, 0, 0, 1, 20, 60, -40)) * time.Second)
	return c, now
}

// RollQuantities draws amounts of cpu and memory, or none.
func RollQuantities(d Dice) api.Quantities {
	if d.Chance(2) {
		return nil
	}
	q := api.Quantities{}
	if !d.Chance(4) {
		q["cpu"] = Pick[api.Quantity](d, "0", "500m", "1", "2", "4")
	}
	if !d.Chance(3) {
		q["memory"] = Pick[api.Quantity](d, "1Gi", "8Gi", "100P")
	}
	return q
}

// RollCluster draws a cluster. In a calm fleet nearly all clusters can take workloads, so that
// large selections are walked.
func RollCluster(d Dice, name string, calm bool) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{
		Name: name, UID: "uid-" + name, Generation: int64(d(3)),
		Labels: map[string]string{"host": name},
	}}
	for _, key := range []string{"zone", "tier", "example.com/gpu"} {
		if !d.Chance(4) {
			c.Metadata.Labels[key] = Pick(d, labelValues...)
		}
	}
	rare := 4
	if calm {
		rare = 60
	}
	if d.Chance(rare) {
		c.Spec.Namespace = Pick(d, placementNamespaces...)
	}
	if d.Chance(rare) {
		c.Status.State = Pick(d, api.StateOffline, api.StatePending, api.StateUnhealthy, "degraded")
	} else if d.Chance(2) {
		c.Status.State = api.StateOnline
	}
	if d.Chance(2 * rare) {
		c.Spec.Health = &api.HealthSpec{URL: "http://" + name}
	}
	c.Spec.Paused = d.Chance(2 * rare)
	c.Spec.Region = Pick(d, "", "eu", "us")
	if d.Chance(2) {
		c.Spec.Claims = map[string]string{"version": Pick(d, "1.30", "1.31"), "id": name}
	}
	rollTaints(d, c, rare)
	for _, crd := range []string{"a.example.com", "b.example.com"} {
		if !d.Chance(3) {
			c.Spec.CustomResources = append(c.Spec.CustomResources, crd)
		}
	}
	for _, key := range MetricKeys {
		if d.Chance(4) {
			ref := api.MetricRef{Name: key.Name, Namespace: key.Namespace}
			if !d.Chance(5) {
				ref.Weight = new(Pick(d, 0, 0.1, 1, 1, 2.5, 10))
			}
			c.Spec.Metrics = append(c.Spec.Metrics, ref)
		}
	}
	if d.Chance(10) {
		c.Metadata.Labels = nil
	}
	rollObserved(d, c)
	c.Spec.Allocatable, c.Spec.Allocated = RollQuantities(d), RollQuantities(d)
	if d.Chance(3) {
		c.Status.Allocatable = RollQuantities(d)
	}
	if d.Chance(2) {
		c.Spec.Capacity, c.Status.Capacity = RollQuantities(d), RollQuantities(d)
	}
	if d.Chance(3) {
		c.Status.Allocated = RollQuantities(d)
	}
	if d.Chance(2) {
		c.Status.CapacityReportedAt = new(Epoch.Add(time.Duration(d(5)-2) * 30 * time.Second))
	}
	return c
}

// rollObserved draws observed facts that have no column.
func rollObserved(d Dice, c *api.Cluster) {
	c.Status.Conditions, c.Status.KubernetesVersion = nil, ""
	if d.Chance(3) {
		c.Status.Conditions = []api.Condition{{Type: api.ConditionReady, Status: api.ConditionTrue, Reason: Pick(d, "", "Slow")}}
	}
	if d.Chance(3) {
		c.Status.KubernetesVersion = Pick(d, "v1.32.0", "v1.32.1-eks-4f2e1a", "v1.33.0", "v1.33.2+k3s1", "latest")
	}
}

// rollHeartbeat draws a change that affects only the status.
func rollHeartbeat(d Dice, old *api.Cluster) *api.Cluster {
	c := *old
	c.Status.LastHeartbeatAt = new(Epoch.Add(time.Duration(d(100)) * time.Second))
	switch d(6) {
	case 0:
		c.Status.Allocated = RollQuantities(d)
		c.Status.CapacityReportedAt = new(Epoch.Add(time.Duration(d(5)-2) * 30 * time.Second))
	case 1:
		c.Status.State = Pick(d, api.StateOnline, api.StateOffline)
		rollTaints(d, &c, 2)
	case 2:
		c.Status.CapacityReportedAt = new(Epoch.Add(time.Duration(d(5)-2) * 30 * time.Second))
	case 3:
		rollObserved(d, &c)
	case 4:
		c.Status.State = Pick(d, api.StateOffline, api.StateUnhealthy, api.StateNotReady)
	}
	return &c
}

// rollTaints draws taints, including the one that the server adds to a cluster that is offline.
func rollTaints(d Dice, c *api.Cluster, rare int) {
	c.Spec.Taints, c.Status.Taints = nil, nil
	for range 2 {
		if !d.Chance(rare) {
			continue
		}
		declared := api.Taint{Key: Pick(d, "disk", "gpu"), Value: Pick(d, "", "full"), Effect: Pick(d, api.TaintEffects...)}
		if slices.ContainsFunc(c.Spec.Taints, func(t api.Taint) bool {
			return t.Key == declared.Key && t.Value == declared.Value && t.Effect.Canonical() == declared.Effect.Canonical()
		}) {
			continue
		}
		c.Spec.Taints = append(c.Spec.Taints, declared)
		if !d.Chance(4) {
			c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{
				Key: declared.Key, Value: declared.Value, Effect: declared.Effect, TimeAdded: rollPast(d),
			})
		}
	}
	if c.Status.State != "" && c.Status.State != api.StateOnline && !d.Chance(4) {
		c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{
			Key: Pick(d, api.TaintUnreachable, api.TaintUnhealthy), Effect: api.EffectNoSelect, TimeAdded: rollPast(d),
		})
	}
}

// rollPast draws a time, usually within the last minutes. It may be in the future, as from a clock
// that is ahead.
func rollPast(d Dice) *time.Time {
	if d.Chance(8) {
		return nil
	}
	if d.Chance(8) {
		return new(Epoch.Add(time.Duration(1+d(5)) * 30 * time.Second))
	}
	return new(Epoch.Add(-time.Duration(d(5)) * 30 * time.Second))
}

func rollMetric(d Dice, key api.Key, calm bool) *api.Metric {
	m := &api.Metric{Metadata: api.Metadata{Name: key.Name, Namespace: key.Namespace}}
	span := Pick(d, [2]float64{0, 1}, [2]float64{0, 10}, [2]float64{-5, 5})
	m.Spec.Min, m.Spec.Max = &span[0], &span[1]
	m.Spec.Direction = Pick(d, api.Ascending, api.Descending)
	m.Spec.OnFailure = Pick(d, api.FailureExclude, api.FailureIgnore, api.FailureLastValue)
	m.Spec.MaxAge = Pick[api.Duration](d, "", "", "0s", "30s", "2m")
	m.Spec.MetricsProvider = api.MetricProviderRef{Name: Pick(d, "p", "p", "q"), Metric: "x"}
	if d.Chance(6) {
		m.Spec.AllowedValues = []float64{span[0], span[1]}
	}
	if !d.Chance(8) || calm {
		m.Status.Value = new(span[0] + (span[1]-span[0])*float64(d(5))/4)
		if d.Chance(10) {
			m.Status.Value = new(span[1] + 1)
		}
	}
	if !d.Chance(5) {
		m.Status.ObservedAt = new(Epoch.Add(-time.Duration(d(5)) * 20 * time.Second))
	}
	if d.Chance(2) && !calm {
		m.Status.Conditions = []api.Condition{{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: Pick(d,
			api.ReasonUnreachableMetricsProvider, api.ReasonUnreachableMetricsProvider, api.ReasonInvalidMetric,
			api.ReasonUnknownMetric, "")}}
	}
	if d.Chance(3) {
		m.Status.Clusters = map[string]api.MetricReading{}
		for range d(8) {
			reading := api.MetricReading{Value: new(span[0] + (span[1]-span[0])*float64(d(5))/4)}
			if d.Chance(4) {
				reading.ObservedAt = new(Epoch.Add(-time.Duration(d(5)) * 20 * time.Second))
				reading.Reason = Pick(d, api.ReasonUnreachableMetricsProvider, api.ReasonUnreachableMetricsProvider, api.ReasonInvalidMetric)
			}
			if d.Chance(8) {
				reading = api.MetricReading{Reason: api.ReasonInvalidMetric}
			}
			m.Status.Clusters[fmt.Sprintf("c%03d", d(12))] = reading
		}
	}
	return m
}

func rollProvider(d Dice, key api.Key) *api.MetricsProvider {
	p := &api.MetricsProvider{
		Metadata: api.Metadata{Name: key.Name, Namespace: key.Namespace},
		Spec:     api.MetricsProviderSpec{Interval: Pick[api.Duration](d, "", "5s", "15s", "60s")},
	}
	if d.Chance(3) { // a value for each cluster
		p.Spec.Type = api.ProviderHTTPJSON
		p.Spec.HTTPJSON = &api.HTTPJSONSpec{URL: "http://prices.test/${cluster.name}"}
	}
	return p
}

// SetNames are the cluster sets that may exist.
var SetNames = []string{"blue", "green", "red"}

func rollSet(d Dice, name string, n int) *api.ClusterSet {
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
	if d.Chance(3) {
		s.Spec.Namespaces = []string{Pick(d, placementNamespaces...)}
	}
	s.SetDefaults()
	return s
}

// rollSelector draws requirements on some keys, with the values of labels and claims.
func rollSelector(d Dice, keys ...string) *api.LabelSelector {
	s := &api.LabelSelector{}
	if d.Chance(3) {
		s.MatchLabels = map[string]string{Pick(d, keys...): Pick(d, "a", "b", "1.30")}
	}
	for range d(3) {
		r := api.SelectorRequirement{Key: Pick(d, append(keys, "ghost")...), Operator: Pick(d,
			api.SelectorIn, api.SelectorNotIn, api.SelectorExists, api.SelectorDoesNotExist)}
		if r.Operator == api.SelectorIn || r.Operator == api.SelectorNotIn {
			for range 1 + d(3) {
				r.Values = append(r.Values, Pick(d, "a", "b", "c", "1.30", "1.31"))
			}
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

var (
	// ScoreResources are the placement scores that a cluster may have, and ScoreNames the scores in
	// them.
	ScoreResources = []string{"balance", "speed"}
	ScoreNames     = []string{"cpu", "net"}
)

// ScoreKey returns the key of a placement score.
func ScoreKey(cluster, name string) api.Key {
	return api.Key{Kind: api.KindPlacementScore, Namespace: cluster, Name: name}
}

// RollScore draws a placement score.
func RollScore(d Dice, key api.Key) *api.PlacementScore {
	s := &api.PlacementScore{Metadata: api.Metadata{Name: key.Name, Cluster: key.Namespace}}
	s.Spec.Scores = map[string]int64{}
	for _, name := range ScoreNames {
		if !d.Chance(4) {
			s.Spec.Scores[name] = int64(Pick(d, -100, -1, 0, 7, 100))
		}
	}
	if !d.Chance(4) {
		s.Spec.ValidUntil = new(Epoch.Add(time.Duration(d(7)-2) * 20 * time.Second))
	}
	return s
}
