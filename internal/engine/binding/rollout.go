package binding

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// Stages reports whether bindings of the workload change in steps.
func (p *Propagation) Stages() bool { return p.rollout != nil }

// meant returns the status that a binding starts from: that of what is meant. Unless a rollout is
// under way, that is the status itself.
func meant(spec *api.WorkloadSpec, s *api.WorkloadStatus) *api.WorkloadStatus {
	if s.Rollout == nil {
		return s
	}
	status := *s
	status.Clusters = make([]api.WorkloadCluster, len(s.Rollout.Target))
	for i, t := range s.Rollout.Target {
		status.Clusters[i] = api.WorkloadCluster{Name: t.Cluster, Replicas: t.Replicas, Flavor: t.Flavor, Since: t.Since}
	}
	putTargets(spec, &status)
	return &status
}

// Next is the status of a workload after a binding.
type Next struct {
	Status api.WorkloadStatus
	// Changed says that it must be written, and Moved that clusters or replicas changed.
	Changed, Moved bool
	// NextAt is when it may change through the passing of time alone; zero if never.
	NextAt time.Time
}

// Stage takes a workload from what stands towards what is meant. was is its status, and is the
// NewBindingStatus of what a binding means.
func Stage(f *columns.Fleet, p *Propagation, reserved *ledger.Reservations, was *api.WorkloadStatus, is Next, now time.Time) Next {
	next := is
	s := &next.Status
	pass := placement.PassOf(f, p.Groups[max(p.Group(was.ObservedAffinity), 0)].Query, reserved)
	staged := movement.Staged{Stands: p.seats(s.Clusters), Revision: was.RolloutRevision}
	if p.rollout != nil {
		staged = movement.Stage(p.changeOf(f, &pass, was, s, now))
	}
	target := s.Clusters
	s.Rollout, s.RolloutRevision = staged.Rollout, staged.Revision
	if s.Rollout != nil {
		s.Rollout.Target = make([]api.RolloutTarget, len(target))
		for i, c := range target {
			s.Rollout.Target[i] = api.RolloutTarget{Cluster: c.Name, Replicas: c.Replicas, Flavor: c.Flavor, Since: c.Since}
		}
		if s.Rollout.Same(was.Rollout) {
			s.Rollout = was.Rollout
		}
	}
	s.ScheduledAt, s.DecisionRevision = was.ScheduledAt, was.DecisionRevision
	s.Clusters, next.Moved = p.stand(staged.Stands, was.Clusters, target, now)
	resplit := putTargets(p.spec, s)
	if next.Moved || resplit {
		at := now.UTC()
		s.ScheduledAt = &at
		s.DecisionRevision++
	}
	s.Evictions = stagedEvictions(was, s)
	if was.ObservedRescheduleRequests == s.ObservedRescheduleRequests {
		s.Health = was.Health
		s.Health = concerned(was, s, p.replicated)
	}
	// The split is observed of what stands.
	s.Distribution, s.Conditions = was.Distribution, slices.Clone(s.Conditions)
	if c := api.FindCondition(was.Conditions, api.ConditionDistributed); c != nil {
		api.SetCondition(&s.Conditions, *c, now)
		*api.FindCondition(s.Conditions, c.Type) = *c
	} else {
		api.RemoveCondition(&s.Conditions, api.ConditionDistributed)
	}
	observeSplit(f, p.spec, s, now)
	if s.Rollout == nil {
		api.RemoveCondition(&s.Conditions, api.ConditionRollingOut)
	} else {
		api.SetCondition(&s.Conditions, movement.Condition(s.Rollout), now)
	}
	next.NextAt = filter.Sooner(next.NextAt, staged.NextAt)
	for _, c := range s.Clusters {
		if row, ok := f.Row(c.Name); ok && s.Rollout != nil && !s.Rollout.Targets(c.Name) {
			next.NextAt = filter.Sooner(next.NextAt, pass.Stays(row))
		}
	}
	next.Changed = next.Moved || resplit || differs(was, s)
	return next
}

// seats returns what a workload has on clusters: its replicas if they are divided.
func (p *Propagation) seats(clusters []api.WorkloadCluster) []movement.Seat {
	seats := make([]movement.Seat, len(clusters))
	for i, c := range clusters {
		seats[i] = movement.Seat{Cluster: c.Name, Units: 1}
		if p.divided() {
			seats[i].Units = c.Replicas
		}
	}
	return seats
}

