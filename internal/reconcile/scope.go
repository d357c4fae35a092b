package reconcile

import (
	"math"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// scope is a cohort of affinity groups of workloads that admit the same clusters. Its waiting
// members wait for room, or for a cluster.
type scope struct {
	cohort[*workloadBinding]
	// watching are workloads that have what they need but must be notified: they take every cluster
	// that fits, or would return to this group.
	watching map[*workloadBinding]struct{}
	// growing are those of watching for which additional room may matter, and awaiting those for
	// which there must be enough room until they return.
	growing, awaiting map[*workloadBinding]struct{}
}

// scopes are those of all workloads. The basis is the planner's.
type scopes struct {
	cohorts[*workloadBinding, *scope]
	basis *basis
}

// enter gives a workload the views of its affinity groups.
func (all *scopes) enter(w *workloadBinding) {
	w.scopes, w.sentences = make([]*scope, len(w.p.Groups)), make([]*sentence, len(w.p.Groups))
	for i := range w.p.Groups {
		w.scopes[i] = all.join(w.p.Groups[i].Query, w.p.Reads(), func(shared cohort[*workloadBinding]) *scope {
			shared.view = all.view(all.basis, shared.query, nil)
			return &scope{
				cohort: shared, watching: map[*workloadBinding]struct{}{},
				growing: map[*workloadBinding]struct{}{}, awaiting: map[*workloadBinding]struct{}{},
			}
		})
	}
}

// exit takes them from it.
func (all *scopes) exit(w *workloadBinding) {
	for i, s := range w.scopes {
		s.wait(w, false)
		s.unwatch(w)
		s.silence(&w.sentences[i])
		all.leave(s)
	}
	w.scopes, w.sentences = nil, nil
}

// setPending records whether a workload waits for more than it has.
func (b *workloadPlanner) setPending(w *workloadBinding, pending bool) {
	w.pending = pending
	for _, s := range w.scopes {
		s.wait(w, pending)
	}
	if pending && w.p.Preempts {
		b.preempting[w] = struct{}{}
	} else {
		delete(b.preempting, w)
	}
}

// watch determines which groups can affect a workload that has what it needs.
func (w *workloadBinding) watch() {
	observed := w.p.Group(w.status.ObservedAffinity)
	for _, s := range w.scopes {
		s.unwatch(w)
	}
	for i, s := range w.scopes { // groups that select the same clusters share a scope
		in := func(set map[*workloadBinding]struct{}, is bool) {
			if is {
				set[w] = struct{}{}
			}
		}
		here, before := i == observed, i < observed && w.p.FailsBack()
		// A group that is known to have room for the whole workload is evaluated again when the
		// workload is to return.
		in(s.watching, here && (w.p.WatchesAll() || w.overflowed) || before)
		in(s.growing, here && (w.p.WatchesRoom() || w.cramped || w.overflowed) || before && !takesBack(w, w.p.Groups[i].Name))
		in(s.awaiting, (here && w.overflowed || before) && len(w.status.EarlierAffinities) > 0)
	}
}

func (s *scope) unwatch(w *workloadBinding) {
	delete(s.watching, w)
	delete(s.growing, w)
	delete(s.awaiting, w)
}

// rooms returns what is free on rows, before the fleet and the reservations are updated.
func (b *workloadPlanner) rooms(rows []int) map[int]ledger.RowRoom {
	rooms := make(map[int]ledger.RowRoom, len(rows))
	if len(b.workloads) > 0 {
		for _, row := range rows {
			rooms[row] = ledger.RoomOn(b.fleet, b.reserved, row)
		}
	}
	return rooms
}

// advance follows the fleet from one version to the next. rooms is what was free before on the
// changed rows.
func (b *workloadPlanner) advance(was *columns.Fleet, delta columns.Delta, rooms map[int]ledger.RowRoom) {
	for _, name := range delta.Gone {
		b.occupants.wake(&b.queue, name)
	}
	b.resize(was, delta.Rows)
	if braked := binding.Brakes(b.fleet); braked != b.braked {
		b.braked = braked
		for _, w := range b.workloads {
			b.queue.mark(w)
		}
	}
	for s, rows := range b.scopes.concerned(&delta) {
		b.scopes.touch(s, rows)
	}
	b.touchOccupants(&delta)
	other := concerned(&delta, columns.Amounts)
	b.scopes.roomTaken(other)
	var grown []int
	for _, row := range other {
		room := ledger.RoomOn(b.fleet, b.reserved, row)
		if room.Overcommitted() {
			b.wakeWaiting(row)
		}
		if room.Grew(rooms[row]) {
			grown = append(grown, row)
		}
	}
	b.roomChanged(grown)
}

// touch looks at rows that say something else as the users of a scope see
// them.
func (all *scopes) touch(s *scope, rows []int) {
	was := all.follow(all.basis, s.shared(), rows)
	if len(rows) > 0 && (!slices.Equal(was, s.view.Mask) || slices.ContainsFunc(rows, s.view.Mask.Has)) {
		s.wakeAll(&all.basis.queue)
	}
}

// wakeAll has everybody looked at again who waits for something in the scope.
func (s *scope) wakeAll(q *queue) {
	s.wake(q)
	for w := range s.watching {
		q.mark(w)
	}
}

// expired handles a cluster that was removed from the view of a scope through the passing of time,
// or that is in it again because the clock was set back. Who has what it needs, and watches nothing,
// is affected by neither.
func (all *scopes) expired(s *scope, _ []int, _ bool) { s.wakeAll(&all.basis.queue) }

// touchOccupants evaluates changed rows for the workloads on them.
func (b *workloadPlanner) touchOccupants(delta *columns.Delta) {
	for _, row := range delta.Rows {
		cluster := b.fleet.Cluster(row)
		if cluster == nil {
			continue
		}
		for w := range b.occupants[cluster.Metadata.Name] {
			if !w.stale && (w.p == nil || delta.ConcernsRow(row, w.p.Reads())) && w.concerned(b.basis, row) {
				b.queue.mark(w)
			}
		}
	}
}

// concerned reports whether a workload is affected by the change of one of its clusters.
func (w *workloadBinding) concerned(p *basis, row int) bool {
	brake := api.FindCondition(w.status.Conditions, api.ConditionFailoverHeld)
	if w.p == nil || w.pending || len(w.status.Evictions) > 0 || w.p.DependsOnPlace() || brake != nil && brake.Status == api.ConditionTrue {
		return true
	}
	observed := w.p.Group(w.status.ObservedAffinity)
	if observed < 0 || w.scopes[observed].query.Reads().Any(columns.Clock) || w.p.FailsBack() {
		return true // with fail-back, an earlier group or tier may gain or lose it now
	}
	query := w.p.Groups[observed].Query
	return !placement.Admits(p.fleet, query, p.reserved, row, true) || placement.UnreadMatters(w.status.Conditions, p.fleet, query, row)
}

// roomChanged marks workloads that wait for room on clusters where there may be enough now.
func (b *workloadPlanner) roomChanged(rows []int) {
	for _, row := range rows {
		room := ledger.RoomOn(b.fleet, b.reserved, row)
		name := ""
		if c := b.fleet.Cluster(row); c != nil {
			name = c.Metadata.Name
		}
		for w := range b.occupants[name] {
			// It may grow there even if others may not be added; its replicas may have exceeded the
			// room; and a cluster that it is leaving may take it back.
			if w.pending || leaves(&w.status, name) {
				b.queue.mark(w)
			}
		}
		for _, s := range b.scopes.of {
			if len(s.waiting)+len(s.growing) == 0 || row>>6 >= len(s.view.Mask) || !s.view.Mask.Has(row) {
				continue
			}
			for w := range s.waiting {
				if !w.stale && (w.rivals || w.mayFit(w.lack, room)) {
					b.queue.mark(w)
				}
			}
			for w := range s.growing {
				if !w.stale && w.mayFit(w.backLack, room) {
					b.queue.mark(w)
				}
			}
		}
	}
}

// wakeWaiting marks the workloads on a cluster that wait: what they have there need not stay if it does
// not fit any more.
func (b *workloadPlanner) wakeWaiting(row int) {
	for w := range b.occupants[b.fleet.Name(row)] {
		if w.pending {
			b.queue.mark(w)
		}
	}
}

// roomTaken marks workloads that were to return to clusters with less room now: the room must exist
// continuously until then.
func (all *scopes) roomTaken(rows []int) {
	for _, s := range all.of {
		if len(s.awaiting) == 0 || !slices.ContainsFunc(rows, func(row int) bool { return row>>6 < len(s.view.Mask) && s.view.Mask.Has(row) }) {
			continue
		}
		for w := range s.awaiting {
			all.basis.queue.mark(w)
		}
	}
}

// mayFit reports whether the room that has grown on a cluster may be enough for what a workload
// lacks. It counts all the room there, so it errs on the side of another evaluation.
func (w *workloadBinding) mayFit(lack int64, room ledger.RowRoom) bool {
	fits := room.For(w.needs)
	if fits == 0 {
		return false
	}
	if w.gained += min(fits, math.MaxInt64-w.gained); w.gained < lack {
		return false
	}
	return true
}

// takesBack reports whether a group is known to have room for a workload.
func takesBack(w *workloadBinding, name string) bool {
	return slices.ContainsFunc(w.status.EarlierAffinities, func(e api.EarlierAffinity) bool { return e.AffinityName == name })
}
