package api

import (
	"regexp"
	"strings"
)

// Limits on the lists of one policy.
const (
	maxAffinities       = 64
	maxGroupConstraints = 8
)

// Validate implements Object.
func (p *PropagationPolicy) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(p, GlobalOrNamespaced)
	s := &p.Spec
	if len(s.ResourceSelectors) == 0 {
		errs.Add("spec.resource_selectors", "must have at least one entry")
	}
	for i := range s.ResourceSelectors {
		p.validateSelector(&errs, index("spec.resource_selectors", i), &s.ResourceSelectors[i])
	}
	s.Placement.validate(&errs, "spec.placement")
	s.Failover.validate(&errs, "spec.failover")
	s.MoveBudget.validate(&errs, "spec.move_budget")
	s.Rollout.validate(&errs, "spec.rollout", false)
	s.AutoCluster.validate(&errs, "spec.auto_cluster")
	return errs.inOrder(p)
}

func (p *PropagationPolicy) validateSelector(errs *FieldErrors, field string, r *ResourceSelector) {
	errs.check(field+".api_version", checkAPIVersion(r.APIVersion))
	errs.check(field+".kind", checkResourceKind(r.Kind))
	if r.Namespace != "" {
		errs.check(field+".namespace", checkName(r.Namespace))
		if own := p.Metadata.Namespace; own != "" && r.Namespace != own {
			errs.Add(field+".namespace", "%q must be the policy's own namespace, %q: only a global policy can select workloads in other namespaces", r.Namespace, own)
		}
	}
	if r.Name != "" {
		errs.check(field+".name", checkName(r.Name))
	} else if p.Spec.Preemption == PreemptAlways {
		errs.Add(field+".name", "is required because spec.preemption is %q", string(PreemptAlways))
	}
	r.LabelSelector.validate(errs, field+".label_selector")
}

func (s *PropagationPlacement) validate(errs *FieldErrors, field string) {
	if s.ClusterAffinity != nil && len(s.ClusterAffinities) > 0 {
		errs.Add(field+".cluster_affinities", "must be absent because cluster_affinity is set: move it into this list as a group")
	}
	s.ClusterAffinity.validate(errs, field+".cluster_affinity")
	if len(s.ClusterAffinities) > maxAffinities {
		errs.Add(field+".cluster_affinities", "must have at most %d entries, has %d", maxAffinities, len(s.ClusterAffinities))
	}
	seen := map[string]string{}
	for i := range s.ClusterAffinities {
		s.validateTerm(errs, index(field+".cluster_affinities", i), &s.ClusterAffinities[i], seen)
	}
	validateTolerations(errs, field+".cluster_tolerations", s.ClusterTolerations)
	validateGroupConstraints(errs, field+".spread_constraints", s.SpreadConstraints)
	s.ReplicaScheduling.validate(errs, field+".replica_scheduling")
}

func (s *PropagationPlacement) validateTerm(errs *FieldErrors, field string, term *AffinityTerm, seen map[string]string) {
	checkAffinityName(errs, field+".affinity_name", term.AffinityName, seen)
	term.validate(errs, field)
	if len(term.OverflowAffinities) == 0 {
		return
	}
	overflow := field + ".overflow_affinities"
	if !s.ReplicaScheduling.fillsByCapacity() {
		errs.Add(overflow, "can only be used together with replica_scheduling type %q and division_preference %q or dynamic_weight: otherwise no group ever runs out of room", string(Divided), string(Aggregated))
	}
	if term.empty() {
		errs.Add(overflow, "must be absent because the group selects every cluster, so none is left to overflow to: give the group cluster_names, a label_selector or a field_selector")
	}
	if len(term.OverflowAffinities) > maxAffinities {
		errs.Add(overflow, "must have at most %d entries, has %d", maxAffinities, len(term.OverflowAffinities))
	}
	tiers := map[string]string{term.AffinityName: field + ".affinity_name"}
	for j := range term.OverflowAffinities {
		at := index(overflow, j)
		checkAffinityName(errs, at+".affinity_name", term.OverflowAffinities[j].AffinityName, tiers)
		term.OverflowAffinities[j].validate(errs, at)
	}
}

var affinityNameShape = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// checkAffinityName checks an affinity name, which must not be in seen.
func checkAffinityName(errs *FieldErrors, field, name string, seen map[string]string) {
	switch {
	case name == "":
		errs.Add(field, "is required")
		return
	case len(name) > 32 || !affinityNameShape.MatchString(name):
		errs.Add(field, "%q must have 1 to 32 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter or digit", name)
	}
	if first, ok := seen[name]; ok {
		errs.Add(field, "%q must be unique: it is already the name at %s", name, first)
		return
	}
	seen[name] = field
}

// empty reports whether the affinity selects every cluster that it does not exclude.
func (a *ClusterAffinity) empty() bool {
	return len(a.ClusterNames) == 0 && len(a.FieldSelector) == 0 && len(a.LabelSelector.Requirements()) == 0
}