// changeOf returns what is to be staged.
func (p *Propagation) changeOf(f *columns.Fleet, pass *placement.Pass, was, is *api.WorkloadStatus, now time.Time) movement.Change {
	braked := Brakes(f)
	c := movement.Change{
		Rules: p.rollout, Divided: p.divided(), Stands: p.seats(was.Clusters), Target: p.seats(is.Clusters),
		Under: was.Rollout, Revision: was.RolloutRevision, Health: was.Health, Now: now, Group: movement.ByRank,
		Written: was.ObservedGeneration != is.ObservedGeneration || was.ObservedRescheduleRequests != is.ObservedRescheduleRequests ||
			was.PolicyGeneration != is.PolicyGeneration || was.PolicyUID != is.PolicyUID,
	}
	c.Lost = func(cluster string) bool {
		row, ok := f.Row(cluster)
		switch {
		case !ok, evicts(is, cluster):
			return true
		case pass.Evicts(row) == nil:
			return false
		}
		return !braked || !offlineOnly(pass, row)
	}
	c.Online = func(cluster string) bool {
		row, ok := f.Row(cluster)
		return ok && f.Online().Has(row)
	}
	if p.rollout.Order == api.OrderLabel {
		c.Group = movement.ByLabel(p.rollout.LabelKey, slices.Concat(c.Stands, c.Target), func(cluster string) map[string]string {
			if row, ok := f.Row(cluster); ok {
				return f.Cluster(row).Metadata.Labels
			}
			return nil
		})
	}
	return c
}

// evicts reports whether a workload is leaving a cluster that it has lost, or where it is unhealthy.
func evicts(s *api.WorkloadStatus, cluster string) bool {
	return slices.ContainsFunc(s.Evictions, func(e api.Eviction) bool {
		return e.Cluster == cluster && (e.Reason == api.EvictedClusterLost || e.Reason == api.EvictedApplicationUnhealthy)
	})
}

// stagedEvictions returns the evictions without those that a rollout replaces: of clusters that stand
// until their successors are healthy, and of clusters that are meant and have never stood.
func stagedEvictions(was, is *api.WorkloadStatus) (evictions []api.Eviction) {
	for _, e := range is.Evictions {
		known := slices.ContainsFunc(was.Evictions, func(old api.Eviction) bool { return old.Cluster == e.Cluster })
		i := slices.IndexFunc(was.Clusters, func(c api.WorkloadCluster) bool { return c.Name == e.Cluster })
		switch {
		case known:
		case i < 0, e.Reason == api.EvictedFailedOver, e.Reason == api.EvictedFailedBack:
			continue
		case e.Replicas > 0:
			e.Replicas = was.Clusters[i].Replicas
		}
		evictions = append(evictions, e)
	}
	return evictions
}

// stand returns the clusters of a status by name, for what stands. What has not changed keeps its
// since.
func (p *Propagation) stand(seats []movement.Seat, before, target []api.WorkloadCluster, now time.Time) (clusters []api.WorkloadCluster, moved bool) {
	find := func(list []api.WorkloadCluster, cluster string) *api.WorkloadCluster {
		if i := slices.IndexFunc(list, func(c api.WorkloadCluster) bool { return c.Name == cluster }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	at := now.UTC()
	for _, seat := range seats {
		stood, is := find(before, seat.Cluster), find(target, seat.Cluster)
		if is == nil {
			is = stood
		}
		c := *is
		if p.divided() {
			c.Replicas = seat.Units
		}
		c.OnDemand, c.Spot, c.Since = nil, nil, &at
		if stood != nil && stood.Replicas == c.Replicas && stood.Flavor == c.Flavor {
			c.OnDemand, c.Spot, c.Since = stood.OnDemand, stood.Spot, stood.Since
		}
		clusters = append(clusters, c)
	}
	slices.SortFunc(clusters, func(a, b api.WorkloadCluster) int { return strings.Compare(a.Name, b.Name) })
	same := slices.EqualFunc(before, clusters, func(a, b api.WorkloadCluster) bool {
		return a.Name == b.Name && a.Replicas == b.Replicas && a.Flavor == b.Flavor
	})
	if same {
		return before, false
	}
	return clusters, true
}

// differs reports whether a status must be written. Only statuses with a rollout are compared.
func differs(was, is *api.WorkloadStatus) bool {
	a, b := *was, *is
	if len(a.Evictions) == 0 && len(b.Evictions) == 0 {
		a.Evictions, b.Evictions = nil, nil
	}
	if len(a.EarlierAffinities) == 0 && len(b.EarlierAffinities) == 0 {
		a.EarlierAffinities, b.EarlierAffinities = nil, nil
	}
	return !reflect.DeepEqual(&a, &b)
}
