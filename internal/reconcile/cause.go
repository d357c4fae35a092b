package reconcile

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// causeTypes are the types of causes by the aspect that changed. What is not in the list is a change
// of the cluster.
var causeTypes = []struct {
	aspects columns.Aspects
	is      api.CauseType
}{
	{columns.Taints, api.CauseTaint},
	{columns.Amounts | columns.Flavors | columns.Reserved, api.CauseCapacity},
	{columns.Membership | columns.Sets, api.CauseClusterSet},
	{columns.MetricValues | columns.MetricNames | columns.Failing, api.CauseMetric},
	{columns.ScoreValues, api.CauseScore},
}

// passChanges is what changed since the last pass, while one is made. It is what decisions that
// differ follow from.
type passChanges struct {
	before *columns.Fleet // before the pass; nil between passes
	rows   []int          // that differ
	known  map[changeKey]*api.Cause
}

// changeKey is equal for decisions that change alike, and have the same cause.
type changeKey struct {
	class        *class
	left, gained string
}

// advance notes that the fleet changed. A pass may do that several times.
func (c *passChanges) advance(before *columns.Fleet, rows []int) {
	if c.before == nil {
		c.before, c.rows = before, rows
		return
	}
	c.rows = append(slices.Clip(c.rows), rows...)
}

// end ends the pass, so that the fleet before it is not kept in memory.
func (c *passChanges) end() { *c = passChanges{} }

// comparison returns what decisions are compared on.
func (p *basis) comparison(others ledger.Others) placement.Comparison {
	c := placement.Comparison{Before: p.changes.before, After: p.fleet, Others: others, Rows: p.changes.rows}
	if c.Before == nil {
		c.Before = p.fleet
	}
	return c
}

// shared returns the cause of all placements of a class that change alike.
func (c *passChanges) shared(of *class, left, gained []string, find func() *api.Cause) *api.Cause {
	key := changeKey{class: of}
	if len(left) > 0 {
		key.left = left[0]
	}
	if len(gained) > 0 {
		key.gained = gained[0]
	}
	cause, ok := c.known[key]
	if !ok {
		cause = find()
		if c.known == nil {
			c.known = map[changeKey]*api.Cause{}
		}
		c.known[key] = cause
	}
	return cause
}

// unknownCause is the cause of decisions for which nothing is found, and of those of a follower, which
// does not look for it: the leader's cause comes with the stored decision.
var unknownCause = &api.Cause{Type: api.CauseUnknown}

// causeOf returns what makes the decision of a placement differ from its present one, before it is
// made.
func (p *placementPlanner) causeOf(placed *placementDecision, present placement.Present, out *placement.Outcome) *api.Cause {
	if p.following {
		return unknownCause
	}
	if cause := ownCause(placed.object, placed.answered, placed.status); cause != nil {
		return cause
	}
	left, gained := placementMoves(p.fleet, present, out)
	if len(left) > 0 {
		cause := p.windowCause(placed.query.Key.Namespace, placed.object.Metadata.Labels)
		if cause != nil && !p.mustLeave(placed, left) {
			return cause
		}
	}
	cause := p.causeBetween(placed, left, gained)
	ripened := p.changes.before != nil && placed.query.Ripens(present, p.changes.before, p.fleet)
	if ripened && (cause.Object == nil || !concerns(cause, left, gained)) {
		return &api.Cause{
			Type: api.CauseTime, Object: new(placed.query.Key), Field: "spec.reschedule_after", Old: string(placed.object.Spec.RescheduleAfter),
		}
	}
	return cause
}

// mustLeave reports whether a placement may not stay on one of these clusters.
func (p *placementPlanner) mustLeave(placed *placementDecision, clusters []string) bool {
	pass := placement.PassOf(p.fleet, placed.query, p.reserved)
	return slices.ContainsFunc(clusters, func(name string) bool {
		row, ok := p.fleet.Row(name)
		return !ok || !pass.Admits(row, true)
	})
}

