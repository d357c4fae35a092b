package binding

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// NewBindingStatus returns the status of a workload after a binding: the current status with what
// changed. policy is the one that the workload follows, or nil if it has its own placement. changed
// is false if only the time differs. moved says that clusters or replicas changed, not only their
// split between node types. fits returns the sentence about an affinity group in which no cluster
// fits.
func NewBindingStatus(f *columns.Fleet, p *Propagation, w *api.Workload, policy *api.PropagationPolicy, out Binding, now time.Time, fits func(group int) string) (status api.WorkloadStatus, changed, moved bool) {
	now = now.UTC()
	was := &w.Status
	status = *was
	answered, fresh := was.Answers(&w.Metadata)
	if !answered {
		status.Preemptions = nil
	}
	status.ObservedGeneration = w.Metadata.Generation
	status.ObservedRescheduleRequests = w.Metadata.RescheduleRequests
	status.Policy, status.PolicyUID, status.PolicyGeneration = policyOf(policy)
	status.Clusters, moved = clustersAfter(f, was.Clusters, out, now)
	resplit := putTargets(&w.Spec, &status)
	if moved || resplit {
		status.ScheduledAt = &now
		status.DecisionRevision++
	}
	if out.group >= 0 {
		status.ObservedAffinity = p.Groups[out.group].Name
	}
	status.LostReplicas = out.lost
	status.Evictions = out.evictions
	status.EarlierAffinities = out.earlier
	status.Health = concerned(was, &status, p.replicated)
	if fresh {
		status.Health = nil // a new attempt: earlier reports no longer apply
	}
	changed = !answered || fresh || !AnswersPolicy(was, policy) || moved || resplit || status.ObservedAffinity != was.ObservedAffinity || status.LostReplicas != was.LostReplicas ||
		!slices.EqualFunc(status.Evictions, was.Evictions, sameEviction) || len(status.Health) != len(was.Health) ||
		!slices.EqualFunc(status.EarlierAffinities, was.EarlierAffinities, func(a, b api.EarlierAffinity) bool { return a.AffinityName == b.AffinityName })
	for _, c := range []api.Condition{boundCondition(p, out, fits), heldCondition(out)} {
		changed = api.SetCondition(&status.Conditions, c, now) || changed
	}
	changed = placement.ObserveUnread(&status.Conditions, f, p.Groups[max(out.group, 0)].Query, out.rows, now) || changed
	changed = observeSplit(f, &w.Spec, &status, now) || changed
	return status, changed, moved
}

// rows yields the rows of the clusters.
func (out *Binding) rows(yield func(row int) bool) {
	for _, s := range out.shares {
		if !yield(int(s.Row)) {
			return
		}
	}
}

// UnclaimedStatus returns the status of a workload that no policy selects: it stays where it is,
// except on clusters that are gone. Evictions end with their grace, or by an explicit reschedule.
func UnclaimedStatus(f *columns.Fleet, w *api.Workload, why string, now time.Time) (status api.WorkloadStatus, changed, moved bool) {
	was := &w.Status
	status = *was
	now = now.UTC()
	gone := func(name string) bool { _, ok := f.Row(name); return !ok }
	status.Clusters = slices.DeleteFunc(slices.Clone(was.Clusters), func(c api.WorkloadCluster) bool { return gone(c.Name) })
	answered, fresh := was.Answers(&w.Metadata)
	status.Evictions = slices.DeleteFunc(slices.Clone(was.Evictions), func(e api.Eviction) bool {
		return gone(e.Cluster) || fresh || expired(e, now)
	})
	status.Health = concerned(was, &status, false)
	moved = len(status.Clusters) < len(was.Clusters)
	resplit := putTargets(&w.Spec, &status)
	if moved || resplit {
		status.ScheduledAt = &now
		status.DecisionRevision++
	}
	status.ObservedGeneration = w.Metadata.Generation
	status.ObservedRescheduleRequests = w.Metadata.RescheduleRequests
	status.Policy, status.PolicyUID, status.PolicyGeneration = "", "", 0
	changed = moved || resplit || len(status.Evictions) < len(was.Evictions) || !answered || was.Policy != "" || fresh
	c := api.Condition{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: api.ReasonNoPolicyMatched, Message: why}
	if len(status.Clusters) > 0 {
		c.Message += "; it stays where it is"
	}
	changed = api.SetCondition(&status.Conditions, c, now) || changed
	changed = api.RemoveCondition(&status.Conditions, api.ConditionMetricsUnread) || changed
	changed = observeSplit(f, &w.Spec, &status, now) || changed
	return status, changed, moved
}

func sameEviction(a, b api.Eviction) bool {
	return a.Cluster == b.Cluster && a.Reason == b.Reason && a.Replicas == b.Replicas && a.PurgeMode == b.PurgeMode
}

