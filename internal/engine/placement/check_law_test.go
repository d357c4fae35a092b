package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// lawDice are dice that are the same in every run: a law is held against the same
// thousands of checks, and what a test must find it finds always or never.
func lawDice(seed uint64) dice { return rand.New(rand.NewPCG(seed, 14)).IntN }

var (
	lawRegions = []string{"", "eu", "us"}
	lawZones   = []string{"z1", "z2"}
	lawFlavors = []string{"small", "eu", "large"}
	lawTypes   = []string{"apps/v1/Deployment", "batch/v1/Job"}
	// lawCEL are expressions that each read one thing, besides those of the oracle.
	lawCEL = []string{
		`"a.example.com" in cluster.spec.custom_resources`,
		`cluster.spec.allocatable["cpu"] == "2"`,
		`cluster.metadata.labels["tier"] == "a"`,
		`cluster.spec.claims["version"] == "1.30"`,
		`cluster.spec.cloud_provider == "acme"`,
	}
)

// rollLawCluster draws a cluster with all that any check looks at.
func rollLawCluster(d dice, name string) *api.Cluster {
	c := rollCluster(d, name, false)
	for _, aspect := range slices.Sorted(maps.Keys(lawChanges)) {
		lawChanges[aspect](d, c)
	}
	return c
}

// lawChanges change one thing of a cluster, mostly.
var lawChanges = map[string]func(d dice, c *api.Cluster){
	"labels": func(d dice, c *api.Cluster) {
		c.Metadata.Labels = map[string]string{}
		for _, key := range []string{"zone", "tier"} {
			if !d.chance(4) {
				c.Metadata.Labels[key] = pick(d, labelValues...)
			}
		}
	},
	"claims": func(d dice, c *api.Cluster) {
		c.Spec.Claims = map[string]string{"version": pick(d, "1.30", "1.31"), "id": c.Metadata.Name, "country": pick(d, "eu", "us"), "city": pick(d, "eu", "us")}
	},
	"owner": func(d dice, c *api.Cluster) { c.Spec.Namespace = pick(d, "", "", "shop", "bank") },
	"state": func(d dice, c *api.Cluster) { c.Status.State = pick(d, api.StateOnline, api.StateOffline, "") },
	"pause": func(d dice, c *api.Cluster) { c.Spec.Paused = d.chance(3) },
	"taints": func(d dice, c *api.Cluster) {
		rollTaints(d, c, 2)
		if d.chance(2) {
			c.Status.Taints = append(c.Status.Taints, api.ClusterTaint{
				Key: api.TaintUnreachable, Value: pick(d, "", "full"), Effect: api.EffectNoSelect, TimeAdded: rollPast(d),
			})
		}
	},
	"region":   func(d dice, c *api.Cluster) { c.Spec.Region = pick(d, lawRegions...) },
	"zones":    func(d dice, c *api.Cluster) { c.Spec.Zones = pick(d, nil, lawZones[:1], lawZones[1:], lawZones) },
	"provider": func(d dice, c *api.Cluster) { c.Spec.CloudProvider = pick(d, "", "acme") },
	"custom resources": func(d dice, c *api.Cluster) {
		c.Spec.CustomResources = pick(d, nil, []string{"a.example.com"}, []string{"b.example.com"})
	},
	"api resources": func(d dice, c *api.Cluster) { c.Spec.APIResources = pick(d, nil, lawTypes[:1], lawTypes[1:]) },
	"flavors": func(d dice, c *api.Cluster) {
		c.Spec.Flavors = nil
		for _, name := range lawFlavors {
			if d.chance(2) {
				c.Spec.Flavors = append(c.Spec.Flavors, api.ClusterFlavor{Name: name})
			}
		}
	},
	"amounts": func(d dice, c *api.Cluster) {
		c.Spec.Allocatable, c.Spec.Allocated = rollQuantities(d), nil
		c.Status.Allocatable, c.Status.Allocated, c.Spec.Capacity, c.Status.Capacity = nil, nil, nil, nil
		if d.chance(2) {
			c.Spec.Capacity = c.Spec.Allocatable
		}
	},
	"observations": rollObserved,
	"metrics": func(d dice, c *api.Cluster) {
		c.Spec.Metrics = nil
		for _, key := range metricKeys {
			if d.chance(3) {
				c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: key.Name, Namespace: key.Namespace, Weight: ptr(pick(d, 0.5, 1, 4))})
			}
		}
	},
}

