package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

var (
	lawRegions = []string{"", "eu", "us"}
	lawZones   = []string{"z1", "z2"}
	lawFlavors = []string{"small", "eu", "large"}
	lawTypes   = []string{"apps/v1/Deployment", "batch/v1/Job"}
	// lawCEL are expressions that each read one thing, in addition to those of the oracle.
	lawCEL = []string{
		`"a.example.com" in cluster.spec.custom_resources`,
		`cluster.spec.allocatable["cpu"] == "2"`,
		`cluster.metadata.labels["tier"] == "a"`,
		`cluster.spec.claims["version"] == "1.30"`,
		`cluster.spec.cloud_provider == "acme"`,
	}
)

// RollLawCluster draws a cluster with everything that any check reads.
func RollLawCluster(d Dice, name string) *api.Cluster {
	c := RollCluster(d, name, false)
	for _, aspect := range slices.Sorted(maps.Keys(lawChanges)) {
		lawChanges[aspect](d, c)
	}
	return c
}

// lawChanges are changes of a cluster, most of which change one thing.
var lawChanges = map[string]func(d Dice, c *api.Cluster){
	"labels": func(d Dice, c *api.Cluster) {
		c.Metadata.Labels = map[string]string{}
		for _, key := range []string{"zone", "tier"} {
			if !d.Chance(4) {
				c.Metadata.Labels[key] = Pick(d, labelValues...)
			}
		}
	},
	"claims": func(d Dice, c *api.Cluster) {
		c.Spec.Claims = map[string]string{"version": Pick(d, "1.30", "1.31"), "id": c.Metadata.Name, "country": Pick(d, "eu", "us"), "city": Pick(d, "eu", "us")}
	},
	"owner": func(d Dice, c *api.Cluster) { c.Spec.Namespace = Pick(d, "", "", "shop", "bank") },
	"state": func(d Dice, c *api.Cluster) { c.Status.State = Pick(d, api.StateOnline, api.StateOffline, "") },
	"pause": func(d Dice, c *api.Cluster) { c.Spec.Paused = d.Chance(3) },
	"taints": func(d Dice, c *api.Cluster) {
		rollTaints(d, c, 2)
		if d.Chance(2) {
			c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{
				Key: api.TaintUnreachable, Value: Pick(d, "", "full"), Effect: api.EffectNoSelect, TimeAdded: rollPast(d),
			})
		}
	},
	"region":   func(d Dice, c *api.Cluster) { c.Spec.Region = Pick(d, lawRegions...) },
	"zones":    func(d Dice, c *api.Cluster) { c.Spec.Zones = Pick(d, nil, lawZones[:1], lawZones[1:], lawZones) },
	"provider": func(d Dice, c *api.Cluster) { c.Spec.CloudProvider = Pick(d, "", "acme") },
	"custom resources": func(d Dice, c *api.Cluster) {
		c.Spec.CustomResources = Pick(d, nil, []string{"a.example.com"}, []string{"b.example.com"})
	},
	"api resources": func(d Dice, c *api.Cluster) { c.Spec.APIResources = Pick(d, nil, lawTypes[:1], lawTypes[1:]) },
	"flavors": func(d Dice, c *api.Cluster) {
		c.Spec.Flavors = nil
		for _, name := range lawFlavors {
			if d.Chance(2) {
				c.Spec.Flavors = append(c.Spec.Flavors, api.ClusterFlavor{Name: name})
			}
		}
	},
	"amounts": func(d Dice, c *api.Cluster) {
		c.Spec.Allocatable, c.Spec.Allocated = RollQuantities(d), nil
		c.Status.Allocatable, c.Status.Allocated, c.Spec.Capacity, c.Status.Capacity = nil, nil, nil, nil
		if d.Chance(2) {
			c.Spec.Capacity = c.Spec.Allocatable
		}
	},
	"observations": rollObserved,
	"metrics": func(d Dice, c *api.Cluster) {
		c.Spec.Metrics = nil
		for _, key := range MetricKeys {
			if d.Chance(3) {
				c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: key.Name, Namespace: key.Namespace, Weight: new(Pick(d, 0.5, 1, 4))})
			}
		}
	},
}