// windowCause returns the cause of a decision that a move window held until this pass, or nil.
func (p *basis) windowCause(namespace string, labels map[string]string) *api.Cause {
	before := p.changes.before
	if before == nil || p.fleet.Windows().Held(namespace, labels, p.fleet.Now()) != nil {
		return nil
	}
	hold := before.Windows().Held(namespace, labels, before.Now())
	if hold == nil {
		return nil
	}
	return &api.Cause{Type: api.CauseWindowOpened, Object: &hold.By}
}

// concerns reports whether a cause is not about a cluster outside the decision.
func concerns(cause *api.Cause, left, gained []string) bool {
	return cause.Object.Kind != api.KindCluster || slices.Contains(left, cause.Object.Name) || slices.Contains(gained, cause.Object.Name)
}

// causeBetween returns what makes placements of a class leave some clusters for others.
func (p *placementPlanner) causeBetween(placed *placementDecision, left, gained []string) *api.Cause {
	return p.changes.shared(placed.class, left, gained, func() *api.Cause {
		comparison, q := p.comparison(p.others()), placed.query
		return p.causeFrom(&comparison, comparison.Of(q, placed.class.view, q.ScoreReads()|q.SeatReads(), left, gained))
	})
}

// placementMoves returns the clusters that an outcome leaves, and those that it gains.
func placementMoves(f *columns.Fleet, present placement.Present, out *placement.Outcome) (left, gained []string) {
	for _, c := range out.Choices {
		name := f.Name(c.Row)
		if !slices.ContainsFunc(present.Decisions, func(d api.Decision) bool { return d.Cluster == name }) {
			gained = append(gained, name)
		}
	}
	for _, d := range present.Decisions {
		if !slices.ContainsFunc(out.Choices, func(c placement.Choice) bool { return f.Name(c.Row) == d.Cluster }) {
			left = append(left, d.Cluster)
		}
	}
	return left, gained
}

// answering is the status of a placement or workload.
type answering interface {
	Answers(meta *api.Metadata) (answered, fresh bool)
}

// ownCause returns the cause of a decision that answers a write of its own object, or nil. before is
// the version that was answered before, nil if it is not known, and status the one before.
func ownCause(object, before api.Object, status answering) *api.Cause {
	switch answered, fresh := status.Answers(object.Meta()); {
	case !answered:
		cause := &api.Cause{Type: api.CauseSpec, Object: new(api.KeyOf(object)), Actor: object.Meta().WrittenBy}
		if before != nil {
			if diff, ok := api.FirstDifference(before.SpecPart(), object.SpecPart()); ok {
				cause.Field, cause.Old, cause.New = "spec."+diff.Field, diff.Old, diff.New
			} else if diff, ok := api.FirstDifference(before.Meta(), object.Meta()); ok {
				cause.Field, cause.Old, cause.New = "metadata."+diff.Field, diff.Old, diff.New
			}
		}
		return cause
	case fresh:
		return &api.Cause{Type: api.CauseReschedule, Object: new(api.KeyOf(object)), Actor: object.Meta().WrittenBy}
	}
	return nil
}

// writtenCause returns the cause of a previewed decision on an object: that it is written.
func (s *snapshot) writtenCause(object api.Object, status answering) *api.Cause {
	known, _ := s.get(api.KeyOf(object))
	return cmp.Or(ownCause(object, known.object, status), unknownCause)
}

// causeFrom returns the cause that a trigger is.
func (p *basis) causeFrom(comparison *placement.Comparison, t placement.Trigger) *api.Cause {
	restarted := comparison.Before.Len() == 0
	// So many clusters were offline until now that their replicas stayed.
	released := binding.Brakes(comparison.Before) && !binding.Brakes(comparison.After)
	cluster := func() *api.Key { return &api.Key{Kind: api.KindCluster, Name: t.Cluster} }
	switch {
	case t.Difference != nil:
		cause := causeOfDifference(t.Difference)
		if cause.Type != api.CauseTime && isWritten(cause.Field) {
			cause.Actor = p.fleet.WrittenBy(*cause.Object)
		}
		return cause
	case t.Cluster != "" && t.Check == "":
		return &api.Cause{Type: api.CauseCluster, Object: cluster()} // gone
	case t.Check == "" && restarted:
		return unknownCause
	case t.Metric != nil:
		return &api.Cause{Type: api.CauseMetric, Object: t.Metric, Field: "status.value"}
	case t.Check != "" && (restarted || released || t.Reads.Any(columns.Clock)):
		if fact := columns.Fact(p.fleet, t.Cluster, t.Reads); fact != nil {
			cause := causeOfDifference(fact)
			if !restarted && !released {
				cause.Type = api.CauseTime
			}
			return cause
		}
	}
	switch {
	case !t.Reads.Any(columns.Reserved):
		return unknownCause
	case t.Cluster == "":
		return &api.Cause{Type: api.CauseCapacity}
	}
	return &api.Cause{Type: api.CauseCapacity, Object: cluster(), Field: "status.available"}
}

