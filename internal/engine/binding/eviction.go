package binding

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// Limits on evictions: while more than brakePercent of the clusters, and at least brakeLeast, are
// not online at the same time, the server has probably lost connectivity, and moving everything to
// the remaining clusters would do harm.
const (
	brakePercent = 55
	brakeLeast   = 4
)

// Brakes reports whether evictions from clusters that are merely offline are suspended.
func Brakes(f *columns.Fleet) bool {
	n := 0
	for i, live := range f.Live() {
		for w := live &^ f.Online()[i]; w != 0; w &= w - 1 {
			if columns.State(f.Cluster(i<<6+bits.TrailingZeros64(w))) != api.StatePending {
				n++
			}
		}
	}
	return n >= brakeLeast && 100*n > brakePercent*f.Len()
}

// endures reports whether a cluster of the present binding is neither offline nor has a taint that
// evicts.
func endures(p *placement.Pass, row int) bool {
	return lostBy(p, row) == nil
}

// lostBy returns the check for which a cluster of the present binding counts as lost, or nil. Only
// its state and its taints count.
func lostBy(p *placement.Pass, row int) filter.Evicting {
	for _, check := range p.Query.Checks.All {
		if check, ok := check.(filter.Evicting); ok && !check.Admits(&p.Evaluation, row, true) {
			return check
		}
	}
	return nil
}

// offlineOnly reports whether being offline is the only reason to reject a cluster of the present
// binding.
func offlineOnly(p *placement.Pass, row int) bool {
	for _, check := range p.Query.Checks.All {
		if e, ok := check.(filter.Evicting); (!ok || !e.Offline()) && !check.Admits(&p.Evaluation, row, true) {
			return false
		}
	}
	return true
}

// health returns the last report about a cluster.
func (b *Binder) health(cluster string) *api.ClusterHealth {
	for i := range b.present.health {
		if b.present.health[i].Cluster == cluster {
			return &b.present.health[i]
		}
	}
	return nil
}

// unwell reports whether the workload was last reported unhealthy on a cluster. An explicit
// reschedule is a new attempt on every cluster.
func (b *Binder) unwell(cluster string) bool {
	h := b.health(cluster)
	return h != nil && h.Status == api.Unhealthy && !b.present.fresh
}

// failed reports whether the workload has been unhealthy on a cluster for too long.
func (b *Binder) failed(cluster string) bool {
	if b.p.application == nil || !b.unwell(cluster) {
		return false
	}
	since := b.health(cluster).Since
	if since == nil {
		return true
	}
	at := since.Add(b.p.toleration)
	b.soon(at)
	return !b.now.Before(at)
}

// expired reports whether the grace of an eviction has passed.
func expired(e api.Eviction, now time.Time) bool {
	return e.PurgeMode != api.PurgeNever && e.Until != nil && !now.Before(*e.Until)
}

// recovered reports whether the cause of an eviction is gone: the cluster is online and no taint
// evicts, or the workload was reported healthy there.
func (b *Binder) recovered(p *placement.Pass, e api.Eviction, row int) bool {
	switch e.Reason {
	case api.EvictedClusterLost:
		return endures(p, row)
	case api.EvictedApplicationUnhealthy:
		h := b.health(e.Cluster)
		return h != nil && h.Status == api.Healthy
	}
	return false
}

// replaced reports whether every cluster of the binding has been reported healthy since an eviction
// began.
func (b *Binder) replaced(e api.Eviction) bool {
	if !b.out.Complete || e.PurgeMode == api.PurgeNever || len(b.out.shares) == 0 {
		return false
	}
	for _, s := range b.out.shares {
		h := b.health(b.fleet.Name(int(s.Row)))
		if h == nil || h.Status != api.Healthy {
			return false
		}
		if h.ReportedAt != nil && e.Since != nil && !h.ReportedAt.After(*e.Since) {
			return false // that report was about the previous replicas
		}
	}
	return true
}

// evict sets the evictions: earlier ones that are not over, and new ones.
func (b *Binder) evict(observed int) {
	chosen := make(map[int32]bool, len(b.out.shares))
	if len(b.places) > 0 {
		for _, s := range b.out.shares {
			chosen[s.Row] = true
		}
	}
	for _, e := range b.present.evictions {
		i := slices.IndexFunc(b.places, func(m memberRow) bool { return m.cluster == e.Cluster && m.state == memberLeaving })
		if i < 0 || chosen[int32(b.places[i].row)] || b.replaced(e) {
			continue
		}
		if e.Until != nil {
			b.soon(*e.Until)
		}
		b.out.evictions = append(b.out.evictions, e)
	}
	b.out.evictionsSuspended = false
	for i := range b.places {
		m := &b.places[i]
		if m.state == memberLeaving || chosen[int32(m.row)] {
			b.out.evictionsSuspended = b.out.evictionsSuspended || m.state == memberSuspended
			continue
		}
		if e, ok := b.eviction(m, observed); ok {
			if e.Until != nil {
				b.soon(*e.Until)
			}
			b.out.evictions = append(b.out.evictions, e)
		}
	}
	slices.SortFunc(b.out.evictions, func(a, c api.Eviction) int { return strings.Compare(a.Cluster, c.Cluster) })
}

// eviction returns how a cluster of the present binding is left. ok is false if its replicas are
// simply removed.
func (b *Binder) eviction(m *memberRow, observed int) (e api.Eviction, ok bool) {
	now := b.now.UTC()
	e = api.Eviction{Cluster: m.cluster, Replicas: m.replicas, Since: &now}
	how := b.p.clusterPurge
	switch {
	case m.state == memberLost:
		e.Reason, e.Message = api.EvictedClusterLost, b.lossReason(m)
	case m.state == memberFailed:
		how = *b.p.application
		e.Reason, e.Message = api.EvictedApplicationUnhealthy, "the workload was reported unhealthy"
		if h := b.health(m.cluster); h != nil && h.Since != nil {
			e.Message += fmt.Sprintf(" since %s, tolerated for %s", h.Since.UTC().Format(time.RFC3339), b.p.toleration)
		}
	case b.present.fresh || m.state != memberStays || observed < 0 || b.out.group == observed || !b.out.Complete:
		return e, false
	case b.out.group < observed:
		e.Reason, e.Message = api.EvictedFailedBack, fmt.Sprintf("affinity group %q took the workload back", b.p.Groups[b.out.group].Name)
	default:
		e.Reason, e.Message = api.EvictedFailedOver, fmt.Sprintf("affinity group %q took over the whole workload", b.p.Groups[b.out.group].Name)
	}
	if e.PurgeMode = how.mode; how.mode == api.PurgeDirectly {
		if m.state != memberFailed {
			return e, false // nothing to wait for, and it is not a candidate
		}
		// The replicas are gone, but new ones would fail there too.
		e.Replicas, how.grace = 0, api.DefaultGracePeriod.Or(0)
	}
	if how.mode != api.PurgeNever {
		until := now.Add(how.grace)
		e.Until = &until
	}
	return e, true
}

// lossReason says why a cluster counts as lost.
func (b *Binder) lossReason(m *memberRow) string {
	query := b.p.Groups[max(b.p.Group(b.present.affinity), 0)].Query
	p := placement.PassOf(b.fleet, query, b.others.Reserved)
	check := lostBy(&p, m.row)
	switch {
	case check == nil:
		return ""
	case check.Offline():
		return "the cluster " + check.Reason(&p.Evaluation, m.row)
	}
	return check.Reason(&p.Evaluation, m.row)
}