// rollLawWorld draws a small fleet in which metrics mostly work.
func rollLawWorld(d dice) *world {
	w := rollWorld(d, 0, false)
	for i := range 16 {
		name := fmt.Sprintf("c%03d", i)
		w.clusters[name] = rollLawCluster(d, name)
		w.scores[scoreKey(name, "speed")] = rollScore(d, scoreKey(name, "speed"))
	}
	for _, name := range setNames {
		w.sets[name] = rollSet(d, name, 16)
	}
	return w
}

// rollLawStep draws a change of one sort: of one cluster, or of what is beside
// clusters.
func rollLawStep(d dice, w *world) columns.Changes {
	name := pick(d, w.names()...)
	switch d(6) {
	case 0:
		key := pick(d, metricKeys...)
		m := rollMetric(d, key, false)
		if d.chance(4) {
			m = nil
		}
		return columns.Changes{Metrics: map[api.Key]*api.Metric{key: m}}
	case 1:
		key := scoreKey(name, "speed")
		return columns.Changes{Scores: map[api.Key]*api.PlacementScore{key: rollScore(d, key)}}
	case 2:
		set := pick(d, setNames...)
		return columns.Changes{Sets: map[string]*api.ClusterSet{set: rollSet(d, set, 16)}}
	}
	c := *w.clusters[name]
	lawChanges[pick(d, slices.Sorted(maps.Keys(lawChanges))...)](d, &c)
	return columns.Changes{Clusters: map[string]*api.Cluster{name: &c}}
}

// rollLawQueries draws what placements, workloads, allocations and guests ask of
// clusters.
func rollLawQueries(t *testing.T, d dice, n int) []*Query {
	t.Helper()
	var out []*Query
	add := func(q *Query, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		q.Key = api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"} // whose reservations do not count
		out = append(out, q)
	}
	empty := newWorld()
	for range n {
		p, _ := rollPlacement(d, empty)
		if d.chance(2) {
			p.Spec.Predicates = []api.Predicate{rollLawPredicate(d)}
		}
		if d.chance(3) {
			p.Spec.MetricConstraints = []string{pick(d, "load < 5", "load less than 5", "load <= 5", "cost > 0")}
		}
		if d.chance(3) {
			p.Spec.Strategy = api.StrategyPrioritizers
			p.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{
				{Type: api.PrioritizerMetric, Name: pick(d, "load", "ghost", "rare"), Weight: ptr[int64](1)},
			}}
		}
		if d.chance(3) {
			p.Spec.Tolerations = []api.Toleration{rollLawToleration(d)}
		}
		if d.chance(3) {
			p.Spec.LabelConstraints = []string{pick(d, "zone is a", "zone = a", "zone in (a, b)", "zone in (b, a, b)")}
		}
		if d.chance(3) {
			p.Spec.ResourceRequests = api.Quantities{pick(d, "cpu", "memory"): pick[api.Quantity](d, "1", "1000m", "2")}
		}
		add(Compile(p, d.chance(8)))
		w := rollLawWorkload(d)
		for _, s := range lawSpecs(w, rollLawPolicy(d)) {
			add(NewGroupQuery(api.KeyOf(w), s))
		}
	}
	return out
}

