package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// fork returns a planner with the state of the live one at a time, and the world that it knows,
// including what has been written since the last pass.
func (r *Reconciler) fork(now time.Time) (*planner, liveWorld) {
	s, index := r.forks.latest(&r.current)
	base := liveWorld{r.options.Fleet.Snapshot(), s.parked}
	p := s.fork(index, r.logger)
	p.lose(base.lost())
	for key := range s.parked {
		// What live decisions leave out would make the simulation panic. Usually the planner
		// already leaves it out.
		if known, _ := s.get(key); known.object != nil {
			p.remove(key)
			p.setAside(known.decided())
		} else if !isDecided(key.Kind) {
			p.remove(key)
		}
	}
	for _, change := range fleet.Difference(s.taken, base.at) {
		switch {
		case s.parked[change.Key] != nil:
		case change.New == nil:
			p.remove(change.Key)
		default:
			p.put(change.New.Object, change.New.SpecRevision)
		}
	}
	p.pass(now)
	return p, base
}

// baseWorld is what a simulation starts with.
type baseWorld interface {
	// object returns the object with a key, or nil.
	object(key api.Key) api.Object
	// lost returns the objects that cannot be used for decisions.
	lost() []api.Key
}

// nothing is a world without objects.
type nothing struct{}

func (nothing) object(api.Key) api.Object { return nil }
func (nothing) lost() []api.Key           { return nil }

// liveWorld is the current world.
type liveWorld struct {
	at     *fleet.Snapshot
	parked map[api.Key]*parked
}

func (w liveWorld) object(key api.Key) api.Object {
	if entry := w.at.Get(key); entry != nil && w.parked[key] == nil {
		return entry.Object
	}
	return nil
}

func (w liveWorld) lost() []api.Key {
	return append(lostIn(w.at), slices.Collect(maps.Keys(w.parked))...)
}
