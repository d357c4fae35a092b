package ocm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

const (
	// setLabel is the label that puts a cluster into a set.
	setLabel = "cluster.open-cluster-management.io/clusterset"
	// versionClaim is the claim with a cluster's Kubernetes version.
	versionClaim = "kubeversion.open-cluster-management.io"
)

// World is a case in the form of this product's objects.
type World struct {
	Clusters []*api.Cluster
	Sets     []*api.ClusterSet
	Scores   []*api.PlacementScore
	// Others are other placements, whose decisions do not change.
	Others []*api.Placement
	// Placement is the one to be decided, with its present decision.
	Placement *api.Placement
}

// Objects returns all objects, in an order in which references come after their targets.
func (w *World) Objects() []api.Object {
	var out []api.Object
	for _, o := range w.Clusters {
		out = append(out, o)
	}
	for _, o := range w.Sets {
		out = append(out, o)
	}
	for _, o := range w.Scores {
		out = append(out, o)
	}
	for _, o := range w.Others {
		out = append(out, o)
	}
	return append(out, w.Placement)
}

// World translates a case of kind Schedule.
func (c *Case) World() *World {
	w := &World{}
	for i := range c.Clusters {
		// A cluster that is being deleted is translated as deleted: here, deletion takes no time.
		if !c.Clusters[i].Deleting {
			w.Clusters = append(w.Clusters, c.Clusters[i].object())
		}
	}
	w.Sets, w.Scores = c.sets(), c.scores()
	w.Placement = c.Placement.object()
	if c.ClusterSets != nil || c.Bindings != nil {
		w.Placement.Spec.ClusterSets = c.setsOf(&c.Placement)
	}
	w.decisions(c)
	for _, o := range w.Objects() {
		o.SetDefaults()
	}
	return w
}

func (c *cluster) object() *api.Cluster {
	o := &api.Cluster{Metadata: api.Metadata{Name: c.Name, UID: "uid-" + c.Name, Labels: c.Labels, Generation: 1}}
	o.Spec.Claims = c.Claims
	if c.KubernetesVersion != "" {
		o.Spec.Claims = map[string]string{versionClaim: c.KubernetesVersion}
	}
	o.Spec.Capacity, o.Spec.Allocatable = quantities(c.Capacity), quantities(c.Allocatable)
	for _, t := range c.Taints {
		effect := api.TaintEffect(t.Effect)
		o.Spec.Taints = append(o.Spec.Taints, api.Taint{Key: t.Key, Value: t.Value, Effect: effect})
		o.Status.Taints = append(o.Status.Taints, api.ClusterTaint{Key: t.Key, Value: t.Value, Effect: effect, TimeAdded: t.TimeAdded})
	}
	return o
}

func quantities(given map[string]string) api.Quantities {
	if given == nil {
		return nil
	}
	out := api.Quantities{}
	for name, amount := range given {
		out[name] = api.Quantity(amount)
	}
	return out
}

// sets returns the cluster sets, with the namespaces bound to each.
func (c *Case) sets() []*api.ClusterSet {
	var out []*api.ClusterSet
	for _, s := range c.ClusterSets {
		set := &api.ClusterSet{Metadata: api.Metadata{Name: s.Name}}
		set.Spec.Selector = &api.LabelSelector{MatchLabels: map[string]string{setLabel: s.Name}}
		if s.SelectorType == "LabelSelector" {
			set.Spec.Selector.MatchLabels = s.MatchLabels
		}
		set.Spec.Namespaces = []string{}
		for _, b := range c.Bindings {
			if b.ClusterSet == s.Name {
				set.Spec.Namespaces = append(set.Spec.Namespaces, b.Namespace)
			}
		}
		out = append(out, set)
	}
	return out
}

// setsOf returns the sets of a placement. If it names none, these are the sets bound to its namespace. Without a
// binding it may use none, which is expressed by naming sets that do not admit it.
func (c *Case) setsOf(p *placement) []string {
	if len(p.ClusterSets) > 0 {
		return p.ClusterSets
	}
	var names []string
	for _, b := range c.Bindings {
		if b.Namespace == p.Namespace {
			names = append(names, b.ClusterSet)
		}
	}
	if len(names) == 0 {
		for _, s := range c.ClusterSets {
			names = append(names, s.Name)
		}
	}
	return names
}

// scores returns the placement scores, one for each cluster and resource.
func (c *Case) scores() []*api.PlacementScore {
	var out []*api.PlacementScore
	for _, s := range c.Scores {
		i := slices.IndexFunc(out, func(o *api.PlacementScore) bool {
			return o.Metadata.Cluster == s.Cluster && o.Metadata.Name == s.Resource
		})
		if i < 0 {
			i = len(out)
			o := &api.PlacementScore{Metadata: api.Metadata{Cluster: s.Cluster, Name: s.Resource}}
			o.Spec = api.PlacementScoreSpec{Scores: map[string]int64{}, ValidUntil: s.ValidUntil}
			out = append(out, o)
		}
		out[i].Spec.Scores[s.Name] = s.Value
	}
	return out
}