// lawSpecs are what a workload asks of clusters: as its policy says, group by group,
// or by itself.
func lawSpecs(w *api.Workload, policy *api.PropagationPolicy) []*filter.Spec {
	if w.Spec.Allocation != nil {
		return []*filter.Spec{{Namespace: w.Metadata.Namespace, Workload: &w.Spec}}
	}
	var specs []*filter.Spec
	place := &policy.Spec.Placement
	for i := range place.ClusterAffinities {
		term := &place.ClusterAffinities[i]
		tiers := []filter.Affinity{filter.NewAffinity(term.AffinityName, &term.ClusterAffinity)}
		for j := range term.OverflowAffinities {
			more := &term.OverflowAffinities[j]
			tiers = append(tiers, filter.NewAffinity(more.AffinityName, &more.ClusterAffinity))
		}
		specs = append(specs, &filter.Spec{
			Namespace: w.Metadata.Namespace, Workload: &w.Spec, Policy: place,
			Tiers: tiers, Tolerations: filter.NewTolerations(place.ClusterTolerations),
		})
	}
	return specs
}

// rollLawToleration draws one of few tolerations.
func rollLawToleration(d dice) api.Toleration {
	t := api.Toleration{Key: pick(d, "disk", api.TaintUnreachable), Effect: pick(d, "", api.EffectNoSelect, api.EffectNoExecute)}
	if d.chance(2) {
		t.Operator = api.TolerationExists
	} else {
		t.Value = pick(d, "", "full")
	}
	if d.chance(2) {
		t.TolerationSeconds = ptr[int64](30)
	}
	return t
}

// rollLawPredicate draws a predicate of one part.
func rollLawPredicate(d dice) api.Predicate {
	switch d(4) {
	case 0:
		return api.Predicate{LabelSelector: rollLawSelector(d, "zone", "tier")}
	case 1:
		return api.Predicate{ClaimSelector: rollLawSelector(d, "country", "city")}
	case 2:
		return api.Predicate{CEL: []string{pick(d, slices.Sorted(maps.Keys(oracleCEL))...)}}
	}
	return api.Predicate{CEL: []string{pick(d, lawCEL...)}}
}

// rollLawSelector draws a selector of one requirement.
func rollLawSelector(d dice, keys ...string) *api.LabelSelector {
	r := api.SelectorRequirement{Key: pick(d, keys...), Operator: pick(d,
		api.SelectorIn, api.SelectorNotIn, api.SelectorExists, api.SelectorDoesNotExist)}
	if r.Operator == api.SelectorIn || r.Operator == api.SelectorNotIn {
		r.Values = []string{pick(d, "a", "eu")}
	}
	return &api.LabelSelector{MatchExpressions: []api.SelectorRequirement{r}}
}

func rollLawWorkload(d dice) *api.Workload {
	w := &api.Workload{Metadata: api.Metadata{Name: "w", Namespace: pick(d, placementNamespaces...)}}
	w.Spec.APIVersion, w.Spec.Kind, _ = strings.Cut(pick(d, lawTypes...), "/v1/")
	w.Spec.APIVersion += "/v1"
	w.Spec.Replicas = ptr[int64](3)
	if !d.chance(2) {
		return w
	}
	a := &api.AllocationSpec{}
	w.Spec.Allocation = a
	if d.chance(2) {
		a.SiteID = pick(d, "eu", "eu--", "eu--z1", "us--z1")
	}
	for range d(3) {
		a.Regions = append(a.Regions, api.AllocationRegion{Region: pick(d, "eu", "us"), AvailabilityZones: pick(d, nil, lawZones[:1], lawZones)})
	}
	if d.chance(2) {
		a.GeoLocation = &api.GeoLocation{Country: pick(d, "eu", "us"), City: pick(d, "", "eu", "us")}
	}
	if d.chance(2) {
		a.Flavors = []string{pick(d, lawFlavors...)}
	}
	return w
}

func rollLawAffinity(d dice) api.ClusterAffinity {
	var a api.ClusterAffinity
	some := func() []string {
		if !d.chance(3) {
			return nil
		}
		return []string{pick(d, "c001", "c002"), pick(d, "c002", "c003")}
	}
	a.ClusterNames, a.ExcludeClusters = some(), some()
	if d.chance(2) {
		a.LabelSelector = rollLawSelector(d, "zone", "tier")
	}
	if d.chance(2) {
		a.FieldSelector = []api.FieldRequirement{{
			Key: pick(d, api.GroupByRegion, api.GroupByZone, api.GroupByProvider), Operator: pick(d, api.SelectorIn, api.SelectorNotIn),
			Values: []string{pick(d, "eu", "us", "z1", "acme")},
		}}
	}
	return a
}