// isWritten reports whether a difference in a field follows from a write of the object, as its creation does.
func isWritten(field string) bool { return !strings.HasPrefix(field, "status.") }

// causeOfDifference returns the cause that a difference is.
func causeOfDifference(d *columns.Difference) *api.Cause {
	cause := &api.Cause{Type: api.CauseCluster, Object: new(d.Object), Field: d.Field, Old: d.Old, New: d.New}
	switch {
	case d.Aged:
		cause.Type = api.CauseTime
	case d.Aspect == columns.Online && d.New == string(api.StateOnline):
		cause.Type = api.CauseClusterBack
	case d.Aspect == columns.Online:
		cause.Type = api.CauseClusterOffline
	case d.Object.Kind == api.KindCluster && d.Aspect == columns.MetricValues:
		// The cluster lists other metrics.
	default:
		for _, t := range causeTypes {
			if t.aspects.Any(d.Aspect) {
				cause.Type = t.is
			}
		}
	}
	return cause
}

// giveCause gives a binding that differs from the one before its cause. followed is the policy that the
// one before follows.
func (b *workloadPlanner) giveCause(w *workloadBinding, followed *api.PropagationPolicy, before *api.WorkloadStatus, now time.Time) {
	if w.status.DecisionRevision != before.DecisionRevision {
		w.status.Cause = b.causeOf(w, followed, before, &w.status, now)
	}
	w.answered = nil
}

// causeOf returns what makes the binding of a workload differ from its present one. followed is the
// policy that the present one follows.
func (b *workloadPlanner) causeOf(w *workloadBinding, followed *api.PropagationPolicy, before, after *api.WorkloadStatus, now time.Time) *api.Cause {
	if b.following {
		return unknownCause
	}
	if cause := ownCause(w.object, w.answered, before); cause != nil {
		return cause
	}
	if before.Policy != after.Policy || before.PolicyUID != after.PolicyUID || before.PolicyGeneration != after.PolicyGeneration {
		return policyCause(followed, w.policy, before, after)
	}
	if n := len(before.Preemptions); n > 0 && columns.SameTime(before.Preemptions[n-1].At, new(now.UTC())) {
		return before.Cause // it goes elsewhere with what was displaced in this pass
	}
	if cause := healthCause(w, before, after); cause != nil {
		return cause
	}
	left, gained := workloadMoves(before, after)
	if w.p == nil {
		for _, name := range left {
			return &api.Cause{Type: api.CauseCluster, Object: &api.Key{Kind: api.KindCluster, Name: name}} // only clusters that are gone are left
		}
		return unknownCause
	}
	return b.causeBetween(w, before, after, left, gained)
}

// causeBetween returns what makes a workload leave some clusters for others, under the same policy.
func (b *workloadPlanner) causeBetween(w *workloadBinding, before, after *api.WorkloadStatus, left, gained []string) *api.Cause {
	from, to := w.p.Group(before.ObservedAffinity), w.p.Group(after.ObservedAffinity)
	comparison := b.comparison(b.others())
	reads := w.p.Reads() | columns.Amounts | columns.Reserved
	find := func(group int, left, gained []string) placement.Trigger {
		return comparison.Of(w.p.Groups[max(group, 0)].Query, nil, reads, left, gained)
	}
	rejected := find(from, left, nil)
	if len(left) > 0 && rejected.Check == "" {
		if cause := b.windowCause(w.object.Metadata.Namespace, w.object.Metadata.Labels); cause != nil {
			return cause
		}
	}
	if rejected.Check == "" && (rejected.Difference == nil || rejected.Difference.Field != "") {
		// Without fail_back, it returns from no cluster that it could keep.
		if cause := failBackCause(w, before, after, from, to); cause != nil {
			return cause
		}
	}
	if rejected.Check != "" || rejected.Difference != nil && slices.Contains(left, rejected.Cluster) {
		return b.causeFrom(&comparison, rejected)
	}
	return b.causeFrom(&comparison, find(to, left, gained))
}

