package binding

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// memberRow is one cluster of the present binding, or one that the workload is leaving.
type memberRow struct {
	row      int
	replicas int64
	cluster  string
	state    memberState
	evicted  string // reason of the eviction
	// restored says that the workload was leaving the cluster, and stays after all: its replicas there
	// are not part of the present binding.
	restored bool
}

// memberState is the state of a cluster of the present binding.
type memberState uint8

const (
	// memberStays: the cluster fits, or is treated as if it did.
	memberStays memberState = iota
	// memberSuspended: the cluster is offline, but so are too many others.
	memberSuspended
	// memberLost: the cluster is offline or has a taint that evicts.
	memberLost
	// memberFailed: the application has been unhealthy on the cluster for too long.
	memberFailed
	// memberLeaving: an eviction is in progress.
	memberLeaving
	// memberUnwanted: the cluster no longer fits for other reasons, such as a change of the policy
	// or of its labels.
	memberUnwanted
)

// judge determines the state of every cluster of the present binding, and of those that the
// workload is leaving, and returns how many replicas are lost. If the observed group no longer
// exists, a cluster need only fit any group.
func (b *Binder) judge(observed int) (lost int64) {
	b.places = b.places[:0]
	pass := placement.PassOf(b.fleet, b.p.Groups[max(observed, 0)].Query, b.others.Reserved)
	lost = b.judgeMembers(&pass, observed) + b.present.lost
	first := pass // of the group that is tried first
	if b.present.fresh {
		first = placement.PassOf(b.fleet, b.p.Groups[0].Query, b.others.Reserved)
	}
	b.judgeEvictions(&first, lost > 0)
	if !b.p.divided() {
		return 0
	}
	return lost
}

// judgeMembers is judge for the clusters of the present binding. pass is that of the observed
// group.
func (b *Binder) judgeMembers(pass *placement.Pass, observed int) (lost int64) {
	braked := Brakes(b.fleet)
	for _, c := range b.present.clusters {
		row, ok := b.fleet.Row(c.Name)
		if !ok {
			lost += c.Replicas
			continue
		}
		m := memberRow{row: row, replicas: c.Replicas, cluster: c.Name, state: b.stateOf(pass, &c, row, braked, observed)}
		if m.state == memberLost || m.state == memberFailed {
			lost += c.Replicas
		}
		b.places = append(b.places, m)
	}
	return lost
}

// stateOf returns the state of a cluster of the present binding.
func (b *Binder) stateOf(pass *placement.Pass, c *api.WorkloadCluster, row int, braked bool, observed int) memberState {
	switch {
	case pass.Evicts(row) != nil:
		if braked && offlineOnly(pass, row) {
			return memberSuspended
		}
		return memberLost
	case (c.Replicas > 0 || !b.p.replicated) && b.failed(c.Name): // also if the cluster is in another group
		return memberFailed
	case pass.AdmitsMeant(row, slices.Contains(b.present.awaited, c.Name)) || observed < 0 && b.fitsAny(row):
		return memberStays
	}
	return memberUnwanted
}

// judgeEvictions is judge for the clusters that the workload is leaving. first is the pass of the
// group that is tried first. With restore, the workload stays on a lost cluster that came back
// before a replacement was found.
func (b *Binder) judgeEvictions(first *placement.Pass, restore bool) {
	for _, e := range b.present.evictions {
		row, ok := b.fleet.Row(e.Cluster)
		if !ok || b.evictionOver(e) {
			continue
		}
		m := memberRow{row: row, replicas: e.Replicas, cluster: e.Cluster, state: memberLeaving, evicted: e.Reason}
		if restore && e.Reason == api.EvictedClusterLost && first.Admits(row, true) {
			m.state, m.evicted, m.restored = memberStays, "", true
		}
		b.places = append(b.places, m)
	}
}

// fitsAny reports whether a cluster of the present binding fits any group.
func (b *Binder) fitsAny(row int) bool {
	return slices.ContainsFunc(b.p.Groups, func(g AffinityGroup) bool {
		pass := placement.PassOf(b.fleet, g.Query, b.others.Reserved)
		return pass.Admits(row, true)
	})
}

func (b *Binder) any(state memberState) bool {
	return slices.ContainsFunc(b.places, func(m memberRow) bool { return m.state == state })
}
