package auth

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Shared objects may contain information about others: a shared cluster lists metrics of a
// namespace, and a workload was displaced by one of another namespace. Names in a spec are shown,
// because they were written by somebody who may read the referenced object; values derived from
// them are shown only to those who may read them.

// SeesDamaged reports whether a reader may know of a damaged object. If the object itself or its
// cluster names the owners, they are unknown.
func (who Identity) SeesDamaged(key api.Key) bool {
	info, _ := api.LookupKind(key.Kind)
	_, owned := info.New().(owned)
	return who.ReadsEvery(key.Kind) || !owned && info.Scope != api.OfCluster && who.Reads(key.Kind, OwnersIn(key.Namespace)...)
}

// Disclosed returns an object without information in its status about objects that the reader may
// not see. It is a copy if something is left out.
func (r Rights) Disclosed(who Identity, object api.Object) api.Object {
	if who.all(anyVerb) {
		return object
	}
	switch o := object.(type) {
	case *api.Workload:
		return r.disclosedWorkload(who, o)
	case *api.Placement:
		return r.disclosedPlacement(who, o)
	case *api.Metric:
		if o.Status.Clusters != nil && !who.SeesEvery(api.KindCluster) {
			return disclosedMetric(o)
		}
	}
	object = r.withoutHostScore(who, object)
	hidden := func(m api.ClusterMetricStatus) bool {
		return !who.seesMetric(api.Key{Kind: api.KindMetric, Namespace: m.Namespace, Name: m.Name})
	}
	metrics := metricsOf(object)
	if metrics == nil || !slices.ContainsFunc(*metrics, hidden) {
		return object
	}
	object = object.Copy()
	metrics = metricsOf(object)
	*metrics = slices.Clone(*metrics)
	for i, m := range *metrics {
		if hidden(m) {
			(*metrics)[i] = api.ClusterMetricStatus{Name: m.Name, Namespace: m.Namespace, Weight: m.Weight, Reason: api.ReasonWithheld}
		}
	}
	return object
}

// disclosedPlacement returns a placement without the scores that its reader may not see, and without
// what made it change if that is not visible.
func (r Rights) disclosedPlacement(who Identity, placement *api.Placement) *api.Placement {
	visible, cause := r.VisibleScores(who, placement), r.DisclosedCause(who, api.KeyOf(placement), placement.Status.Cause)
	margin := r.visibleMargin(who, placement)
	if cause == placement.Status.Cause && margin == placement.Status.Margin && (len(visible) == 0 || &visible[0] == &placement.Status.Decisions[0]) {
		return placement
	}
	shown := *placement
	shown.Status.Decisions, shown.Status.Cause, shown.Status.Margin = visible, cause, margin
	return &shown
}

// disclosedWorkload returns a workload without what displaced it, and what made it change, if that
// is not visible.
func (r Rights) disclosedWorkload(who Identity, workload *api.Workload) *api.Workload {
	shown := who.disclosedPreemptions(workload)
	if cause := r.DisclosedCause(who, api.KeyOf(workload), workload.Status.Cause); cause != workload.Status.Cause {
		copied := *shown
		copied.Status.Cause = cause
		return &copied
	}
	return shown
}

// DisclosedCause returns what made the decision on an object change: only the kind of change, unless
// the reader may see what changed. Who owns an object that is gone is not known any more.
func (r Rights) DisclosedCause(who Identity, decided api.Key, cause *api.Cause) *api.Cause {
	if cause == nil || cause.Object == nil || *cause.Object == decided {
		return cause
	}
	if entry := r.fleet.Snapshot().Get(*cause.Object); entry != nil && r.Reads(who, entry.Object) || entry == nil && who.SeesDamaged(*cause.Object) {
		return cause
	}
	return &api.Cause{Type: cause.Type}
}