func (a *ClusterAffinity) validate(errs *FieldErrors, field string) {
	if a == nil {
		return
	}
	checkNames(errs, field+".cluster_names", a.ClusterNames)
	checkNames(errs, field+".exclude_clusters", a.ExcludeClusters)
	a.LabelSelector.validate(errs, field+".label_selector")
	for i, r := range a.FieldSelector {
		if len(r.Values) == 0 && (r.Operator == SelectorIn || r.Operator == SelectorNotIn) {
			errs.Add(index(field+".field_selector", i)+".values", "must name at least one value")
		}
	}
}

func validateGroupConstraints(errs *FieldErrors, field string, constraints []GroupConstraint) {
	if len(constraints) > maxGroupConstraints {
		errs.Add(field, "must have at most %d entries, has %d", maxGroupConstraints, len(constraints))
	}
	seen := map[string]int{}
	byField, byCluster := false, false
	for i := range constraints {
		c := &constraints[i]
		at := index(field, i)
		switch {
		case c.SpreadByField != "" && c.SpreadByLabel != "":
			errs.Add(at, "must have spread_by_field or spread_by_label, not both")
		case c.SpreadByLabel != "":
			errs.check(at+".spread_by_label", checkLabelKey(c.SpreadByLabel))
		}
		byField = byField || c.SpreadByField != ""
		byCluster = byCluster || c.SpreadByField == GroupByCluster
		if first, ok := seen[c.By()]; ok {
			errs.Add(at, "%s is already listed at position %d", c.By(), first)
		} else {
			seen[c.By()] = i
		}
		least := int64(1)
		if c.MinGroups != nil {
			least = *c.MinGroups
		}
		if c.MaxGroups != nil && *c.MaxGroups > 0 && *c.MaxGroups < least {
			errs.Add(at+".max_groups", "%d must not be lower than min_groups, %d", *c.MaxGroups, least)
		}
	}
	if byField && !byCluster {
		errs.Add(field, "must also have an entry with spread_by_field %q: every other spread_by_field requires it", GroupByCluster)
	}
}

// fillsByCapacity reports whether replicas are divided by available capacity.
func (r *ReplicaScheduling) fillsByCapacity() bool {
	if r == nil || r.Type != Divided {
		return false
	}
	return r.DivisionPreference == Aggregated || r.WeightPreference != nil && r.WeightPreference.DynamicWeight != ""
}

func (r *ReplicaScheduling) validate(errs *FieldErrors, field string) {
	if r == nil {
		return
	}
	if w := r.WeightPreference; w != nil {
		for i := range w.StaticWeights {
			w.StaticWeights[i].Affinity.validate(errs, index(field+".weight_preference.static_weights", i)+".affinity")
		}
	}
	for i := range r.ClusterLimits {
		r.ClusterLimits[i].validate(errs, index(field+".cluster_limits", i))
	}
}

func (l *ClusterLimit) validate(errs *FieldErrors, field string) {
	l.Affinity.validate(errs, field+".affinity")
	least := int64(0)
	if l.MinReplicas != nil {
		least = *l.MinReplicas
	}
	if l.MaxReplicas == nil {
		if l.MinReplicas == nil {
			errs.Add(field, "must have min_replicas or max_replicas")
		}
		return
	}
	if most := *l.MaxReplicas; most >= 0 && most < least {
		errs.Add(field+".max_replicas", "%d must not be lower than min_replicas, %d", *l.MaxReplicas, least)
	}
}

func (f *Failover) validate(errs *FieldErrors, field string) {
	if f == nil {
		return
	}
	if c := f.Cluster; c != nil {
		validateGracePeriod(errs, field+".cluster.grace_period", c.GracePeriod, c.PurgeMode)
	}
	if a := f.Application; a != nil {
		validateGracePeriod(errs, field+".application.grace_period", a.GracePeriod, a.PurgeMode)
	}
}

// validateGracePeriod requires a grace period if replicas are purged gracefully, and rejects it
// otherwise. The field's own rule checks that it is a duration.
func validateGracePeriod(errs *FieldErrors, field string, period Duration, mode PurgeMode) {
	if mode != PurgeGracefully {
		if period != "" {
			errs.Add(field, "must be absent because purge_mode is %q", string(mode))
		}
		return
	}
	if d, err := period.Parse(); err == nil && d == 0 {
		errs.Add(field, "%q must be longer than 0", string(period))
	}
}

// validateAPIResources checks a cluster's resource types.
func validateAPIResources(errs *FieldErrors, field string, names []string) {
	checkUnique(errs, field, names)
	for i, name := range names {
		cut := strings.LastIndex(name, "/")
		if cut < 0 || checkAPIVersion(name[:cut]) != "" || checkResourceKind(name[cut+1:]) != "" {
			errs.Add(index(field, i), "%q must have the form <api version>/<kind>, such as \"apps/v1/Deployment\" or \"v1/ConfigMap\"", name)
		}
	}
}
