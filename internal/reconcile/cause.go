package reconcile

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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

// since is what changed since the last pass, while one is made: what decisions that differ follow
// from. It is determined for those alone, and once for all that are alike.
type since struct {
	fleet *columns.Fleet // before the pass; nil between passes
	rows  []int          // that differ
	known map[changeKey]*api.Cause
}

// changeKey is equal for decisions that change alike.
type changeKey struct {
	class        any // that shares what admits and rates clusters
	left, gained string
}

// advance notes that the fleet changed. A pass may do that several times.
func (s *since) advance(before *columns.Fleet, rows []int) {
	if s.fleet == nil {
		s.fleet, s.rows = before, rows
		return
	}
	s.rows = append(slices.Clip(s.rows), rows...)
	s.known = nil
}

// over ends the pass, so that the fleet before it is not kept in memory.
func (s *since) over() { *s = since{} }

// grounds returns what decisions are compared on.
func (p *picture) grounds(others ledger.Others) placement.Grounds {
	g := placement.Grounds{Before: p.since.fleet, After: p.fleet, Others: others, Rows: p.since.rows}
	if g.Before == nil {
		g.Before = p.fleet
	}
	return g
}

// shared returns the cause of all decisions that change alike.
func (s *since) shared(class any, left, gained []string, find func() *api.Cause) *api.Cause {
	key := changeKey{class: class}
	if len(left) > 0 {
		key.left = left[0]
	}
	if len(gained) > 0 {
		key.gained = gained[0]
	}
	cause, ok := s.known[key]
	if !ok {
		cause = find()
		if s.known == nil {
			s.known = map[changeKey]*api.Cause{}
		}
		s.known[key] = cause
	}
	return cause
}

// unknownCause is the cause of decisions for which nothing is found.
var unknownCause = &api.Cause{Type: api.CauseUnknown}

// causeOf returns what makes the decision of a placement differ from its present one, before it is
// made; nil if it does not differ.
func (p *placer) causeOf(placed *placementDecision, present placement.Present, out *placement.Outcome) *api.Cause {
	if out.Same {
		return nil
	}
	if cause := ownCause(placed, present.Answered, present.Fresh); cause != nil {
		return cause
	}
	left, gained := placementMoves(p.fleet, present, out)
	aged := p.since.fleet != nil && placed.query.Age(present, p.since.fleet, p.fleet)
	if aged && placed.brewing != nil {
		return placed.brewing
	}
	cause := p.causeBetween(placed, left, gained)
	if aged && (cause.Object == nil || !concerns(cause, left, gained)) {
		return &api.Cause{
			Type: api.CauseTime, Object: new(placed.query.Key), Field: "spec.reschedule_after", Old: string(placed.object.Spec.RescheduleAfter),
		}
	}
	return cause
}

// concerns reports whether a cause is not about a cluster outside the decision.
func concerns(cause *api.Cause, left, gained []string) bool {
	return cause.Object.Kind != api.KindCluster || slices.Contains(left, cause.Object.Name) || slices.Contains(gained, cause.Object.Name)
}

// causeBetween returns what makes placements of a class leave some clusters for others.
func (p *placer) causeBetween(placed *placementDecision, left, gained []string) *api.Cause {
	return p.since.shared(placed.class, left, gained, func() *api.Cause {
		grounds, q := p.grounds(p.others()), placed.query
		return p.causeOn(&grounds, grounds.Of(q, placed.class.view, q.ScoreReads()|q.SeatReads(), left, gained))
	})
}

