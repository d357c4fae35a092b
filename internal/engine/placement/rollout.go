package placement

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// Meant returns the status that a decision starts from: that of what is meant. Unless a rollout is
// under way, that is the status itself.
func Meant(f *columns.Fleet, q *Query, s *api.PlacementStatus) *api.PlacementStatus {
	if s.Rollout == nil {
		return s
	}
	meant := *s
	meant.Decisions, meant.Clusters = s.Meant(), make([]string, len(s.Rollout.Target))
	for i, t := range s.Rollout.Target {
		meant.Clusters[i] = t.Cluster
	}
	meant.DecisionGroups = divide(f, q.groups, meant.Clusters)
	meant.Decisions = withGroups(meant.Decisions, meant.DecisionGroups)
	meant.ScheduledAt = s.Rollout.StartedAt
	return &meant
}

// Next is the status of a placement after a decision.
type Next struct {
	Status api.PlacementStatus
	// Changed says that it must be written, and Moved that other clusters stand.
	Changed, Moved bool
	// NextAt is when it may change through the passing of time alone; zero if never.
	NextAt time.Time
}

// Stages reports whether decisions of the query change in steps.
func (q *Query) Stages() bool { return q.arranged != nil && q.rollout != nil }

// Stage takes a placement from what stands towards what is meant. was is its status, and meant the
// NewStatus of what an outcome means.
func Stage(f *columns.Fleet, q *Query, reserved *ledger.Reservations, was *api.PlacementStatus, meant Next, now time.Time) Next {
	next := meant
	s := &next.Status
	staged := movement.Staged{Revision: was.RolloutRevision}
	for _, name := range meant.Status.Clusters {
		staged.Stands = append(staged.Stands, movement.Seat{Cluster: name, Units: 1})
	}
	if q.rollout != nil {
		staged = movement.Stage(changeOf(f, q, reserved, was, &meant.Status, staged.Stands, now))
	}
	s.Rollout, s.RolloutRevision = staged.Rollout, staged.Revision
	if s.Rollout != nil {
		s.Rollout.Target = make([]api.RolloutTarget, len(meant.Status.Decisions))
		for i, d := range meant.Status.Decisions {
			s.Rollout.Target[i] = api.RolloutTarget{Cluster: d.Cluster, Score: d.Score, Since: d.Since}
		}
	}
	before := *was
	s.DecisionRevision, s.ScheduledAt = before.DecisionRevision, before.ScheduledAt
	s.Clusters, s.Decisions = stand(staged.Stands, &before, meant.Status.Decisions, now)
	if next.Moved = !sameClusters(before.Clusters, s.Clusters); next.Moved {
		at := now.UTC()
		s.ScheduledAt = &at
	}
	if !slices.Equal(before.Clusters, s.Clusters) {
		s.DecisionRevision++
		next.Changed = true
	}
	groups := divide(f, q.groups, s.Clusters)
	if s.DecisionGroups = groups; slices.EqualFunc(groups, before.DecisionGroups, sameGroup) {
		s.DecisionGroups = before.DecisionGroups
	} else {
		next.Changed = true
	}
	s.Decisions = withGroups(s.Decisions, groups)
	s.Health = before.Health
	dropReports(s)
	if !s.Rollout.Same(before.Rollout) {
		next.Changed = true
	} else {
		s.Rollout = before.Rollout
	}
	if s.Rollout == nil {
		next.Changed = api.RemoveCondition(&s.Conditions, api.ConditionRollingOut) || next.Changed
	} else {
		next.Changed = api.SetCondition(&s.Conditions, movement.Condition(s.Rollout), now) || next.Changed
	}
	next.NextAt = filter.Sooner(next.NextAt, staged.NextAt)
	next.NextAt = filter.Sooner(next.NextAt, staysUntil(f, q, reserved, s))
	return next
}

