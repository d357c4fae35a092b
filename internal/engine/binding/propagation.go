package binding

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// Propagation is a workload with the policy that it follows, compiled. Immutable.
type Propagation struct {
	key      api.Key
	Priority int64
	// Groups are the affinity groups in order of preference, at least one.
	Groups []AffinityGroup
	// Preempts says that the workload may displace others of lower priority.
	Preempts bool

	replicas    int64
	replicated  bool
	mode        division.Mode
	weights     []weight
	limits      []limit
	constraints []api.GroupConstraint
	needs       ledger.Needs
	descending  bool // see division.Request
	empty       bool
	strategy    strategy
	allocation  *allocation // the strategy, if it is an allocation
	spec        *api.WorkloadSpec

	clusterPurge  purge
	application   *purge // nil: an unhealthy workload stays
	toleration    time.Duration
	failBack      bool
	stabilization time.Duration
}

// AffinityGroup is one group of clusters that a workload may run on. Its query determines which
// clusters fit; queries of equal Class share their masks.
type AffinityGroup struct {
	Name  string
	Query *placement.Query
	tiers []filter.Affinity // the group itself, then its overflow tiers; none = every cluster
}

// weight is the static weight of the matching clusters.
type weight struct {
	affinity filter.Affinity
	weight   int64
}

// limit limits the replicas on each matching cluster.
type limit struct {
	affinity filter.Affinity
	min, max int64
}

// purge is how replicas leave a cluster.
type purge struct {
	mode  api.PurgeMode
	grace time.Duration
}