func (s *selector) object() *api.LabelSelector {
	if s == nil {
		return nil
	}
	o := &api.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		o.MatchExpressions = append(o.MatchExpressions, api.SelectorRequirement{Key: e.Key, Operator: api.SelectorOperator(e.Operator), Values: e.Values})
	}
	return o
}

// builtins are the built-in prioritizers. An unknown one keeps its name.
var builtins = map[string]string{
	"Balance": api.PrioritizerBalance, "Steady": api.PrioritizerSteady, "Spread": api.PrioritizerSpread,
	"ResourceAllocatableCPU":    api.PrioritizerAllocatableCPU,
	"ResourceAllocatableMemory": api.PrioritizerAllocatableMemory,
}

func builtin(name string) string { return cmp.Or(builtins[name], name) }

func (p *placement) object() *api.Placement {
	o := &api.Placement{Metadata: api.Metadata{Namespace: p.Namespace, Name: p.Name, UID: "uid-" + p.Name, Generation: 1}}
	s := &o.Spec
	s.Strategy = api.StrategyPrioritizers
	s.NumberOfClusters, s.ClusterSets = p.NumberOfClusters, p.ClusterSets
	for _, d := range p.Predicates {
		s.Predicates = append(s.Predicates, api.Predicate{LabelSelector: d.LabelSelector.object(), ClaimSelector: d.ClaimSelector.object(), CEL: d.CEL})
	}
	for _, t := range p.Tolerations {
		s.Tolerations = append(s.Tolerations, api.Toleration{
			Key: t.Key, Operator: api.TolerationOperator(t.Operator), Value: t.Value,
			Effect: api.TaintEffect(t.Effect), TolerationSeconds: t.TolerationSeconds,
		})
	}
	if policy := p.PrioritizerPolicy; policy != nil {
		s.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.PrioritizerMode(strings.ToLower(policy.Mode))}
		for _, c := range policy.Configurations {
			config := api.PrioritizerConfig{Weight: &c.Weight}
			config.Type = api.PrioritizerType(strings.ToLower(c.Type))
			if config.Type == api.PrioritizerAddon {
				config.ResourceName, config.ScoreName = c.Resource, c.Score
			} else {
				config.Name = builtin(c.BuiltIn)
			}
			s.PrioritizerPolicy.Configurations = append(s.PrioritizerPolicy.Configurations, config)
		}
	}
	// There, a placement always has groups; without a strategy, it has one.
	s.DecisionStrategy = &api.DecisionStrategy{}
	if d := p.DecisionStrategy; d != nil {
		s.DecisionStrategy.ClustersPerDecisionGroup = api.GroupSize(strings.Trim(string(d.ClustersPerDecisionGroup), `"`))
		for _, g := range d.DecisionGroups {
			s.DecisionStrategy.DecisionGroups = append(s.DecisionStrategy.DecisionGroups, api.DecisionGroup{Name: g.Name, LabelSelector: g.LabelSelector.object()})
		}
	}
	return o
}

// decisions puts the existing decisions into the statuses of their placements.
func (w *World) decisions(c *Case) {
	since := c.Now.Add(-time.Hour)
	for _, d := range c.ExistingDecisions {
		name := cmp.Or(d.Placement, d.Name)
		owner := w.Placement
		if d.Namespace != c.Placement.Namespace || name != c.Placement.Name || d.Placement == "" {
			owner = w.other(d.Namespace, name)
		}
		s := &owner.Status
		s.ObservedGeneration, s.ScheduledAt, s.DecisionRevision = 1, &since, 1
		for _, chosen := range d.Clusters {
			s.Clusters = append(s.Clusters, chosen)
			s.Decisions = append(s.Decisions, api.Decision{Cluster: chosen, Rank: int64(len(s.Clusters)), Since: &since})
			if owner != w.Placement {
				w.ensure(chosen)
			}
		}
		if owner != w.Placement {
			number := int64(len(s.Clusters))
			owner.Spec.NumberOfClusters = &number
		}
	}
}

// other returns or creates a placement that never changes its decision.
func (w *World) other(namespace, name string) *api.Placement {
	for _, o := range w.Others {
		if o.Metadata.Namespace == namespace && o.Metadata.Name == name {
			return o
		}
	}
	o := &api.Placement{Metadata: api.Metadata{Namespace: namespace, Name: name, UID: "uid-" + namespace + "-" + name, Generation: 1}}
	migration := false
	o.Spec.Migration = &migration
	o.Spec.Tolerations = []api.Toleration{{Operator: api.TolerationExists}}
	w.Others = append(w.Others, o)
	return o
}

// ensure creates a cluster that others have chosen, if it does not exist. Such a cluster is not a candidate of the
// placement: it takes no new placements.
func (w *World) ensure(name string) {
	if slices.ContainsFunc(w.Clusters, func(o *api.Cluster) bool { return o.Metadata.Name == name }) {
		return
	}
	o := &api.Cluster{Metadata: api.Metadata{Name: name, UID: "uid-" + name, Generation: 1}}
	o.Spec.Paused = true
	w.Clusters = append(w.Clusters, o)
}