// clustersAfter returns the clusters of a status by name. Clusters with unchanged replicas keep
// their since.
func clustersAfter(f *columns.Fleet, was []api.WorkloadCluster, out Binding, now time.Time) (clusters []api.WorkloadCluster, moved bool) {
	shares := out.shares
	same := len(was) == len(shares)
	for i, s := range shares {
		same = same && was[i].Replicas == s.Replicas && was[i].Name == f.Name(int(s.Row)) && was[i].Flavor == out.flavors[s.Row]
	}
	if same {
		return was, false
	}
	before := make(map[string]*api.WorkloadCluster, len(was))
	for i := range was {
		before[was[i].Name] = &was[i]
	}
	clusters = make([]api.WorkloadCluster, len(shares))
	for i, s := range shares {
		clusters[i] = api.WorkloadCluster{Name: f.Name(int(s.Row)), Replicas: s.Replicas, Flavor: out.flavors[s.Row], Since: &now}
		if old := before[clusters[i].Name]; old != nil && old.Replicas == s.Replicas && old.Flavor == clusters[i].Flavor {
			clusters[i].Since = old.Since
		}
	}
	return clusters, true
}

// concerned drops reports about clusters that the workload has left, or that got it back after a
// failure: they are about other replicas.
func concerned(was, is *api.WorkloadStatus, replicated bool) []api.ClusterHealth {
	runs := func(s *api.WorkloadStatus, cluster string) bool {
		return slices.ContainsFunc(s.Clusters, func(c api.WorkloadCluster) bool { return c.Name == cluster && c.Replicas > 0 })
	}
	outdated := func(h api.ClusterHealth) bool {
		on := func(s *api.WorkloadStatus) bool {
			return slices.ContainsFunc(s.Clusters, func(c api.WorkloadCluster) bool { return c.Name == h.Cluster })
		}
		left := func(s *api.WorkloadStatus, failed bool) bool {
			return slices.ContainsFunc(s.Evictions, func(e api.Eviction) bool {
				return e.Cluster == h.Cluster && (!failed || e.Reason == api.EvictedApplicationUnhealthy)
			})
		}
		if on(is) {
			none := replicated && (!runs(is, h.Cluster) || on(was) && !runs(was, h.Cluster))
			return none || !on(was) && left(was, true)
		}
		return !left(is, false)
	}
	if !slices.ContainsFunc(was.Health, outdated) {
		return was.Health
	}
	return slices.DeleteFunc(slices.Clone(was.Health), outdated)
}

func boundCondition(p *Propagation, out Binding, fits func(group int) string) api.Condition {
	c := api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}
	if out.Complete {
		return c
	}
	c.Status, c.Reason = api.ConditionFalse, api.ReasonNoClusterFit
	var none *division.NoCandidatesError
	for _, t := range out.tried {
		if !errors.As(t.err, &none) {
			c.Reason = api.ReasonUnschedulable
		}
	}
	c.Message = pendingSentence(p, out, fits)
	return c
}

func heldCondition(out Binding) api.Condition {
	c := api.Condition{Type: api.ConditionFailoverHeld, Status: api.ConditionFalse, Reason: api.ReasonNotHeld}
	if out.evictionsSuspended {
		c.Status, c.Reason = api.ConditionTrue, api.ReasonManyClustersLost
		c.Message = fmt.Sprintf("more than %d %% of the clusters are offline at the same time: their replicas stay until fewer are offline, or the clusters are tainted or deleted", brakePercent)
	}
	return c
}

// pendingSentence says why no affinity group has room for the whole workload.
func pendingSentence(p *Propagation, out Binding, fits func(group int) string) string {
	var b strings.Builder
	if p.divided() {
		running := int64(0)
		for _, s := range out.shares {
			running += s.Replicas
		}
		if running > 0 {
			fmt.Fprintf(&b, "%d replicas stay where they are, %d are wanted; ", running, p.replicas)
		}
	}
	for i, t := range out.tried {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(triedSentence(p, t, fits))
	}
	if n := len(out.evictions); n > 0 {
		names := make([]string, 0, maxNamedClusters+1)
		for i := range out.evictions[:min(n, maxNamedClusters)] {
			names = append(names, out.evictions[i].Cluster)
		}
		if n > len(names) {
			names = append(names, fmt.Sprintf("%d more", n-len(names)))
		}
		fmt.Fprintf(&b, "; it is leaving %s, and gets nothing there until then", strings.Join(names, ", "))
	}
	if first := out.tried[0].group; first > 0 && !p.failBack {
		b.WriteString("; earlier groups are only tried after an explicit reschedule, or with fail_back")
	}
	return b.String()
}

// triedSentence says why one affinity group cannot hold the workload.
func triedSentence(p *Propagation, t tried, fits func(group int) string) string {
	text := ""
	if name := p.Groups[t.group].Name; name != "" {
		text = fmt.Sprintf("group %q: ", name)
	}
	var none *division.NoCandidatesError
	if errors.As(t.err, &none) {
		return text + fits(t.group)
	}
	return text + t.err.Error()
}