// RollLawWorld draws a small fleet in which most metrics work.
func RollLawWorld(d Dice) *World {
	w := RollWorld(d, 0, false)
	for i := range 16 {
		name := fmt.Sprintf("c%03d", i)
		w.Clusters[name] = RollLawCluster(d, name)
		w.Scores[ScoreKey(name, "speed")] = RollScore(d, ScoreKey(name, "speed"))
	}
	for _, name := range SetNames {
		w.Sets[name] = rollSet(d, name, 16)
	}
	return w
}

// RollLawStep draws a change of one kind: of one cluster, or of other objects.
func RollLawStep(d Dice, w *World) columns.Changes {
	name := Pick(d, w.Names()...)
	switch d(6) {
	case 0:
		key := Pick(d, MetricKeys...)
		m := rollMetric(d, key, false)
		if d.Chance(4) {
			m = nil
		}
		return columns.Changes{Metrics: map[api.Key]*api.Metric{key: m}}
	case 1:
		key := ScoreKey(name, "speed")
		return columns.Changes{Scores: map[api.Key]*api.PlacementScore{key: RollScore(d, key)}}
	case 2:
		set := Pick(d, SetNames...)
		return columns.Changes{Sets: map[string]*api.ClusterSet{set: rollSet(d, set, 16)}}
	}
	c := *w.Clusters[name]
	lawChanges[Pick(d, slices.Sorted(maps.Keys(lawChanges))...)](d, &c)
	return columns.Changes{Clusters: map[string]*api.Cluster{name: &c}}
}

// RollLawPlacement draws a placement, often with few requirements.
func RollLawPlacement(d Dice) *api.Placement {
	p := RollPlacement(d)
	if d.Chance(2) {
		p.Spec.Predicates = []api.Predicate{rollLawPredicate(d)}
	}
	if d.Chance(3) {
		p.Spec.MetricConstraints = []string{Pick(d, "load < 5", "load less than 5", "load <= 5", "cost > 0")}
	}
	if d.Chance(3) {
		p.Spec.Strategy = api.StrategyPrioritizers
		p.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{
			{Type: api.PrioritizerMetric, Name: Pick(d, "load", "ghost", "rare"), Weight: new(int64(1))},
		}}
	}
	if d.Chance(3) {
		p.Spec.Tolerations = []api.Toleration{rollLawToleration(d)}
	}
	if d.Chance(3) {
		p.Spec.LabelConstraints = []string{Pick(d, "zone is a", "zone = a", "zone in (a, b)", "zone in (b, a, b)")}
	}
	if d.Chance(3) {
		p.Spec.ResourceRequests = api.Quantities{Pick(d, "cpu", "memory"): Pick[api.Quantity](d, "1", "1000m", "2")}
	}
	return p
}

// rollLawToleration draws one of a few tolerations.
func rollLawToleration(d Dice) api.Toleration {
	t := api.Toleration{Key: Pick(d, "disk", api.TaintUnreachable), Effect: Pick(d, "", api.EffectNoSelect, api.EffectNoExecute)}
	if d.Chance(2) {
		t.Operator = api.TolerationExists
	} else {
		t.Value = Pick(d, "", "full")
	}
	if d.Chance(2) {
		t.TolerationSeconds = new(int64(30))
	}
	return t
}

// rollLawPredicate draws a predicate with one part.
func rollLawPredicate(d Dice) api.Predicate {
	switch d(4) {
	case 0:
		return api.Predicate{LabelSelector: rollLawSelector(d, "zone", "tier")}
	case 1:
		return api.Predicate{ClaimSelector: rollLawSelector(d, "country", "city")}
	case 2:
		return api.Predicate{CEL: []string{Pick(d, expressions...)}}
	}
	return api.Predicate{CEL: []string{Pick(d, lawCEL...)}}
}

// rollLawSelector draws a selector with one requirement.
func rollLawSelector(d Dice, keys ...string) *api.LabelSelector {
	r := api.SelectorRequirement{Key: Pick(d, keys...), Operator: Pick(d,
		api.SelectorIn, api.SelectorNotIn, api.SelectorExists, api.SelectorDoesNotExist)}
	if r.Operator == api.SelectorIn || r.Operator == api.SelectorNotIn {
		r.Values = []string{Pick(d, "a", "eu")}
	}
	return &api.LabelSelector{MatchExpressions: []api.SelectorRequirement{r}}
}