func rollLawPolicy(d dice) *api.PropagationPolicy {
	p := &api.PropagationPolicy{Metadata: api.Metadata{Name: "p", Namespace: "shop"}}
	place := &p.Spec.Placement
	for range 1 + d(2) {
		term := api.AffinityTerm{AffinityName: pick(d, "first", "second"), ClusterAffinity: rollLawAffinity(d)}
		if d.chance(2) {
			term.OverflowAffinities = []api.OverflowAffinity{{AffinityName: "more", ClusterAffinity: rollLawAffinity(d)}}
		}
		place.ClusterAffinities = append(place.ClusterAffinities, term)
	}
	for range d(3) {
		place.SpreadConstraints = append(place.SpreadConstraints, pick(d,
			api.GroupConstraint{SpreadByField: api.GroupByRegion}, api.GroupConstraint{SpreadByField: api.GroupByZone},
			api.GroupConstraint{SpreadByLabel: "zone"}, api.GroupConstraint{SpreadByLabel: "host"}))
	}
	var spec api.PlacementSpec
	rollFilters(d, &spec)
	place.ClusterTolerations = spec.Tolerations
	return p
}

// lawLooks are looks at some fleets, with reservations.
func lawLooks(d dice, n int) []filter.Look {
	looks := make([]filter.Look, n)
	for i := range looks {
		w := rollLawWorld(d)
		w.now = epoch.Add(time.Duration(d(3)) * 40 * time.Second)
		f := w.fleet()
		reserved := ledger.NewReservations()
		for _, key := range []api.Key{{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}, {Kind: api.KindPlacement, Namespace: "shop", Name: "db"}} {
			for row := range f.Slots() {
				if d.chance(2) {
					reserved.Hold(f, key, ledger.Needs{{Resource: "cpu", Text: "1", Milli: 1000}}, f.Name(row), epoch.Add(time.Hour))
				}
			}
		}
		looks[i] = newLook(f, &Query{Key: api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}}, reserved)
	}
	return looks
}

// answers is all that a check answers, whoever asks: who is admitted, for how long,
// and what that depends on.
func answers(check filter.Check, looks []filter.Look) string {
	var b strings.Builder
	fmt.Fprintf(&b, "reads %b ", check.Reads())
	for i := range looks {
		l := &looks[i]
		keep := l.Fleet.Live().Grown(l.Fleet.Slots())
		check.Apply(l, keep)
		fmt.Fprintf(&b, "%x ", keep)
		for row := range l.Fleet.Slots() {
			fmt.Fprintf(&b, "%t", check.Admits(l, row, true))
			if e, ok := check.(filter.Expiring); ok {
				fmt.Fprint(&b, e.Until(l, row, false).Unix(), e.Until(l, row, true).Unix())
			}
		}
	}
	return b.String()
}

// told is all that a check tells.
func told(check filter.Check, looks []filter.Look) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q ", check.On(), check.Blame(1), check.Blame(2))
	for i := range looks {
		l := &looks[i]
		rejected := func(yield func(int) bool) {
			for row := range l.Fleet.Slots() {
				if !check.Admits(l, row, false) && !yield(row) {
					return
				}
			}
		}
		for row := range rejected {
			fmt.Fprintf(&b, "%q ", check.Reason(l, row))
		}
		if c, ok := check.(filter.Causer); ok {
			fmt.Fprintf(&b, "%+v ", c.Causes(l, rejected))
		}
	}
	return b.String()
}

// lawPool are checks by filter.
func lawPool(queries []*Query) map[string][]filter.Check {
	pool := map[string][]filter.Check{}
	for _, q := range queries {
		for _, check := range q.Checks.All {
			pool[check.Name()] = append(pool[check.Name()], check)
		}
	}
	return pool
}