// withoutHostScore returns a cluster or Magnum cluster without the score of its cloud or project,
// if that contains the value of a metric that may not be shown.
func (r Rights) withoutHostScore(who Identity, object api.Object) api.Object {
	snapshot := r.fleet.Snapshot()
	ratedByHidden := func(host api.Key) bool {
		entry := snapshot.Get(host)
		if entry == nil {
			return false
		}
		_, hidden := who.meansHidden("", "", listedBy(snapshot, entry.Object))
		return hidden
	}
	switch o := object.(type) {
	case *api.Cluster:
		if ratedByHidden(api.Key{Kind: api.KindCloud, Name: o.Status.Cloud}) {
			shown := *o
			shown.Status.CloudScore = nil
			return &shown
		}
	case *api.MagnumCluster:
		if ratedByHidden(api.Key{Kind: api.KindOpenStackProject, Namespace: o.Metadata.Namespace, Name: o.Status.Project}) {
			shown := *o
			shown.Status.Score = nil
			return &shown
		}
	}
	return object
}

// disclosedMetric returns a metric with per-cluster values without the names of clusters. Each
// cluster has its value in its own status.
func disclosedMetric(metric *api.Metric) *api.Metric {
	m := *metric
	m.Status.Clusters = nil
	m.Status.Conditions = slices.Clone(m.Status.Conditions)
	if available := api.FindCondition(m.Status.Conditions, api.ConditionAvailable); available != nil && available.Status == api.ConditionTrue {
		available.Message = "" // it contains numbers of clusters
	}
	return &m
}

// metricsOf returns the metrics whose values the status of an object contains, or nil.
func metricsOf(object api.Object) *[]api.ClusterMetricStatus {
	switch o := object.(type) {
	case *api.Cluster:
		return &o.Status.Metrics
	case *api.Cloud:
		return &o.Status.Metrics
	case *api.OpenStackProject:
		return &o.Status.Metrics
	case *api.MagnumCluster:
		return &o.Status.Metrics
	}
	return nil
}

// disclosedPreemptions returns a workload without the names and priorities of workloads that
// displaced it, unless the reader may see them.
func (who Identity) disclosedPreemptions(workload *api.Workload) *api.Workload {
	hidden := func(p api.PreemptedBy) bool { return p.Workload != "" && !who.SeesWorkload(p.Workload) }
	if !slices.ContainsFunc(workload.Status.Preemptions, hidden) {
		return workload
	}
	w := *workload
	w.Status.Preemptions = slices.Clone(w.Status.Preemptions)
	for i := range w.Status.Preemptions {
		if p := &w.Status.Preemptions[i]; hidden(*p) {
			p.Workload, p.Priority = "", nil
		}
	}
	return &w
}

// withheldReason replaces a reason that contains the value of a metric that the reader may not see.
const withheldReason = "withheld: the metric belongs to a namespace that the token must not read"

// discloseValues removes the values of metrics that the reader may not see from candidates, which
// must be a copy.
func (who Identity) discloseValues(candidates []api.Candidate) {
	hidden := func(metric *api.Key) bool {
		return metric != nil && !who.Reads(metric.Kind, OwnersIn(metric.Namespace)...)
	}
	for i := range candidates {
		c := &candidates[i]
		if hidden(c.Tells) {
			c.Reason = withheldReason
		}
		if !slices.ContainsFunc(c.Scores, func(p api.ScorePart) bool { return hidden(p.Tells) }) {
			continue
		}
		c.Score = nil
		c.Scores = slices.Clone(c.Scores)
		for j := range c.Scores {
			if p := &c.Scores[j]; hidden(p.Tells) {
				*p = api.ScorePart{Name: p.Name, Weight: p.Weight, Reason: withheldReason}
			}
		}
	}
}

// VisibleBindings returns a copy of a policy without the bindings of workloads that are not
// visible.
func (who Identity) VisibleBindings(policy *api.PropagationPolicy) *api.PropagationPolicy {
	shown := *policy
	if !who.SeesEvery(api.KindWorkload) {
		shown.Status.Bindings = slices.DeleteFunc(slices.Clone(policy.Status.Bindings), func(b api.Binding) bool {
			return !who.SeesWorkload(b.Workload)
		})
	}
	return &shown
}
