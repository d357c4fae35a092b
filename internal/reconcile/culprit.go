package reconcile

import (
	"log/slog"
	"slices"
	"sort"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// search finds the objects without which nothing panics. It needs no help from what
// panics: it decides parts of the world, each from nothing and for nobody, and looks
// which of them panic.
type search struct {
	// world are the objects that others are decided on, in the order in which they are
	// told, and decided the placements and workloads.
	world, decided []*fleet.Entry
	now            time.Time
	// fresh makes a planner that knows nothing.
	fresh func(*slog.Logger) *planner
	// ended reports that nobody wants the answer any more.
	ended func() bool
}

// Bounds of one search. What is beyond them is found by the next.
const (
	maxCulprits = 64  // objects of the world
	maxVictims  = 256 // decided objects
	maxBlamed   = 8   // objects of the world that one decided object panics on
	maxWitness  = 8   // decided objects that are asked whether they panic on the same
	chunk       = 64  // decided objects that are tried at a time
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

// decideAll tells a planner of objects and makes a pass. The error is a *fault.Panic.
func decideAll(p *planner, now time.Time, parts ...[]*fleet.Entry) (writes []write, err error) {
	err = fault.Confine("", func() error {
		for _, entries := range parts {
			for _, entry := range entries {
				p.put(entry.Object, entry.SpecRevision)
			}
		}
		writes = p.pass(now)
		return nil
	})
	return writes, err
}

// panics reports whether it panics to decide these objects from nothing.
func (s *search) panics(parts ...[]*fleet.Entry) bool {
	_, err := decideAll(s.fresh(slog.New(slog.DiscardHandler)), s.now, parts...)
	return err != nil
}

// onlooker is a placement that takes every cluster: deciding it asks about each of
// them.
func onlooker() []*fleet.Entry {
	p := &api.Placement{Metadata: api.Metadata{Name: "onlooker", Namespace: "default", UID: "onlooker", Generation: 1}}
	p.SetDefaults()
	return []*fleet.Entry{{Object: p, SpecRevision: 1}}
}

// culprits are the objects to do without; none where the whole does not panic, or
// nothing that there is explains it.
func (s *search) culprits() []api.Key {
	var found []api.Key
	look := onlooker()
	for begin := 0; len(found) < maxCulprits && !s.ended() && s.panics(s.world, look); {
		at := s.firstFatal(s.world, begin, look)
		if at < 0 {
			return found // it panics on nothing
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
	// None of them panics by itself: it is the first that does together with those
	// before it.
	if n := s.least(len(s.decided), 0, func(n int) bool { return s.panics(s.world, s.decided[:n]) }); n > 0 {
		return []api.Key{api.KeyOf(s.decided[n-1].Object)}
	}
	return nil
}

// least is the smallest number from a first one on for which something holds, given
// that it holds for the last.
func (s *search) least(last, first int, holds func(n int) bool) int {
	return first + sort.Search(last-first, func(i int) bool { return s.ended() || holds(first+i) })
}

// firstFatal is the first object of a world that panics together with those before
// it and with look; -1 where look alone does. That the first begin do not is known.
func (s *search) firstFatal(world []*fleet.Entry, begin int, look []*fleet.Entry) int {
	return s.least(len(world), begin, func(n int) bool { return s.panics(world[:n], look) }) - 1
}

// victims are the decided objects that panic by themselves.
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

// blame tells whether decided objects panic because of themselves, or because of
// fewer things that they are decided on. The latter needs proof: that several come
// right without those, though there are others of the kind left to be decided on.
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