// changeOf returns what is to be staged.
func changeOf(f *columns.Fleet, q *Query, reserved *ledger.Reservations, was, meant *api.PlacementStatus, target []movement.Seat, now time.Time) movement.Change {
	c := movement.Change{
		Rules: q.rollout, Target: target, Under: was.Rollout, Revision: was.RolloutRevision, Health: was.Health, Now: now,
		Written: was.ObservedGeneration != meant.ObservedGeneration || was.ObservedRescheduleRequests != meant.ObservedRescheduleRequests,
	}
	for _, name := range was.Clusters {
		c.Stands = append(c.Stands, movement.Seat{Cluster: name, Units: 1})
	}
	c.Lost = func(cluster string) bool {
		row, ok := f.Row(cluster)
		if !ok {
			return true
		}
		pass := PassOf(f, q, reserved)
		return pass.Evicts(row) != nil
	}
	c.Online = func(cluster string) bool {
		row, ok := f.Row(cluster)
		return ok && f.Online().Has(row)
	}
	c.Group = movement.ByRank
	switch q.rollout.Order {
	case api.OrderLabel:
		c.Group = movement.ByLabel(q.rollout.LabelKey, append(slices.Clip(c.Stands), target...), func(cluster string) map[string]string { return labelsOf(f, cluster) })
	case api.OrderDecisionGroups:
		c.Group = byDecisionGroup(f, q.groups, meant.Clusters)
	case api.OrderRank:
	}
	return c
}

func labelsOf(f *columns.Fleet, cluster string) map[string]string {
	if row, ok := f.Row(cluster); ok {
		return f.Cluster(row).Metadata.Labels
	}
	return nil
}

// byDecisionGroup orders the clusters by the decision groups of what is meant. A cluster that is left
// belongs to the first group of the same name.
func byDecisionGroup(f *columns.Fleet, strategy *api.DecisionStrategy, meant []string) func(cluster string) (int, string) {
	groups := divide(f, strategy, meant)
	of := map[string]int{}
	for i, g := range groups {
		for _, name := range g.Clusters {
			of[name] = i
		}
	}
	return func(cluster string) (int, string) {
		if i, ok := of[cluster]; ok {
			return i, groups[i].Name
		}
		alone := divide(f, strategy, []string{cluster})
		if len(alone) == 0 {
			return 0, ""
		}
		if i := slices.IndexFunc(groups, func(g api.ChosenGroup) bool { return g.Name == alone[0].Name }); i >= 0 {
			return i, alone[0].Name
		}
		return len(groups), alone[0].Name
	}
}

// stand returns the names and decisions of what stands. What stood keeps its since.
func stand(seats []movement.Seat, before *api.PlacementStatus, meant []api.Decision, now time.Time) (names []string, decisions []api.Decision) {
	find := func(list []api.Decision, cluster string) *api.Decision {
		if i := slices.IndexFunc(list, func(d api.Decision) bool { return d.Cluster == cluster }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	names, decisions = make([]string, len(seats)), make([]api.Decision, len(seats))
	for i, seat := range seats {
		stood, is := find(before.Decisions, seat.Cluster), find(meant, seat.Cluster)
		if is == nil {
			is = stood
		}
		d := api.Decision{Cluster: seat.Cluster} // a simulation may give a status without decisions
		if is != nil {
			d = *is
		}
		d.Rank = int64(i + 1)
		if stood != nil {
			d.Since = stood.Since
		} else {
			at := now.UTC()
			d.Since = &at
		}
		names[i], decisions[i] = seat.Cluster, d
	}
	return names, decisions
}

func sameClusters(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// dropReports drops reports about clusters that no longer stand: they are about what was there.
func dropReports(s *api.PlacementStatus) {
	gone := func(h api.ClusterHealth) bool { return !slices.Contains(s.Clusters, h.Cluster) }
	if slices.ContainsFunc(s.Health, gone) {
		if s.Health = slices.DeleteFunc(slices.Clone(s.Health), gone); len(s.Health) == 0 {
			s.Health = nil // same as after decoding
		}
	}
}

// staysUntil returns when a cluster that is being left will first have to be left at once through the
// passing of time alone, or zero.
func staysUntil(f *columns.Fleet, q *Query, reserved *ledger.Reservations, s *api.PlacementStatus) (at time.Time) {
	if s.Rollout == nil {
		return at
	}
	pass := PassOf(f, q, reserved)
	for _, name := range s.Clusters {
		if row, ok := f.Row(name); ok && !s.Rollout.Targets(name) {
			at = filter.Sooner(at, pass.Stays(row))
		}
	}
	return at
}