// NewPropagation compiles a workload and its policy, which is ignored if the workload has its own
// placement.
func NewPropagation(w *api.Workload, policy *api.PropagationPolicy) (*Propagation, error) {
	p := &Propagation{
		key: api.KeyOf(w), Priority: w.Spec.Priority, spec: &w.Spec,
		clusterPurge: purge{mode: api.PurgeGracefully, grace: api.DefaultGracePeriod.Or(0)},
	}
	if w.Spec.Replicas != nil {
		p.replicas, p.replicated = *w.Spec.Replicas, true
	}
	var err error
	if p.needs, err = ledger.NewNeeds(w); err != nil {
		return nil, err
	}
	if w.Spec.Allocation != nil {
		if err := p.newAllocation(w); err != nil {
			return nil, err
		}
		return p, nil
	}
	p.strategy = selection{policy}
	place := &policy.Spec.Placement
	p.constraints, p.empty = place.SpreadConstraints, place.EmptyClusters
	p.Preempts = policy.Spec.WorkloadPreemption == api.WorkloadPreemptionLowerPriority
	// Ties go to the earlier name for half of the workloads and to the later one for the others, so
	// that they do not all go to the same cluster. The hash is Karmada's.
	parity := fnv.New32a()
	_, _ = parity.Write([]byte(w.Metadata.UID)) // never fails
	p.descending = parity.Sum32()%2 == 1
	p.divide(place.ReplicaScheduling)
	p.leave(policy)
	if len(place.ClusterAffinities) == 0 {
		if err := p.addGroup(w, place, filter.NewAffinity("", place.ClusterAffinity)); err != nil {
			return nil, err
		}
	}
	for i := range place.ClusterAffinities {
		// Without replicas, nothing can overflow.
		if err := p.addGroup(w, place, filter.Tiers(&place.ClusterAffinities[i], p.replicated)...); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Divides reports whether a workload's replicas are divided among clusters, so that some of those on
// a cluster can go. policy is the one that it follows, or nil.
func Divides(w *api.Workload, policy *api.PropagationPolicy) bool {
	if w.Spec.Replicas == nil || w.Spec.Allocation == nil && policy == nil {
		return false
	}
	if w.Spec.Allocation != nil {
		return true
	}
	r := policy.Spec.Placement.ReplicaScheduling
	return r != nil && r.Type != api.Duplicated
}

// addGroup adds an affinity group: its own affinity, then its overflow tiers.
func (p *Propagation) addGroup(w *api.Workload, place *api.PropagationPlacement, tiers ...filter.Affinity) error {
	g := AffinityGroup{Name: tiers[0].Name, tiers: tiers}
	if len(tiers) == 1 && tiers[0].Everything() && tiers[0].Name == "" {
		g.tiers = nil
	}
	var err error
	if g.Query, err = placement.NewGroupQuery(p.key, &filter.Spec{
		Namespace: w.Metadata.Namespace, Workload: &w.Spec, Policy: place,
		Tiers: g.tiers, Tolerations: filter.NewTolerations(place.ClusterTolerations),
	}); err != nil {
		return err
	}
	p.Groups = append(p.Groups, g)
	return nil
}

// divide compiles how replicas are divided.
func (p *Propagation) divide(r *api.ReplicaScheduling) {
	if r == nil {
		return // Duplicated
	}
	for i := range r.ClusterLimits {
		l := limit{affinity: filter.NewAffinity("", &r.ClusterLimits[i].Affinity), max: division.Unlimited}
		if least := r.ClusterLimits[i].MinReplicas; least != nil {
			l.min = *least
		}
		if most := r.ClusterLimits[i].MaxReplicas; most != nil {
			l.max = *most
		}
		p.limits = append(p.limits, l)
	}
	if r.Type == api.Duplicated {
		return
	}
	weights := r.WeightPreference
	switch {
	case r.DivisionPreference == api.Aggregated:
		p.mode = division.Aggregate
	case weights != nil && weights.DynamicWeight != "":
		p.mode = division.Dynamic
	default:
		p.mode = division.Static
		if weights != nil {
			for i := range weights.StaticWeights {
				p.weights = append(p.weights, weight{filter.NewAffinity("", &weights.StaticWeights[i].Affinity), weights.StaticWeights[i].Weight})
			}
		}
	}
}

// leave compiles how and when the workload leaves clusters.
func (p *Propagation) leave(policy *api.PropagationPolicy) {
	if f := policy.Spec.Failover; f != nil {
		if c := f.Cluster; c != nil {
			p.clusterPurge = purge{c.PurgeMode, c.GracePeriod.Or(0)}
		}
		if a := f.Application; a != nil {
			p.application = &purge{a.PurgeMode, a.GracePeriod.Or(0)}
			p.toleration = a.Toleration.Or(0)
		}
	}
	if b := policy.Spec.FailBack; b != nil && b.Mode == api.FailBackAutomatic {
		p.failBack, p.stabilization = true, b.Stabilization.Or(0)
	}
}

// Group returns the index of an affinity group, or -1.
func (p *Propagation) Group(name string) int {
	return slices.IndexFunc(p.Groups, func(g AffinityGroup) bool { return g.Name == name })
}

// divided reports whether replicas are divided among clusters.
func (p *Propagation) divided() bool { return p.replicated && p.mode != division.Duplicate }

// WatchesAll reports whether every cluster that fits is used, so that a new one affects the
// workload even if it is complete: if each has all replicas, or its share by static weights. With 0
// replicas, it matters whether any cluster fits.
func (p *Propagation) WatchesAll() bool {
	return !p.divided() || p.mode == division.Static || p.replicas == 0
}

// WatchesRoom reports whether the room of every cluster that fits matters.
func (p *Propagation) WatchesRoom() bool { return !p.divided() }

// FailsBack reports whether earlier affinity groups take the workload back.
func (p *Propagation) FailsBack() bool { return p.failBack }

// Reads returns the aspects of clusters that the binding depends on, except for room.
func (p *Propagation) Reads() columns.Aspects {
	reads := columns.Aspects(0)
	for _, part := range p.reading {
		reads |= part
	}
	return reads
}

// reading yields each part that reads aspects of clusters, with these aspects: the checks determine
// which clusters may be chosen, limits and weights the replicas of each, and the strategy the rest.
// The grouping needs no entry, because the checks reject clusters without a group and so read it
// too.
func (p *Propagation) reading(yield func(part string, reads columns.Aspects) bool) {
	for i := range p.Groups {
		if !yield("checks", p.Groups[i].Query.Reads()) {
			return
		}
	}
	for i := range p.limits {
		if !yield("cluster_limits", p.limits[i].affinity.Reads()) {
			return
		}
	}
	for i := range p.weights {
		if !yield("static_weights", p.weights[i].affinity.Reads()) {
			return
		}
	}
	for part, reads := range p.strategy.reading {
		if !yield(part, reads&^columns.Amounts) {
			return
		}
	}
}

// DependsOnPlace reports whether the places or labels of chosen clusters matter: to spread
// constraints, limits or weights.
func (p *Propagation) DependsOnPlace() bool {
	return len(p.constraints)+len(p.limits)+len(p.weights) > 0 || p.strategy.inOneRegion()
}