// RollLawWorkload draws a workload, often one with its own requirements on sites.
func RollLawWorkload(d Dice) *api.Workload {
	w := &api.Workload{Metadata: api.Metadata{Name: "w", Namespace: Pick(d, placementNamespaces...)}}
	w.Spec.APIVersion, w.Spec.Kind, _ = strings.Cut(Pick(d, lawTypes...), "/v1/")
	w.Spec.APIVersion += "/v1"
	w.Spec.Replicas = new(int64(3))
	if !d.Chance(2) {
		return w
	}
	a := &api.AllocationSpec{}
	w.Spec.Allocation = a
	if d.Chance(2) {
		a.SiteID = Pick(d, "eu", "eu--", "eu--z1", "us--z1")
	}
	for range d(3) {
		a.Regions = append(a.Regions, api.AllocationRegion{Region: Pick(d, "eu", "us"), AvailabilityZones: Pick(d, nil, lawZones[:1], lawZones)})
	}
	if d.Chance(2) {
		a.GeoLocation = &api.GeoLocation{Country: Pick(d, "eu", "us"), City: Pick(d, "", "eu", "us")}
	}
	if d.Chance(2) {
		a.Flavors = []string{Pick(d, lawFlavors...)}
	}
	return w
}

func rollLawAffinity(d Dice) api.ClusterAffinity {
	var a api.ClusterAffinity
	some := func() []string {
		if !d.Chance(3) {
			return nil
		}
		return []string{Pick(d, "c001", "c002"), Pick(d, "c002", "c003")}
	}
	a.ClusterNames, a.ExcludeClusters = some(), some()
	if d.Chance(2) {
		a.LabelSelector = rollLawSelector(d, "zone", "tier")
	}
	if d.Chance(2) {
		a.FieldSelector = []api.FieldRequirement{{
			Key: Pick(d, api.GroupByRegion, api.GroupByZone, api.GroupByProvider), Operator: Pick(d, api.SelectorIn, api.SelectorNotIn),
			Values: []string{Pick(d, "eu", "us", "z1", "acme")},
		}}
	}
	return a
}

// RollLawPolicy draws the policy of a workload.
func RollLawPolicy(d Dice) *api.PropagationPolicy {
	p := &api.PropagationPolicy{Metadata: api.Metadata{Name: "p", Namespace: "shop"}}
	place := &p.Spec.Placement
	for range 1 + d(2) {
		term := api.AffinityTerm{AffinityName: Pick(d, "first", "second"), ClusterAffinity: rollLawAffinity(d)}
		if d.Chance(2) {
			term.OverflowAffinities = []api.OverflowAffinity{{AffinityName: "more", ClusterAffinity: rollLawAffinity(d)}}
		}
		place.ClusterAffinities = append(place.ClusterAffinities, term)
	}
	for range d(3) {
		place.SpreadConstraints = append(place.SpreadConstraints, Pick(d,
			api.GroupConstraint{SpreadByField: api.GroupByRegion}, api.GroupConstraint{SpreadByField: api.GroupByZone},
			api.GroupConstraint{SpreadByLabel: "zone"}, api.GroupConstraint{SpreadByLabel: "host"}))
	}
	var spec api.PlacementSpec
	RollFilters(d, &spec)
	place.ClusterTolerations = spec.Tolerations
	return p
}

// Disagree finds two values that have the same key but say different things.
func Disagree[T any](list []T, key, says func(T) string) (x, y T, found bool) {
	said := map[string]T{}
	for _, one := range list {
		at := key(one)
		if before, ok := said[at]; !ok {
			said[at] = one
		} else if says(before) != says(one) {
			return before, one, true
		}
	}
	return x, y, false
}

// Remembered caches the results of a function.
func Remembered[T comparable](f func(T) string) func(T) string {
	known := map[T]string{}
	return func(of T) string {
		text, ok := known[of]
		if !ok {
			text = f(of)
			known[of] = text
		}
		return text
	}
}
