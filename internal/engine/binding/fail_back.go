package binding

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
)

// takeBack moves the workload back to an earlier group, or within its group to earlier tiers, if
// these have been able to hold it for long enough.
func (b *Binder) takeBack(observed int) {
	if back, result := b.failBack(observed); back >= 0 {
		b.out.tried = append(b.out.tried, tried{back, nil})
		b.out.group, b.out.result, b.out.Complete = back, result, true
	} else if b.out.Complete {
		b.refill(b.out.group)
	}
}

// failBack tries the groups before the observed one, records since when each could hold the
// workload, and returns the first one that could for long enough, or -1.
func (b *Binder) failBack(observed int) (int, division.Result) {
	current := b.out.group
	if current < 0 {
		current = observed
	}
	if !b.p.failBack || current <= 0 {
		return -1, division.Result{}
	}
	for g := range current {
		result, err := b.try(g, true)
		if err != nil {
			if lack := lackOf(err); g == 0 || lack < b.out.BackLack {
				b.out.BackLack = lack
			}
			continue
		}
		since := b.feasibleSince(b.p.Groups[g].Name)
		if !b.out.Complete || b.stable(since) { // an incomplete workload does not wait
			b.back = b.p.Groups[g].Name
			return g, result
		}
		b.awaitBack(b.p.Groups[g].Name, since)
	}
	return -1, division.Result{}
}

// refill checks whether replicas in overflow tiers fit into earlier tiers, records since when, and
// moves them back if that is long enough.
func (b *Binder) refill(group int) {
	tiers := b.p.Groups[group].tiers
	if !b.p.failBack || !b.p.divided() || len(tiers) < 2 || b.present.fresh {
		return
	}
	has := b.byTier(tiers, b.out.result.Shares)
	if b.out.Overflowed = slices.ContainsFunc(has[1:], func(n int64) bool { return n > 0 }); !b.out.Overflowed {
		return
	}
	b.refilling = true
	result, err := b.try(group, true)
	b.refilling = false
	if err != nil {
		return
	}
	would := b.byTier(tiers, result.Shares)
	tier := 0
	for tier < len(has)-1 && would[tier] == has[tier] {
		tier++
	}
	if would[tier] <= has[tier] {
		return
	}
	name := tiers[tier].Name
	since := b.feasibleSince(name)
	if b.stable(since) {
		b.out.result, b.back = result, name
		return
	}
	b.awaitBack(name, since)
}

// byTier returns how many replicas are in each tier.
func (b *Binder) byTier(tiers []filter.Affinity, shares []division.Share) []int64 {
	sums := make([]int64, len(tiers))
	for _, s := range shares {
		if tier := filter.TierOf(tiers, b.fleet, int(s.Row)); tier >= 0 {
			sums[tier] += s.Replicas
		}
	}
	return sums
}

// feasibleSince returns since when a group or tier could have taken replicas back: now, if it could
// not before.
func (b *Binder) feasibleSince(name string) time.Time {
	for _, e := range b.present.earlier {
		if e.AffinityName == name && e.FeasibleSince != nil {
			return *e.FeasibleSince
		}
	}
	return b.now
}

// stable reports whether the stabilization window has passed.
func (b *Binder) stable(since time.Time) bool { return !b.now.Before(since.Add(b.p.stabilization)) }

// awaitBack records that a group or tier could take replicas back.
func (b *Binder) awaitBack(name string, since time.Time) {
	b.soon(since.Add(b.p.stabilization))
	utc := since.UTC()
	b.out.earlier = append(b.out.earlier, api.EarlierAffinity{AffinityName: name, FeasibleSince: &utc})
}
