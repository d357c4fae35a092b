package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// attended is a decision on whose clusters somebody watches over the object: its health is reported
// there, and the steps of a rollout are approved.
type attended interface {
	decision
	// runsOn reports whether the object runs on a cluster.
	runsOn(cluster string) bool
	// report applies a report about a cluster that it runs on.
	report(p *planner, report api.HealthReport, now time.Time)
	// underway returns the rollout that is under way, or nil, and advance replaces it.
	underway() *api.RolloutStatus
	advance(p *planner, rollout *api.RolloutStatus)
}

// ReportHealth applies a report about the health of a placement or workload on one of its clusters,
// and returns when its consequences are durable and in the fleet, with their revision. The error is
// ErrNotFound, api.FieldErrors for a report about a cluster that the object does not run on, or
// that of ctx.
func (r *Reconciler) ReportHealth(ctx context.Context, key api.Key, report api.HealthReport) (revision int64, err error) {
	err = r.tell(ctx, "report the health of "+key.String(), func(p *planner, now time.Time) error {
		d, err := p.attended(key)
		if err != nil {
			return err
		}
		if !d.runsOn(report.Cluster) {
			return api.FieldErrors{{Field: "cluster", Message: fmt.Sprintf("%s does not run on %q", key, report.Cluster)}}
		}
		d.report(p, report, now)
		return nil
	})
	return r.options.Fleet.Snapshot().Revision(), err
}

// attended returns the decision on a placement or workload. The error is ErrNotFound.
func (p *planner) attended(key api.Key) (attended, error) {
	p.focus(key)
	d, ok := p.known(key).(attended)
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return d, nil
}

// withReport returns reports with another one, and whether it contains a change. A repeated one
// matters if it is awaited.
func withReport(list []api.ClusterHealth, r api.HealthReport, now time.Time, awaited func(was *api.ClusterHealth) bool) (reports []api.ClusterHealth, changed bool) {
	now = now.UTC()
	h := api.ClusterHealth{Cluster: r.Cluster, Status: r.Status, Message: r.Message, Since: &now, ReportedAt: &now}
	list = slices.Clone(list)
	i := slices.IndexFunc(list, func(h api.ClusterHealth) bool { return h.Cluster == r.Cluster })
	if i < 0 {
		list = append(list, h)
		slices.SortFunc(list, func(a, b api.ClusterHealth) int { return cmp.Compare(a.Cluster, b.Cluster) })
		return list, true
	}
	was := list[i]
	if was.Status == r.Status {
		h.Since = was.Since
		if was.Message == r.Message && !awaited(&was) {
			return nil, false
		}
	}
	list[i] = h
	return list, true
}

// awaitsReport reports whether a rollout waits for a report that is newer than the last one.
func awaitsReport(r *api.RolloutStatus, was *api.ClusterHealth) bool {
	return r != nil && slices.ContainsFunc(r.Moves, func(m api.RolloutMove) bool {
		return m.Cluster == was.Cluster && m.StartedAt != nil && m.DoneAt == nil && !timeOf(was.ReportedAt).After(*m.StartedAt)
	})
}

func (p *placementDecision) runsOn(cluster string) bool {
	return slices.Contains(p.status.Clusters, cluster)
}

func (p *placementDecision) report(pl *planner, report api.HealthReport, now time.Time) {
	list, changed := withReport(p.status.Health, report, now, func(was *api.ClusterHealth) bool { return awaitsReport(p.status.Rollout, was) })
	if changed {
		status := *p.status
		status.Health = list
		p.replace(pl, &status)
	}
}

func (p *placementDecision) underway() *api.RolloutStatus { return p.status.Rollout }

func (p *placementDecision) advance(pl *planner, rollout *api.RolloutStatus) {
	status := *p.status
	status.Rollout = rollout
	p.replace(pl, &status)
}

// replace replaces what was reported or approved in the status, from which the decision is made
// again.
func (p *placementDecision) replace(pl *planner, status *api.PlacementStatus) {
	p.status, p.reported = status, true
	pl.queue.mark(p)
}

// withReports returns a status that was committed from outside with the reports that came in
// meanwhile, and whether there were any.
func withReports(committed, before *api.PlacementStatus) (status *api.PlacementStatus, kept bool) {
	if slices.EqualFunc(committed.Health, before.Health, sameHealth) {
		return committed, false
	}
	merged := *committed
	merged.Health = slices.DeleteFunc(slices.Clone(before.Health), func(h api.ClusterHealth) bool { return !slices.Contains(committed.Clusters, h.Cluster) })
	return &merged, true
}

func (w *workloadBinding) runsOn(cluster string) bool {
	return w.status.RunsOn(cluster)
}

func (w *workloadBinding) report(p *planner, report api.HealthReport, now time.Time) {
	p.bindings.report(w, report, now)
}

func (w *workloadBinding) underway() *api.RolloutStatus { return w.status.Rollout }

func (w *workloadBinding) advance(p *planner, rollout *api.RolloutStatus) {
	w.status.Rollout, w.reported = rollout, true
	p.queue.mark(w)
}
