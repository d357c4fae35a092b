package auth

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// What is everybody's may tell of what is not: a shared cluster lists metrics of a
// namespace, and a workload lost its place to one of another. The names that are part
// of a spec were written by somebody who may read what they stand for, and are shown;
// the values that follow from them are shown to those who may read these.

// seesKey reports whether a reader may see what is in the namespace of a key.
func (who Identity) seesKey(key api.Key) bool { return who.Sees(OwnersIn(key.Namespace)...) }

// SeesDamaged reports whether a reader may know of an object that is damaged. Whom it
// belongs to is not known any more, where it says so itself or its cluster does.
func (who Identity) SeesDamaged(key api.Key) bool {
	info, _ := api.LookupKind(key.Kind)
	_, owned := info.New().(interface{ Owners() []string })
	return !who.Bound() || !owned && info.Scope != api.OfCluster && who.seesKey(key)
}

// Disclosed is an object without what its status tells of objects that the reader may
// not see. It is a copy where there is something to leave out.
func (who Identity) Disclosed(object api.Object) api.Object {
	if !who.Bound() {
		return object
	}
	switch o := object.(type) {
	case *api.Workload:
		return who.disclosedPreemptions(o)
	case *api.Metric:
		if o.Status.Clusters != nil {
			return disclosedMetric(o)
		}
	}
	hidden := func(m api.ClusterMetricStatus) bool { return !who.Sees(OwnersIn(m.Namespace)...) }
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

// disclosedMetric is a metric with a value for each cluster, without their names. Each
// has its value in its own status.
func disclosedMetric(metric *api.Metric) *api.Metric {
	m := *metric
	m.Status.Clusters = nil
	m.Status.Conditions = slices.Clone(m.Status.Conditions)
	if available := api.FindCondition(m.Status.Conditions, api.ConditionAvailable); available != nil && available.Status == api.ConditionTrue {
		available.Message = "" // it counts clusters
	}
	return &m
}

// metricsOf are the metrics that the status of an object shows the values of, nil
// where it shows none.
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

// disclosedPreemptions is a workload without the names and priorities of those that
// took its place, as far as the reader may not see them.
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

// withheldReason stands where an explanation would tell the value of a metric that the
// reader may not see.
const withheldReason = "withheld: the metric belongs to a namespace that the token must not read"

// discloseValues leaves the values of metrics that the reader may not see out of
// candidates, which have to be a copy.
func (who Identity) discloseValues(candidates []api.Candidate) {
	hidden := func(metric *api.Key) bool { return metric != nil && !who.seesKey(*metric) }
	for i := range candidates {
		c := &candidates[i]
		if hidden(c.Tells) {
			c.Reason = withheldReason
		}
		if !slices.ContainsFunc(c.Scores, func(p api.ScorePart) bool { return hidden(p.Tells) }) {
			continue
		}
		c.Scores = slices.Clone(c.Scores)
		for j := range c.Scores {
			if p := &c.Scores[j]; hidden(p.Tells) {
				*p = api.ScorePart{Name: p.Name, Weight: p.Weight, Reason: withheldReason}
			}
		}
	}
}

// VisibleBindings is a copy of a policy without the bindings of workloads that
// somebody may not know of.
func (who Identity) VisibleBindings(policy *api.PropagationPolicy) *api.PropagationPolicy {
	shown := *policy
	if who.Bound() {
		shown.Status.Bindings = slices.DeleteFunc(slices.Clone(policy.Status.Bindings), func(b api.Binding) bool {
			return !who.SeesWorkload(b.Workload)
		})
	}
	return &shown
}