// brew notes what would move a placement that is too young for that. When it is old enough, this
// has happened long before.
func (p *placer) brew(placed *placementDecision, out *placement.Outcome) {
	if !out.KeptByAge() {
		placed.brewing = nil
		return
	}
	if placed.brewing != nil || p.since.fleet == nil {
		return
	}
	if from, to, ok := out.Edge(p.fleet); ok {
		if cause := p.causeBetween(placed, []string{from}, []string{to}); cause.Type != api.CauseUnknown {
			placed.brewing = cause
		}
	}
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

// ownCause returns the cause of a decision that answers a write of its own object, or nil.
func ownCause(d decision, answered, fresh bool) *api.Cause {
	object := d.stored()
	switch {
	case !answered:
		cause := &api.Cause{Type: api.CauseSpec, Object: new(api.KeyOf(object))}
		if before := d.queued().answered; before != nil {
			if diff, ok := api.FirstDifference(before.SpecPart(), object.SpecPart()); ok {
				cause.Field, cause.Old, cause.New = "spec."+diff.Field, diff.Old, diff.New
			} else if diff, ok := api.FirstDifference(before.Meta(), object.Meta()); ok {
				cause.Field, cause.Old, cause.New = "metadata."+diff.Field, diff.Old, diff.New
			}
		}
		return cause
	case fresh:
		return &api.Cause{Type: api.CauseReschedule, Object: new(api.KeyOf(object))}
	}
	return nil
}

// causeOn returns the cause that a ground is.
func (p *picture) causeOn(grounds *placement.Grounds, g placement.Ground) *api.Cause {
	restarted := grounds.Before.Len() == 0
	// So many clusters were offline until now that their replicas stayed.
	released := binding.Brakes(grounds.Before) && !binding.Brakes(grounds.After)
	cluster := func() *api.Key { return &api.Key{Kind: api.KindCluster, Name: g.Cluster} }
	switch {
	case g.Input != nil:
		return causeFrom(g.Input)
	case g.Cluster != "" && g.Check == "":
		return &api.Cause{Type: api.CauseCluster, Object: cluster()} // gone
	case g.Check == "" && restarted:
		return unknownCause
	case g.Metric != nil:
		return &api.Cause{Type: api.CauseMetric, Object: g.Metric, Field: "status.value"}
	case g.Check != "" && (restarted || released || g.Reads.Any(columns.Clock)):
		if fact := columns.Fact(p.fleet, g.Cluster, g.Reads); fact != nil {
			cause := causeFrom(fact)
			if !restarted && !released {
				cause.Type = api.CauseTime
			}
			return cause
		}
		fallthrough
	default:
		if g.Reads.Any(columns.Reserved) {
			if g.Cluster == "" {
				return &api.Cause{Type: api.CauseCapacity}
			}
			return &api.Cause{Type: api.CauseCapacity, Object: cluster(), Field: "status.available"}
		}
	}
	return unknownCause
}

// causeFrom returns the cause that an input is.
func causeFrom(in *columns.Input) *api.Cause {
	cause := &api.Cause{Type: api.CauseCluster, Object: new(in.Object), Field: in.Field, Old: in.Old, New: in.New}
	switch {
	case in.Aged:
		cause.Type = api.CauseTime
	case in.Aspect == columns.Online && in.New == string(api.StateOnline):
		cause.Type = api.CauseClusterBack
	case in.Aspect == columns.Online:
		cause.Type = api.CauseClusterOffline
	case in.Field == "" && in.Object.Kind == api.KindCluster:
	case in.Object.Kind == api.KindCluster && in.Aspect == columns.MetricValues:
		// The cluster lists other metrics.
	default:
		for _, t := range causeTypes {
			if t.aspects.Any(in.Aspect) {
				cause.Type = t.is
			}
		}
	}
	return cause
}

// causeOf returns what made a guest leave a host for its present one: its own write, that the host is gone, or that
// there is one that fits.
func (h *hosts) causeOf(g *guest, before string, answered, fresh bool) *api.Cause {
	if cause := ownCause(g, answered, fresh); cause != nil {
		return cause
	}
	name := g.host
	if before != "" {
		name = before
	}
	host := api.Key{Kind: api.KindCloud, Name: name}
	if h.kind.name() == api.KindMagnumCluster {
		host.Kind = api.KindOpenStackProject
		host.Namespace, host.Name, _ = strings.Cut(name, "/")
	}
	return &api.Cause{Type: api.CauseCluster, Object: &host}
}

// causeOf returns what makes the binding of a workload differ from its present one, before it is
// made; nil if it does not differ. followed is the policy that the present one follows.
func (b *bindings) causeOf(w *workloadBinding, followed *api.PropagationPolicy, after *api.WorkloadStatus) *api.Cause {
	before := &w.status
	left, gained := workloadMoves(before, after)
	if len(left)+len(gained) == 0 && slices.EqualFunc(before.Clusters, after.Clusters, sameShare) {
		return nil
	}
	meta := &w.object.Metadata
	if cause := ownCause(w, before.ObservedGeneration == meta.Generation, before.ObservedRescheduleRequests != meta.RescheduleRequests); cause != nil {
		return cause
	}
	if before.Policy != after.Policy || before.PolicyUID != after.PolicyUID || before.PolicyGeneration != after.PolicyGeneration {
		return policyCause(followed, w.policy, before, after)
	}
	if cause := healthCause(w, before, after); cause != nil {
		return cause
	}
	if w.p == nil {
		for _, name := range left {
			return &api.Cause{Type: api.CauseCluster, Object: &api.Key{Kind: api.KindCluster, Name: name}} // only clusters that are gone are left
		}
		return unknownCause
	}
	return b.causeBetween(w, before, after, left, gained)
}

// causeBetween returns what makes a workload leave some clusters for others, under the same policy.
func (b *bindings) causeBetween(w *workloadBinding, before, after *api.WorkloadStatus, left, gained []string) *api.Cause {
	from, to := w.p.Group(before.ObservedAffinity), w.p.Group(after.ObservedAffinity)
	grounds := b.grounds(b.others())
	reads := w.p.Reads() | columns.Amounts | columns.Reserved
	find := func(group int, left, gained []string) placement.Ground {
		return grounds.Of(w.p.Groups[max(group, 0)].Query, nil, reads, left, gained)
	}
	rejected := find(from, left, nil)
	if rejected.Check == "" && (rejected.Input == nil || rejected.Input.Field != "") && w.p.FailsBack() {
		if cause := failBackCause(w, before, after, from, to); cause != nil {
			return cause
		}
	}
	if rejected.Check != "" || rejected.Input != nil && slices.Contains(left, rejected.Cluster) {
		return b.causeOn(&grounds, rejected)
	}
	return b.causeOn(&grounds, find(to, left, gained))
}

// failBackCause returns the cause of a return to an earlier affinity group or tier, or nil.
func failBackCause(w *workloadBinding, before, after *api.WorkloadStatus, from, to int) *api.Cause {
	object := api.KeyOf(w.object)
	if w.policy != nil {
		object = api.KeyOf(w.policy)
	}
	cause := &api.Cause{Type: api.CauseFailBack, Object: &object, Field: "spec.fail_back", Old: before.ObservedAffinity, New: after.ObservedAffinity}
	if to >= 0 && to < from {
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
		cause.Object = new(api.KeyOf(policy))
		if followed != nil {
			if diff, ok := api.FirstDifference(&followed.Spec, &policy.Spec); ok {
				cause.Field, cause.Old, cause.New = "spec."+diff.Field, diff.Old, diff.New
			}
		}
		return cause
	}
	path := cmp.Or(after.Policy, before.Policy)
	namespace, name, ok := strings.Cut(path, "/")
	if !ok {
		namespace, name = "", path
	}
	cause.Object = &api.Key{Kind: api.KindPropagationPolicy, Namespace: namespace, Name: name}
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

// preemptedBy returns the cause of a binding that loses a cluster to another workload.
func preemptedBy(w *workloadBinding) *api.Cause {
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

// sameShare compares what a workload has on a cluster.
func sameShare(a, b api.WorkloadCluster) bool {
	same := func(x, y *int64) bool { return (x == nil) == (y == nil) && (x == nil || *x == *y) }
	return a.Name == b.Name && a.Replicas == b.Replicas && a.Flavor == b.Flavor && same(a.OnDemand, b.OnDemand) && same(a.Spot, b.Spot)
}

// rewritten notes the version of an object that its decision answers, before another one is applied.
func (t *turn) rewritten(object api.Object) {
	if t.answered == nil {
		t.answered = object
	}
}

// margin returns how much better the clusters that are gained are than those that are left; nil if
// these do not fit, or if there are none.
func (p *placer) margin(placed *placementDecision, present placement.Present, out *placement.Outcome) *api.HistoryMargin {
	q, ratings := placed.query, placement.Ratings(p.fleet, placed.query, placed.class.view, p.others())
	var margin *api.HistoryMargin
	for _, d := range present.Decisions {
		row, ok := p.fleet.Row(d.Cluster)
		if !ok || out.Chooses(row) || !ratings.Admits(row, true) {
			continue
		}
		score := ratings.MeritOf(row, !present.Fresh).Score - q.MinImprovement()
		if margin == nil || score > margin.OldScore {
			margin = &api.HistoryMargin{OldScore: score, Needed: q.MinImprovement()}
		}
	}
	if margin == nil {
		return nil
	}
	found := false
	for _, c := range out.Choices {
		if slices.ContainsFunc(present.Decisions, func(d api.Decision) bool { return d.Cluster == p.fleet.Name(c.Row) }) {
			continue
		}
		if score := ratings.MeritOf(c.Row, false).Score; !found || score < margin.NewScore {
			margin.NewScore, found = score, true
		}
	}
	if !found {
		return nil
	}
	return margin
}
