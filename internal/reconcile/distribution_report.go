package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// DistributionReport is an observation of the split of a workload in one of its clusters.
type DistributionReport struct {
	Key          api.Key
	Distribution api.ClusterDistribution
}

// ReportDistributions applies observations of splits, and returns when they are durable and in the
// fleet. Reports without changes have no effect, nor do reports about workloads that do not exist,
// request no split or do not run on the cluster. Reports do not cause new decisions. The error is
// that of ctx.
func (r *Reconciler) ReportDistributions(ctx context.Context, reports []DistributionReport) error {
	// Reporters rely on what the fleet shows: a report about something that has not been applied
	// yet would be dropped.
	if err := r.Settle(ctx, r.options.Fleet.Snapshot().Revision()); err != nil {
		return fmt.Errorf("report %d distributions: %w", len(reports), err)
	}
	return r.tell(ctx, fmt.Sprintf("report %d distributions", len(reports)), func(p *planner, now time.Time) error {
		for i := range reports {
			p.bindings.observeSplit(reports[i].Key, reports[i].Distribution, now)
		}
		return nil
	})
}

// splitNews tracks new observations of a workload's split.
type splitNews struct {
	listed    bool // queued for the next pass
	unwritten bool // a change was reported and is not written yet
}

// maxDistributionMessage limits the length of a report's message, in bytes.
const maxDistributionMessage = 1024

// observeSplit applies an observation of a split, if it contains a change.
func (b *workloadPlanner) observeSplit(key api.Key, d api.ClusterDistribution, now time.Time) {
	b.focus(key)
	w, ok := b.workloads[key]
	if !ok || w.object.Spec.Distribution == nil || !w.status.RunsOn(d.Cluster) {
		return
	}
	if len(d.Message) > maxDistributionMessage {
		d.Message = strings.ToValidUTF8(d.Message[:maxDistributionMessage], "")
	}
	i, known := slices.BinarySearchFunc(w.status.Distribution, d.Cluster, func(d api.ClusterDistribution, name string) int {
		return strings.Compare(d.Cluster, name)
	})
	if known && w.status.Distribution[i].Same(d) {
		return
	}
	if d.ObservedAt == nil {
		utc := now.UTC()
		d.ObservedAt = &utc
	}
	list := slices.Clone(w.status.Distribution) // shared with the fleet's copy
	if known {
		list[i] = d
	} else {
		list = slices.Insert(list, i, d)
	}
	w.status.Distribution = list
	w.split.unwritten = true
	b.observed.look(w)
}

// observedSplits are the workloads of whose split something else was observed since the
// last pass, or may have been.
type observedSplits []*workloadBinding

// look queues a workload whose observed split must be evaluated by the next pass.
func (all *observedSplits) look(w *workloadBinding) {
	if !w.split.listed {
		w.split.listed = true
		*all = append(*all, w)
	}
}

// keepObserved keeps observations of a split when a binding was committed from outside: those in
// the committed status are as old as its preview.
func (w *workloadBinding) keepObserved(before *api.WorkloadStatus) {
	if !slices.EqualFunc(w.status.Distribution, before.Distribution, api.ClusterDistribution.Same) {
		w.status.Distribution = before.Distribution
		w.split.unwritten = true
	}
}

// spotChanged records the changed clusters on which spot was enabled or disabled: observations of
// what runs there have another meaning then. was is the fleet before the changes.
func (b *workloadPlanner) spotChanged(was *columns.Fleet, clusters map[string]*api.Cluster) {
	for name, c := range clusters {
		row, known := was.Row(name)
		if c == nil || !known || was.Cluster(row).SpotEnabled() == c.SpotEnabled() {
			continue
		}
		for w := range b.occupants[name] {
			if w.object.Spec.Distribution != nil {
				b.observed.look(w)
			}
		}
	}
}

// pass draws the conclusions from what was observed of splits since the last
// pass. It comes after the decisions: they have drawn those of their own.
func (all *observedSplits) pass(f *columns.Fleet, now time.Time, found *writes) {
	for _, w := range *all {
		w.split.listed = false
		if w.gone {
			continue
		}
		object := *w.object
		object.Status = w.status
		status, changed := binding.NewDistributionStatus(f, &object, now)
		w.status = status
		if changed || w.split.unwritten {
			found.addObserved(w)
		}
		w.split.unwritten = false
	}
	clear(*all)
	*all = (*all)[:0]
}
