package reconcile

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// quarantine keeps the amounts that a decision holds, according to its stored object, reserved while
// the object is left out. What cannot be read of it is not reserved.
func (p *planner) quarantine(object api.Object) {
	k := decidedAs(object.ObjectKind())
	if k == nil {
		return
	}
	var holds []hold
	if err := recovery.Confine("", func() error { holds = k.holdsOf(object); return nil }); err != nil {
		return // reserving itself panics
	}
	key := api.KeyOf(object)
	for _, h := range holds {
		p.reserved.HoldReplicas(p.fleet, key, h.needs, h.cluster, h.replicas, h.since)
		if p.quarantined == nil {
			p.quarantined = map[api.Key][]string{}
		}
		p.quarantined[key] = append(p.quarantined[key], h.cluster)
	}
}

// readmit releases what is reserved for an object that was quarantined: it is gone, or takes part
// again with its own holds.
func (p *planner) readmit(key api.Key) {
	clusters := p.quarantined[key]
	if clusters == nil {
		return
	}
	delete(p.quarantined, key)
	var rows []int
	for _, name := range clusters {
		p.reserved.Release(p.fleet, key, name)
		if row, ok := p.fleet.Row(name); ok {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	p.heldOtherwise(rows, rows, nil)
}

// hold is what a decision holds on a cluster.
type hold struct {
	cluster  string
	needs    ledger.Needs // of one replica
	replicas int64
	since    time.Time
}

// holdsOfPlacement returns what a placement holds, according to its status.
func holdsOfPlacement(p *api.Placement) (holds []hold) {
	query, err := placement.NewQuery(p)
	if err != nil || !query.HasRequests() {
		return nil
	}
	for _, d := range p.Status.Decisions {
		since := d.Since
		if since == nil {
			since = p.Status.ScheduledAt
		}
		holds = append(holds, hold{d.Cluster, query.Requests(), 1, columns.TimeOf(since)})
	}
	return holds
}

// holdsOfWorkload returns what a workload holds, according to its status.
func holdsOfWorkload(w *api.Workload) (holds []hold) {
	needs, err := ledger.NewNeeds(w)
	if err != nil {
		return nil
	}
	for name, replicas := range clustersOf(&w.Status) {
		holds = append(holds, hold{name, needs, replicas, sinceOf(&w.Status, name)})
	}
	return holds
}
