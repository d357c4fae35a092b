package reconcile

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/scheduler/terraform-provider-scheduler/internal/announce"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// published is what readers see: how everything stood after the last pass. The loop
// publishes; the other methods may be called from many goroutines.
type published struct {
	current atomic.Pointer[snapshot]
	forks   forks
	// unstored are the objects that readers see differently although nothing was written.
	unstored *announce.Set[api.Key]
}

func newPublished() *published { return &published{unstored: announce.NewSet[api.Key]()} }

// show has readers see how everything stands now. taken is the snapshot of the fleet that
// the planner has taken in.
func (v *published) show(p *planner, q *quarantine, taken *fleet.Snapshot) {
	s := p.snapshot(v.current.Load())
	s.quarantined, s.taken = q.freeze(), taken
	v.forks.show(&v.current, s, p.records.differing.take())
	v.unstored.Add(p.otherwiseHeld(s)...)
	v.announce(q)
}

// showLot publishes what is currently left out. The planner may be unusable.
func (v *published) showQuarantine(q *quarantine) {
	s := *v.current.Load()
	s.quarantined = q.freeze()
	v.current.Store(&s)
	v.announce(q)
}

// announce announces what is left out, or no longer is, once readers see it.
func (v *published) announce(q *quarantine) {
	v.unstored.Add(slices.Collect(maps.Keys(q.otherwise))...)
	clear(q.otherwise)
}