// keyed is the key of a check, one part of it left out unless that is "", and the
// names of all its parts.
func keyed(check interface{ Key(k *filter.Key) }, words bool, leaveOut string) (key string, parts map[string]bool) {
	parts = map[string]bool{}
	k := filter.NewKey(words)
	k.LeaveOut = func(part string) bool {
		parts[part] = true
		return part == leaveOut
	}
	check.Key(&k)
	return k.String(), parts
}

// twoSay finds two of many that have one key and say something else.
func twoSay[T any](list []T, key, says func(T) string) (x, y T, found bool) {
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

// remembered asks only once for everything.
func remembered[T comparable](f func(T) string) func(T) string {
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

// TestEqualKeysAnswerEqually is the law that classes rest on: checks of one key
// admit the same clusters, for as long, and read the same; with the same words they
// tell the same. And every part of every key is needed: without it, two checks of
// one key answer, or tell, something else. A check that is added to the list is
// held to it without a line here, as long as the dice draw it.
func TestEqualKeysAnswerEqually(t *testing.T) {
	d := lawDice(1)
	looks := lawLooks(d, 8)
	pool := lawPool(rollLawQueries(t, d, 500))
	for _, each := range filter.All {
		list := pool[each.Name()]
		if len(list) < 50 {
			t.Errorf("%s: only %d checks were drawn", each.Name(), len(list))
			continue
		}
		answer := remembered(func(c filter.Check) string { return answers(c, looks) })
		tell := remembered(func(c filter.Check) string { return told(c, looks) })
		parts := map[bool]map[string]bool{false: {}, true: {}}
		for _, words := range []bool{false, true} {
			says := map[bool]func(filter.Check) string{false: answer, true: tell}[words]
			key := func(c filter.Check) string {
				key, has := keyed(c, words, "")
				maps.Copy(parts[words], has)
				return key
			}
			if x, y, found := twoSay(list, key, says); found {
				t.Errorf("%s: two checks of one key (words: %t) differ:\n%T%+v\n%T%+v", each.Name(), words, x, x, y, y)
			}
		}
		for part := range parts[true] {
			words := !parts[false][part] // it changes no answer, only how it is put
			says := map[bool]func(filter.Check) string{false: answer, true: tell}[words]
			key := func(c filter.Check) string {
				key, _ := keyed(c, words, part)
				return key
			}
			if _, _, found := twoSay(list, key, says); !found {
				t.Errorf("%s: nothing is missed where %q is left out of the keys", each.Name(), part)
			}
		}
	}
}

// viewed is what queries of a class have in common, as of some fleets.
func viewed(q *Query, looks []filter.Look) string {
	var b strings.Builder
	fmt.Fprintf(&b, "reads %b ", q.Reads())
	for i := range looks {
		l := &looks[i]
		v := NewView(l.Fleet, q, ledger.Others{Reserved: l.Reserved}, nil)
		fmt.Fprintf(&b, "%x %x %d ", v.Mask, v.Demoted, v.Until.Unix())
		if v.Ranking != nil {
			fmt.Fprint(&b, v.Ranking.Order, v.Ranking.Score)
		}
	}
	return b.String()
}

// respelled is a placement that asks for the same in other words.
func respelled(d dice, p *api.Placement) *api.Placement {
	other := *p
	s := &other.Spec
	mix := func(list []string) []string {
		list = append(slices.Clone(list), list[:d(len(list)+1)]...)
		slices.Reverse(list)
		return list
	}
	s.ClusterNames, s.ExcludeClusters = mix(s.ClusterNames), mix(s.ExcludeClusters)
	s.LabelConstraints, s.MetricConstraints, s.CustomResources, s.ClusterSets = mix(s.LabelConstraints), mix(s.MetricConstraints), mix(s.CustomResources), mix(s.ClusterSets)
	s.KubernetesVersion = strings.ReplaceAll(s.KubernetesVersion, " ", "")
	for i, text := range s.LabelConstraints {
		s.LabelConstraints[i] = strings.Replace(strings.Replace(text, " is not ", " != ", 1), " is ", " = ", 1)
	}
	s.Tolerations = append(slices.Clone(s.Tolerations), s.Tolerations...)
	slices.Reverse(s.Tolerations)
	s.Predicates = append(slices.Clone(s.Predicates), s.Predicates...)
	slices.Reverse(s.Predicates)
	return &other
}

// TestEqualClassesSeeTheSame is the law of classes: equal class, equal mask, equal
// ranking and equal wake-ups; and of the same wording, equal sentences.
func TestEqualClassesSeeTheSame(t *testing.T) {
	d := lawDice(2)
	looks := lawLooks(d, 6)
	queries := rollLawQueries(t, d, 200)
	empty := newWorld()
	for range 200 {
		p, _ := rollPlacement(d, empty)
		q, r := compile(t, p), compile(t, respelled(d, p))
		if q.Class != r.Class {
			t.Fatalf("what asks for the same has the classes %q and %q", q.Class, r.Class)
		}
		r.Key = q.Key
		queries = append(queries, q, r)
	}
	view := remembered(func(q *Query) string { return viewed(q, looks) })
	if x, y, found := twoSay(queries, func(q *Query) string { return q.Class }, view); found {
		t.Errorf("two queries of class %q see\n%s and\n%s", x.Class, view(x), view(y))
	}
	said := remembered(func(q *Query) string {
		var b strings.Builder
		for i := range looks {
			b.WriteString(Fits(looks[i].Fleet, q, ledger.Others{Reserved: looks[i].Reserved}) + "\n")
		}
		return b.String()
	})
	if x, y, found := twoSay(queries, func(q *Query) string { return q.Class + q.Wording() }, said); found {
		t.Errorf("two queries of wording %q are told\n%s and\n%s", x.Wording(), said(x), said(y))
	}
	// A text that is asked for by one filter is not what another asks for.
	a, b := newPlacement("web"), newPlacement("web")
	a.Spec.LabelConstraints = []string{"zone is a"}
	labelled, err := constraint.ParseLabel("zone is a")
	if err != nil {
		t.Fatal(err)
	}
	b.Spec.CustomResources = []string{labelled.Canonical()}
	queries = append(queries, compile(t, a), compile(t, b))
	// What rates clusters differently may ask for the same.
	for _, name := range scoreNames {
		c := newPlacement("web")
		c.Spec.Strategy, c.Spec.PrioritizerPolicy = api.StrategyPrioritizers, &api.PrioritizerPolicy{
			Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{{Type: api.PrioritizerAddon, ResourceName: "speed", ScoreName: name}},
		}
		queries = append(queries, compile(t, c))
	}
	for _, part := range []string{"terms", "filter", "checks"} {
		key := func(q *Query) string {
			k := filter.NewKey(false)
			k.LeaveOut = func(one string) bool { return one == part }
			q.writeClass(&k)
			return k.String()
		}
		if _, _, found := twoSay(queries, key, view); !found {
			t.Errorf("nothing is missed where %q is left out of the classes", part)
		}
	}
}

// TestChecksReadWhatTheySay: the answer of a check about a cluster changes only with
// an aspect that it says it reads, and it reads all that it says: of every aspect
// there is a change that nothing else would have told of.
func TestChecksReadWhatTheySay(t *testing.T) {
	d := lawDice(3)
	pool := lawPool(rollLawQueries(t, d, 150))
	type witness struct {
		filter string
		aspect columns.Aspects
	}
	seen := map[witness]bool{}
	declared := map[string]columns.Aspects{}
	admits := func(c filter.Check, l *filter.Look, row int) [2]bool {
		return [2]bool{c.Admits(l, row, false), c.Admits(l, row, true)}
	}
	// judge compares what a check says before and after, where all that changed
	// concerns aspects of it.
	judge := func(c filter.Check, before, after *filter.Look, concerned func(row int, reads columns.Aspects) bool, fleet columns.Aspects) {
		t.Helper()
		reads := c.Reads()
		declared[c.Name()] |= reads
		for row := range before.Fleet.Slots() {
			if row >= after.Fleet.Slots() || !before.Fleet.Live().Has(row) || !after.Fleet.Live().Has(row) ||
				admits(c, before, row) == admits(c, after, row) {
				continue
			}
			heard := func(reads columns.Aspects) bool { return concerned(row, reads) || fleet.Any(reads) }
			if !heard(reads) {
				t.Fatalf("%s %q about %s: it changes with something that it says it does not read", c.Name(), c.On(), before.Fleet.Name(row))
			}
			for left := reads; left != 0; left &= left - 1 {
				if aspect := left &^ (left - 1); !heard(reads &^ aspect) {
					seen[witness{c.Name(), aspect}] = true
				}
			}
		}
	}
	// unshown is a filter and one of the aspects that it says it reads of which no
	// change was seen to matter.
	unshown := func() (string, columns.Aspects) {
		for _, filter := range filter.All {
			for left := declared[filter.Name()]; left != 0; left &= left - 1 {
				if aspect := left &^ (left - 1); !seen[witness{filter.Name(), aspect}] {
					return filter.Name(), aspect
				}
			}
		}
		return "", 0
	}
	shown := func() bool { _, aspect := unshown(); return aspect == 0 }
	// What is rare takes longer to be drawn.
	for round := 0; round < 40 || round < 400 && !shown(); round++ {
		w := rollLawWorld(d)
		f := w.fleet()
		for range 60 {
			changes := rollLawStep(d, w)
			w.apply(changes, w.now)
			g, delta := f.With(changes, w.now)
			before, after := newLook(f, &Query{}, nil), newLook(g, &Query{}, nil)
			for _, filter := range filter.All {
				list := pool[filter.Name()]
				for range 12 {
					c := pick(d, list...)
					judge(c, &before, &after, delta.ConcernsRow, delta.Fleet)
					// What stands in conditions, and is no answer about a cluster.
					if delta.Fleet != 0 && fleetwide(c, f) != fleetwide(c, g) {
						if !delta.Fleet.Any(c.Reads()) {
							t.Fatalf("%s %q does not read %b", c.Name(), c.On(), delta.Fleet)
						}
						seen[witness{c.Name(), delta.Fleet & c.Reads()}] = true
					}
				}
			}
			f = g
		}
		// Reservations alone, and time alone: of a fleet without metrics and scores,
		// which time changes, too.
		lasting := w.changes()
		lasting.Metrics, lasting.Scores = nil, nil
		early, _ := (&columns.Fleet{}).With(lasting, f.Now())
		late, _ := early.With(columns.Changes{}, f.Now().Add(time.Duration(30+d(60))*time.Second))
		reserved := ledger.NewReservations()
		for row := range f.Slots() {
			reserved.Hold(f, api.Key{Name: "other"}, ledger.Needs{{Resource: "cpu", Text: "1", Milli: 1000}, {Resource: "memory", Text: "1Gi", Milli: 1 << 40}}, f.Name(row), epoch.Add(time.Hour))
		}
		free, held := newLook(f, &Query{}, nil), newLook(f, &Query{}, reserved)
		before, after := newLook(early, &Query{}, nil), newLook(late, &Query{}, nil)
		for _, filter := range filter.All {
			for _, c := range pool[filter.Name()] {
				none := func(int, columns.Aspects) bool { return false }
				judge(c, &free, &held, none, columns.Reserved)
				judge(c, &before, &after, none, columns.Clock)
			}
		}
	}
	if name, aspect := unshown(); aspect != 0 {
		t.Errorf("%s says that it reads aspect %b, and nothing shows it", name, aspect)
	}
}

// fleetwide is what a check says of the fleet as a whole.
func fleetwide(c filter.Check, f *columns.Fleet) string {
	switch c := c.(type) {
	case *filter.MetricConstraint:
		return fmt.Sprint(f.HasMetric(c.Is.Name()))
	case *filter.InSets:
		return fmt.Sprint(c.Usable(f))
	}
	return ""
}
