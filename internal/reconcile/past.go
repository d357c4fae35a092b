package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// ExplainPast explains a decision as it was in the fleet of an earlier revision, at a time: zero means when the last
// change before that revision was made. What a server has in memory only is not part of it.
func (r *Reconciler) ExplainPast(ctx context.Context, past *fleet.Snapshot, key api.Key, at time.Time) (*api.Explanation, error) {
	k := decidedAs(key.Kind)
	if k == nil || past.Get(key) == nil {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	release, err := r.mayFork(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	all := newSearch(past, func(api.Key) bool { return false })
	if at.IsZero() {
		at = lastChange(all.world, all.decided)
	}
	p := newReadPlanner(r.logger)
	p.lose(lostIn(past))
	if _, err := decideAll(p, at, all.world, all.decided); err != nil {
		return nil, err
	}
	s := p.snapshot(nil)
	known, ok := s.get(key)
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return k.explained(s, &known, at), nil
}

// lastChange returns the latest time that objects say something of them changed.
func lastChange(parts ...[]*fleet.Entry) (last time.Time) {
	note := func(at *time.Time) {
		if t := columns.TimeOf(at); t.After(last) {
			last = t
		}
	}
	for _, entries := range parts {
		for _, entry := range entries {
			note(entry.Object.Meta().CreatedAt)
			note(entry.Object.Meta().ModifiedAt)
			if conditions := api.ConditionsOf(entry.Object); conditions != nil {
				for _, c := range *conditions {
					note(c.LastTransitionAt)
				}
			}
			switch o := entry.Object.(type) {
			case *api.Placement:
				note(o.Status.ScheduledAt)
			case *api.Workload:
				note(o.Status.ScheduledAt)
			case *api.Metric:
				note(o.Status.ObservedAt)
			case *api.Cluster:
				note(o.Status.LastHeartbeatAt)
			}
		}
	}
	return last
}
