package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
)

// oracle is the naive implementation of the rules: maps, loops and one sort, over plain objects. The engine must give
// the same results.
type oracle struct {
	*enginetest.World
	holds []oracleHold
}

type oracleHold struct {
	placement api.Key
	cluster   string
	requests  api.Quantities
	since     time.Time
}

// verdict is what the oracle says about one metric.
type verdict struct {
	raw, normalized float64
	usable          bool
	unread          bool // it exists, and has no usable value
	onFailure       api.OnFailure
	staleAt         time.Time
}

// goneFromPolicy reports whether a placement's policy names a metric that does not exist.
func (o oracle) goneFromPolicy(p *api.Placement, name string) bool {
	policy := p.Spec.PrioritizerPolicy
	if p.Spec.Strategy != api.StrategyPrioritizers || policy == nil {
		return false
	}
	for key := range o.Metrics {
		if key.Name == name {
			return false
		}
	}
	return slices.ContainsFunc(policy.Configurations, func(c api.PrioritizerConfig) bool {
		return c.Type == api.PrioritizerMetric && c.Name == name && *c.Weight != 0
	})
}

// unreadOn reports whether a cluster lists a metric that cannot be read, of those that matter.
func (o oracle) unreadOn(c *api.Cluster, matters func(name string) bool) bool {
	return slices.ContainsFunc(c.Spec.Metrics, func(ref api.MetricRef) bool {
		return matters(ref.Name) && o.metric(ref.Key(), c.Metadata.Name).unread
	})
}

// metric returns the verdict on a metric of a cluster.
func (o oracle) metric(key api.Key, cluster string) verdict {
	v := o.reading(key, cluster)
	if m := o.Metrics[key]; m != nil {
		_, known := o.Providers[m.ProviderKey()]
		v.unread = known && !v.usable
	}
	return v
}

func (o oracle) reading(key api.Key, cluster string) verdict {
	m := o.Metrics[key]
	if m == nil {
		return verdict{onFailure: api.FailureExclude}
	}
	v := verdict{onFailure: m.Spec.OnFailure}
	provider, known := o.Providers[m.ProviderKey()]
	value, observedAt := m.Status.Value, m.Status.ObservedAt
	condition := api.FindCondition(m.Status.Conditions, api.ConditionAvailable)
	failed := condition != nil && condition.Status == api.ConditionFalse
	if own, ok := m.Status.Clusters[cluster]; ok && (!known || provider.Spec.PerCluster()) {
		value, observedAt = own.Value, own.ObservedAt
		condition, failed = &api.Condition{Reason: own.Reason}, own.Reason != ""
	} else if known && provider.Spec.PerCluster() {
		value = nil
	}
	if value == nil {
		return v
	}
	normalized, err := columns.Normalize(m.Spec, *value)
	if err != nil {
		return v
	}
	v.raw, v.normalized = *value, normalized
	switch {
	case v.onFailure == api.FailureLastValue:
		v.usable = true
	case !known:
	case !failed:
		v.usable = true
	case condition.Reason == "" || condition.Reason == api.ReasonUnreachableMetricsProvider:
		if observedAt == nil {
			break
		}
		age := 4 * provider.Spec.Interval.Or(15*time.Second)
		if m.Spec.MaxAge != "" {
			age = m.Spec.MaxAge.Or(0)
		}
		if end := observedAt.Add(age); o.Now.Before(end) {
			v.usable, v.staleAt = true, end
		}
	}
	return v
}