// failBackCause returns the cause of a return to an earlier affinity group or tier, or nil.
func failBackCause(w *workloadBinding, before, after *api.WorkloadStatus, from, to int) *api.Cause {
	object := api.KeyOf(w.object)
	if w.policy != nil {
		object = api.KeyOf(w.policy)
	}
	cause := &api.Cause{Type: api.CauseFailBack, Object: &object, Field: "spec.fail_back", Old: before.ObservedAffinity, New: after.ObservedAffinity}
	if to < from {
		return cause
	}
	for _, earlier := range before.EarlierAffinities {
		still := func(e api.EarlierAffinity) bool { return e.AffinityName == earlier.AffinityName }
		if from == to && !slices.ContainsFunc(after.EarlierAffinities, still) {
			cause.New = earlier.AffinityName
			return cause
		}
	}
	return nil
}

// policyCause returns the cause of a binding that follows another policy, or another version of it.
func policyCause(followed, policy *api.PropagationPolicy, before, after *api.WorkloadStatus) *api.Cause {
	cause := &api.Cause{Type: api.CausePolicy}
	if before.Policy == after.Policy && before.PolicyUID == after.PolicyUID && policy != nil {
		cause.Object, cause.Actor = new(api.KeyOf(policy)), policy.Metadata.WrittenBy
		if followed != nil {
			if diff, ok := api.FirstDifference(&followed.Spec, &policy.Spec); ok {
				cause.Field, cause.Old, cause.New = "spec."+diff.Field, diff.Old, diff.New
			}
		}
		return cause
	}
	cause.Object = new(api.PolicyKey(cmp.Or(after.Policy, before.Policy)))
	if policy != nil && before.Policy == "" {
		cause.Actor = policy.Metadata.WrittenBy
	}
	return cause
}

// healthCause returns the cause of a binding that leaves a cluster because of a report, or nil.
func healthCause(w *workloadBinding, before, after *api.WorkloadStatus) *api.Cause {
	for _, e := range after.Evictions {
		if e.Reason != api.EvictedApplicationUnhealthy || leaves(before, e.Cluster) {
			continue
		}
		cause := &api.Cause{Type: api.CauseHealth, Object: new(api.KeyOf(w.object)), Field: "status.health." + e.Cluster}
		for _, h := range before.Health {
			if h.Cluster == e.Cluster {
				cause.New = string(h.Status)
			}
		}
		return cause
	}
	return nil
}

// displacedBy returns the cause of a binding that loses replicas to another workload.
func displacedBy(w *workloadBinding) *api.Cause {
	return &api.Cause{Type: api.CausePreemption, Object: new(api.KeyOf(w.object)), Field: "spec.priority", New: strconv.FormatInt(w.p.Priority, 10)}
}

// workloadMoves returns the clusters on which a workload gets fewer replicas, and those on which it
// gets more.
func workloadMoves(before, after *api.WorkloadStatus) (left, gained []string) {
	index := func(list []api.WorkloadCluster, name string) int {
		return slices.IndexFunc(list, func(c api.WorkloadCluster) bool { return c.Name == name })
	}
	for _, c := range before.Clusters {
		if i := index(after.Clusters, c.Name); i < 0 || after.Clusters[i].Replicas < c.Replicas {
			left = append(left, c.Name)
		}
	}
	for _, c := range after.Clusters {
		if i := index(before.Clusters, c.Name); i < 0 || before.Clusters[i].Replicas < c.Replicas {
			gained = append(gained, c.Name)
		}
	}
	return left, gained
}
