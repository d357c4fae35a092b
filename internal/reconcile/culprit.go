package reconcile

import (
	"log/slog"
	"slices"
	"sort"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// search finds the objects that cause a panic. It needs no support from the code that panics: it
// decides subsets of the world from scratch, without side effects, and checks which of them panic.
type search struct {
	// world are the objects that decisions are based on, in the order in which they are passed to
	// the planner, and decided the placements and workloads.
	world, decided []*fleet.Entry
	now            time.Time
	// fresh returns an empty planner.
	fresh func(*slog.Logger) *planner
	// ended reports whether the search was canceled.
	ended func() bool
}

// Limits of one search. Anything beyond them is found by the next one.
const (
	maxCulprits = 64  // objects of the world
	maxVictims  = 256 // decided objects
	maxBlamed   = 8   // objects of the world that make one decided object panic
	maxWitness  = 8   // decided objects that are checked for a panic with the same objects
	chunk       = 64  // decided objects that are tried at once
)

func newSearch(snapshot *fleet.Snapshot, leaveOut func(api.Key) bool) *search {
	s := &search{}
	for _, info := range api.Kinds {
		for entry := range snapshot.All(info.Kind, "") {
			switch {
			case leaveOut(api.KeyOf(entry.Object)):
			case isDecided(info.Kind):
				s.decided = append(s.decided, entry)
			default:
				s.world = append(s.world, entry)
			}
		}
	}
	return s
}

// decideAll passes objects to a planner and makes a pass. The error is a *recovery.Panic.
func decideAll(p *planner, now time.Time, parts ...[]*fleet.Entry) (writes []write, err error) {
	err = recovery.Confine("", func() error {
		for _, entries := range parts {
			for _, entry := range entries {
				p.putEntry(entry)
			}
		}
		writes = p.pass(now)
		return nil
	})
	return writes, err
}

// panics reports whether deciding these objects from scratch panics.
func (s *search) panics(parts ...[]*fleet.Entry) bool {
	_, err := decideAll(s.fresh(slog.New(slog.DiscardHandler)), s.now, parts...)
	return err != nil
}

// onlooker returns a placement that chooses every cluster: deciding it evaluates all of them.
func onlooker() []*fleet.Entry {
	p := &api.Placement{Metadata: api.Metadata{Name: "onlooker", Namespace: "default", UID: "onlooker", Generation: 1}}
	p.SetDefaults()
	return []*fleet.Entry{{Object: p, SpecRevision: 1}}
}

// culprits returns the objects to leave out; none if the whole does not panic, or no object
// explains it.
func (s *search) culprits() []api.Key {
	var found []api.Key
	look := onlooker()
	for begin := 0; len(found) < maxCulprits && !s.ended() && s.panics(s.world, look); {
		at := s.firstFatal(s.world, begin, look)
		if at < 0 {
			return found // it panics without any object
		}
		found = append(found, api.KeyOf(s.world[at].Object))
		s.world = slices.Delete(slices.Clone(s.world), at, at+1)
		begin = at
	}
	if len(found) > 0 || s.ended() {
		return found
	}
	if victims := s.victims(); len(victims) > 0 {
		return s.blame(victims)
	}
	if !s.panics(s.world, s.decided) {
		return nil
	}
	// None of them panics on its own: blame the first that does together with those before it.
	if n := s.least(len(s.decided), 0, func(n int) bool { return s.panics(s.world, s.decided[:n]) }); n > 0 {
		return []api.Key{api.KeyOf(s.decided[n-1].Object)}
	}
	return nil
}

// least returns the smallest number from first on for which holds is true, given that it is true
// for last.
func (s *search) least(last, first int, holds func(n int) bool) int {
	return first + sort.Search(last-first, func(i int) bool { return s.ended() || holds(first+i) })
}

// firstFatal returns the first object of a world that panics together with those before it and with
// look; -1 if look alone does. The first begin objects are known not to.
func (s *search) firstFatal(world []*fleet.Entry, begin int, look []*fleet.Entry) int {
	return s.least(len(world), begin, func(n int) bool { return s.panics(world[:n], look) }) - 1
}

// victims returns the decided objects that panic on their own.
func (s *search) victims() []*fleet.Entry {
	var victims []*fleet.Entry
	var p *planner
	begin := func() {
		p = s.fresh(slog.New(slog.DiscardHandler))
		_, _ = decideAll(p, s.now, s.world) // known not to panic
	}
	begin()
	for part := range slices.Chunk(s.decided, chunk) {
		if s.ended() || len(victims) >= maxVictims {
			break
		}
		if _, err := decideAll(p, s.now, part); err == nil {
			continue
		}
		begin()
		for i := range part {
			if _, err := decideAll(p, s.now, part[i:i+1]); err != nil {
				victims = append(victims, part[i])
				begin()
			}
		}
	}
	return victims
}

// blame determines whether decided objects panic because of themselves, or because of fewer objects
// that they are based on. The latter requires proof: several of them must succeed without those,
// although others of the same kind remain.
func (s *search) blame(victims []*fleet.Entry) []api.Key {
	var own []api.Key
	for _, v := range victims {
		own = append(own, api.KeyOf(v.Object))
	}
	if len(victims) < 2 {
		return own
	}
	rest := s.world
	var blamed []api.Key
	for s.panics(rest, victims[:1]) {
		at := s.firstFatal(rest, 0, victims[:1])
		if at < 0 || len(blamed) == maxBlamed || s.ended() {
			return own
		}
		blamed = append(blamed, api.KeyOf(rest[at].Object))
		rest = slices.Delete(slices.Clone(rest), at, at+1)
	}
	left := func(key api.Key) bool {
		return slices.ContainsFunc(rest, func(e *fleet.Entry) bool { return e.Object.ObjectKind() == key.Kind })
	}
	right := 1
	for i := 1; i < min(len(victims), maxWitness); i++ {
		if !s.panics(rest, victims[i:i+1]) {
			right++
		}
	}
	if right <= len(blamed) || slices.ContainsFunc(blamed, func(key api.Key) bool { return key.Kind == api.KindCluster && !left(key) }) {
		return own
	}
	return blamed
}