func (o oracle) nextAt() time.Time {
	var next time.Time
	for key := range o.Metrics {
		for _, cluster := range append(slices.Collect(maps.Keys(o.Metrics[key].Status.Clusters)), "") {
			if at := o.metric(key, cluster).staleAt; !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	for _, s := range o.Scores {
		if s.Spec.ValidUntil == nil || o.Clusters[s.Metadata.Cluster] == nil || o.Now.After(*s.Spec.ValidUntil) {
			continue
		}
		if at := s.Spec.ValidUntil.Add(1); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// available returns the amount of a resource that a placement could use, in thousandths.
func (o oracle) available(c *api.Cluster, resource string, p api.Key, current bool) (amount.Milli, bool) {
	figure := func(reported, declared api.Quantities) (amount.Milli, bool) {
		q, ok := reported[resource]
		if !ok {
			q, ok = declared[resource]
		}
		if !ok {
			return amount.Milli{}, false
		}
		milli, err := q.Milli()
		return milli, err == nil
	}
	free, ok := figure(c.Status.Allocatable, c.Spec.Allocatable)
	if !ok {
		return amount.Milli{}, false
	}
	used, _ := figure(c.Status.Allocated, c.Spec.Allocated)
	left, own := free.Minus(used).Rest(), amount.Milli{}
	for _, h := range o.holds {
		milli, _ := h.requests[resource].Milli()
		if h.cluster != c.Metadata.Name || h.requests[resource] == "" {
			continue
		}
		if c.Status.CapacityReportedAt == nil || h.since.After(*c.Status.CapacityReportedAt) {
			left = left.Minus(milli)
		}
		if current && h.placement == p {
			own = own.Plus(milli)
		}
	}
	return left.Plus(own), true
}

func (o oracle) online(c *api.Cluster) bool {
	return c.Status.State == api.StateOnline || (c.Status.State == "" && (c.Spec.Health == nil || c.Metadata.Generation > 1))
}

// rejects returns the first filter that rejects a cluster, and its reason, in the documented order of filters.
func (o oracle) rejects(p *api.Placement, c *api.Cluster, current bool) (filter, on string) {
	s := &p.Spec
	if c.Spec.Namespace != "" && c.Spec.Namespace != p.Metadata.Namespace {
		return "namespace", p.Metadata.Namespace
	}
	if len(s.ClusterSets) > 0 && !o.inSets(p, c) {
		return "cluster_sets", ""
	}
	if !o.online(c) && !o.excused(p, c, current) {
		return "state", ""
	}
	if c.Spec.Paused && !current {
		return "paused", ""
	}
	for _, t := range c.Taints() {
		automatic := t.Key == "scheduler/unreachable" || t.Key == "scheduler/unhealthy"
		if o.bars(p, t, current) && (o.online(c) || !automatic) {
			return "taints", ""
		}
	}
	if len(s.ClusterNames) > 0 && !slices.Contains(s.ClusterNames, c.Metadata.Name) {
		return "cluster_names", "cluster_names"
	}
	if slices.Contains(s.ExcludeClusters, c.Metadata.Name) {
		return "cluster_names", "exclude_clusters"
	}
	for _, text := range s.LabelConstraints {
		l, err := constraint.ParseLabel(text)
		if err != nil || !l.Match(c.Metadata.Labels) {
			return "label_constraints", text
		}
	}
	if s.KubernetesVersion != "" && !slices.Contains(versionsOf[s.KubernetesVersion], c.Status.KubernetesVersion) {
		return "kubernetes_version", s.KubernetesVersion
	}
	if len(s.Predicates) > 0 && !slices.ContainsFunc(s.Predicates, func(x api.Predicate) bool { return o.matches(p, x, c, current) }) {
		return "predicates", ""
	}
	for _, name := range s.CustomResources {
		if !slices.Contains(c.Spec.CustomResources, name) {
			return "custom_resources", name
		}
	}
	for _, ref := range c.Spec.Metrics {
		// A policy that names a missing metric is misconfigured, which ends no decision.
		misconfigured := current && o.goneFromPolicy(p, ref.Name)
		if v := o.metric(ref.Key(), c.Metadata.Name); !v.usable && v.onFailure != api.FailureIgnore && !misconfigured && (!current || !v.unread) {
			return "metrics_available", ""
		}
	}
	for _, text := range s.MetricConstraints {
		m, err := constraint.ParseMetric(text)
		if err != nil || !m.Match(o.figure(p, c, m.Name())) && (!current || !o.unreadNamed(p, c, m.Name())) {
			return "metric_constraints", text
		}
	}
	for _, resource := range []string{"cpu", "memory", "nvidia.com/gpu"} {
		request, ok := s.ResourceRequests[resource]
		if !ok {
			continue
		}
		milli, _ := request.Milli()
		if milli == (amount.Milli{}) {
			continue
		}
		if available, ok := o.available(c, resource, api.KeyOf(p), current); !ok || available.Less(milli) {
			return "resource_requests", resource
		}
	}
	return "", ""
}

// versionsOf lists the generated versions that satisfy each generated constraint.
var versionsOf = map[string][]string{
	">= 1.33":      {"v1.33.0", "v1.33.2+k3s1"},
	">=1.33":       {"v1.33.0", "v1.33.2+k3s1"},
	"< 2, >= 1.33": {"v1.33.0", "v1.33.2+k3s1"},
	"~> 1.32.0":    {"v1.32.0", "v1.32.1-eks-4f2e1a"},
	"!= 1.33.0":    {"v1.32.0", "v1.32.1-eks-4f2e1a", "v1.33.2+k3s1"},
}

func (o oracle) inSets(p *api.Placement, c *api.Cluster) bool {
	for _, name := range p.Spec.ClusterSets {
		set := o.Sets[name]
		if set == nil {
			continue
		}
		admitted := slices.Contains(set.Spec.Namespaces, "*") || slices.Contains(set.Spec.Namespaces, p.Metadata.Namespace)
		member := slices.Contains(set.Spec.Clusters, c.Metadata.Name)
		if set.Spec.Selector != nil {
			member = selects(set.Spec.Selector, c.Metadata.Labels)
		}
		if admitted && member {
			return true
		}
	}
	return false
}

// selects evaluates a Kubernetes label selector.
func selects(s *api.LabelSelector, labels map[string]string) bool {
	if s == nil {
		return true
	}
	for key, value := range s.MatchLabels {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	for _, r := range s.MatchExpressions {
		got, ok := labels[r.Key]
		listed := slices.Contains(r.Values, got)
		holds := map[api.SelectorOperator]bool{
			"In": ok && listed, "NotIn": !ok || !listed, "Exists": ok, "DoesNotExist": !ok,
		}
		if !holds[r.Operator] {
			return false
		}
	}
	return true
}

// bars reports whether a taint excludes a placement from a cluster.
func (o oracle) bars(p *api.Placement, t api.ClusterTaint, current bool) bool {
	effects := map[api.TaintEffect]string{
		"NoSelect": "all", "NoExecute": "all", "NoSelectIfNew": "new", "NoSchedule": "new",
		"PreferNoSelect": "none", "PreferNoSchedule": "none",
	}
	effect := effects[t.Effect]
	if effect == "none" || effect == "new" && current {
		return false
	}
	for _, x := range p.Spec.Tolerations {
		switch {
		case x.Effect != "" && effects[x.Effect] != effect, x.Key != "" && x.Key != t.Key:
			continue
		case x.Operator == "Equal" && x.Value != t.Value:
			continue
		case x.TolerationSeconds == nil || *x.TolerationSeconds > 1<<40:
			return false
		case t.TimeAdded == nil:
			continue
		}
		if o.Now.Unix()-t.TimeAdded.Unix() < *x.TolerationSeconds {
			return false
		}
	}
	return true
}

// runsOut returns the time at which the first taint that ends decisions is no longer tolerated.
func (o oracle) runsOut(p *api.Placement, c *api.Cluster) time.Time {
	var first time.Time
	for _, t := range c.Taints() {
		if t.Effect != "NoSelect" && t.Effect != "NoExecute" || t.TimeAdded == nil {
			continue
		}
		// Each toleration counts separately; the longest wins.
		var last time.Time
		ever := false
		for _, x := range p.Spec.Tolerations {
			alone := *p
			alone.Spec.Tolerations = []api.Toleration{x}
			switch {
			case o.bars(&alone, t, false):
			case x.TolerationSeconds == nil || *x.TolerationSeconds > 1<<40:
				ever = true
			default:
				if end := t.TimeAdded.Add(time.Duration(*x.TolerationSeconds) * time.Second); end.After(last) {
					last = end
				}
			}
		}
		if !ever && !last.IsZero() && (first.IsZero() || last.Before(first)) {
			first = last
		}
	}
	return first
}

// demoted reports whether a cluster has a taint that ranks it last among equals.
func (o oracle) demoted(p *api.Placement, c *api.Cluster) bool {
	return slices.ContainsFunc(c.Taints(), func(t api.ClusterTaint) bool {
		if t.Effect != "PreferNoSelect" && t.Effect != "PreferNoSchedule" {
			return false
		}
		return !slices.ContainsFunc(p.Spec.Tolerations, func(x api.Toleration) bool {
			return (x.Effect == "" || x.Effect == "PreferNoSelect" || x.Effect == "PreferNoSchedule") &&
				(x.Key == "" || x.Key == t.Key) && (x.Operator == "Exists" || x.Value == t.Value)
		})
	})
}

// excused reports whether a cluster that is not online has a taint for that, and
// the placement tolerates it.
func (o oracle) excused(p *api.Placement, c *api.Cluster, current bool) bool {
	found := false
	for _, t := range c.Taints() {
		if t.Key == "scheduler/unreachable" || t.Key == "scheduler/unhealthy" {
			if o.bars(p, t, current) {
				return false
			}
			found = true
		}
	}
	return found
}

// oracleCEL lists expressions with their meaning.
var oracleCEL = map[string]func(o oracle, p *api.Placement, c *api.Cluster) bool{
	`managedCluster.metadata.labels["zone"] == "a"`: func(_ oracle, _ *api.Placement, c *api.Cluster) bool {
		return c.Metadata.Labels["zone"] == "a"
	},
	`cluster.metadata.labels["tier"] != "b" && cluster.spec.claims["version"] == "1.31"`: func(_ oracle, _ *api.Placement, c *api.Cluster) bool {
		tier, ok := c.Metadata.Labels["tier"]
		return ok && tier != "b" && c.Spec.Claims["version"] == "1.31"
	},
	`cluster.spec.region == "eu"`: func(_ oracle, _ *api.Placement, c *api.Cluster) bool { return c.Spec.Region == "eu" },
	// Labels that a cluster does not have are absent: the expression fails.
	`!("zone" in managedCluster.metadata.labels)`: func(_ oracle, _ *api.Placement, c *api.Cluster) bool {
		_, ok := c.Metadata.Labels["zone"]
		return len(c.Metadata.Labels) > 0 && !ok
	},
	`managedCluster.spec.taints.exists(t, t.effect == "NoSelectIfNew")`: func(_ oracle, _ *api.Placement, c *api.Cluster) bool {
		return slices.ContainsFunc(c.Taints(), func(t api.ClusterTaint) bool {
			return t.Effect == api.EffectNoSelectIfNew || t.Effect == api.EffectNoSchedule
		})
	},
	`managedCluster.status.conditions.exists(c, c.type == "ManagedClusterConditionAvailable" && c.status == "False")`: func(_ oracle, _ *api.Placement, c *api.Cluster) bool {
		return c.Status.State == api.StateUnhealthy || c.Status.State == api.StateNotReady
	},
	`managedCluster.status.conditions.exists(c, c.type == "Ready" && c.reason == "Slow") || managedCluster.status.version.kubernetes == "v1.33.0"`: func(_ oracle, _ *api.Placement, c *api.Cluster) bool {
		return slices.ContainsFunc(c.Status.Conditions, func(o api.Condition) bool { return o.Type == "Ready" && o.Reason == "Slow" }) ||
			c.Status.KubernetesVersion == "v1.33.0"
	},
	`cluster.scores("speed").exists(s, s.name == "cpu" && s.value > 0)`: func(o oracle, _ *api.Placement, c *api.Cluster) bool {
		s := o.Scores[enginetest.ScoreKey(c.Metadata.Name, "speed")]
		return s != nil && s.Spec.Scores["cpu"] > 0 && (s.Spec.ValidUntil == nil || !o.Now.After(*s.Spec.ValidUntil))
	},
	`cluster.metric("load") < 5.0`: func(o oracle, p *api.Placement, c *api.Cluster) bool {
		raw := *p
		raw.Spec.MetricConstraintBasis = api.BasisRaw
		value, ok := o.figure(&raw, c, "load")
		return ok && value < 5
	},
}

func (o oracle) matches(p *api.Placement, x api.Predicate, c *api.Cluster, current bool) bool {
	if !selects(x.LabelSelector, c.Metadata.Labels) || !selects(x.ClaimSelector, c.Spec.Claims) {
		return false
	}
	for _, text := range x.CEL {
		unread := current && strings.Contains(text, `cluster.metric("load")`) && o.unreadNamed(p, c, "load")
		if !oracleCEL[text](o, p, c) && !unread {
			return false
		}
	}
	return true
}

// metricNamed returns the metric that a name in a placement means on a cluster.
func metricNamed(p *api.Placement, c *api.Cluster, name string) (api.MetricRef, bool) {
	refs := map[string]api.MetricRef{}
	first := ""
	for _, ref := range c.Spec.Metrics {
		if ref.Name == name {
			if len(refs) == 0 {
				first = ref.Namespace
			}
			refs[ref.Namespace] = ref
		}
	}
	for _, namespace := range []string{p.Metadata.Namespace, "", first} {
		if ref, ok := refs[namespace]; ok {
			return ref, true
		}
	}
	return api.MetricRef{}, false
}

func (o oracle) unreadNamed(p *api.Placement, c *api.Cluster, name string) bool {
	ref, ok := metricNamed(p, c, name)
	return ok && o.metric(ref.Key(), c.Metadata.Name).unread
}

// figure returns the value that a metric constraint compares on a cluster.
func (o oracle) figure(p *api.Placement, c *api.Cluster, name string) (float64, bool) {
	ref, ok := metricNamed(p, c, name)
	if !ok {
		return 0, false
	}
	v := o.metric(ref.Key(), c.Metadata.Name)
	switch p.Spec.MetricConstraintBasis {
	case api.BasisNormalized:
		return v.normalized, v.usable
	case api.BasisWeighted:
		return v.normalized * columns.WeightOf(ref), v.usable
	default:
		return v.raw, v.usable
	}
}

// score is the formula of rule 3 (docs/architecture.md), word for word.
func (o oracle) score(p *api.Placement, c *api.Cluster, sticky bool) (scored bool, score float64) {
	s := 0.0
	if sticky {
		s = *p.Spec.Metrics.Stickiness
	}
	products, weights := 0.0, 0.0
	for _, ref := range c.Spec.Metrics {
		if v := o.metric(ref.Key(), c.Metadata.Name); v.usable {
			products += float64(columns.WeightOf(ref) * v.normalized)
			weights += columns.WeightOf(ref)
		}
	}
	if weights == 0 {
		return false, s
	}
	return true, (products + s) / (weights + s)
}

type seat struct {
	cluster string
	score   float64
}

type answer struct {
	seats  []seat // best first
	same   bool
	held   KeptBy
	nextAt time.Time
}

type candidate struct {
	name          string
	current       bool
	scored        bool
	demoted       bool
	score, bonus  float64
	tie           uint64
	unconditional bool // keeps its cluster whatever the scores are
}

// compare orders candidates by score, with or without the bonus.
func (x candidate) compare(y candidate, bonus bool) int {
	a, b := x.score, y.score
	if bonus {
		a, b = a+x.bonus, b+y.bonus
	}
	rank := func(yes bool) int {
		if yes {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(rank(x.unconditional), rank(y.unconditional)),
		cmp.Compare(rank(x.scored), rank(y.scored)),
		cmp.Compare(b, a),
		cmp.Compare(rank(x.current), rank(y.current)),
		cmp.Compare(rank(!x.demoted), rank(!y.demoted)),
		cmp.Compare(x.tie, y.tie),
		cmp.Compare(x.name, y.name))
}

// decide follows rules 3 to 5 of docs/architecture.md: all clusters that fit in one sorted list.
func (o oracle) decide(p *api.Placement, present Present) answer {
	seed := p.Metadata.UID
	if seed == "" {
		seed = api.KeyOf(p).Path()
	}
	var fit []candidate
	staying, unread := 0, false
	for name, c := range o.Clusters {
		current := slices.ContainsFunc(present.Decisions, func(d api.Decision) bool { return d.Cluster == name })
		if filter, _ := o.rejects(p, c, current); filter != "" {
			continue
		}
		x := candidate{name: name, current: current, tie: columns.TieHash(columns.HashText(seed), columns.HashText(name))}
		x.demoted = o.demoted(p, c)
		x.scored, x.score = o.score(p, c, current && !present.Fresh)
		if current {
			staying++
			unread = unread || o.unreadOn(c, func(string) bool { return true })
			if !present.Fresh {
				x.bonus = p.Spec.MinImprovement
			}
		}
		fit = append(fit, x)
	}
	wanted := len(fit)
	if n := p.Spec.NumberOfClusters; n != nil {
		wanted = min(wanted, int(*n))
	}
	choose := func() []candidate {
		slices.SortFunc(fit, func(x, y candidate) int { return x.compare(y, true) })
		return slices.Clone(fit[:wanted])
	}
	chosen := choose()
	kept := func() int {
		n := 0
		for _, x := range chosen {
			if x.current {
				n++
			}
		}
		return n
	}
	var out answer
	end := present.ScheduledAt.Add(p.Spec.RescheduleAfter.Or(0))
	young := present.Answered && !present.Fresh && o.Now.Before(end)
	unread = unread && !present.Fresh
	if (young || !*p.Spec.Migration || unread) && kept() < min(staying, wanted) {
		for i := range fit {
			fit[i].unconditional = fit[i].current
		}
		chosen = choose()
		out.held = KeptByMigration
		switch {
		case !*p.Spec.Migration:
		case young:
			out.held, out.nextAt = keptByAge, end
		default:
			out.held = keptByUnread
		}
	}
	for _, x := range chosen {
		if at := o.runsOut(p, o.Clusters[x.name]); !at.IsZero() && (out.nextAt.IsZero() || at.Before(out.nextAt)) {
			out.nextAt = at
		}
	}
	out.same = kept() == len(chosen) && len(chosen) == len(present.Decisions)
	for i := range chosen {
		chosen[i].unconditional = false
	}
	slices.SortFunc(chosen, func(x, y candidate) int { return x.compare(y, false) })
	for _, x := range chosen {
		out.seats = append(out.seats, seat{x.name, x.score})
	}
	return out
}
