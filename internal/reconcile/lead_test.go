package reconcile

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// second is a server that follows another one in a world.
type second struct {
	p     *planner
	ahead map[api.Key]struct{} // decisions in which it differs from the store
}

// hear lets a second server take in the stored objects and the deletions, and decide.
func (s *second) hear(w *world, all stored, now time.Time) {
	for _, key := range slices.SortedFunc(maps.Keys(w.specs), api.Key.Compare) {
		if object, there := all[key]; there {
			s.p.put(object, w.specs[key])
		} else {
			s.p.remove(key)
		}
		delete(s.ahead, key)
	}
	for _, write := range s.p.pass(now) {
		s.ahead[write.key()] = struct{}{}
	}
}

// entries tells how objects are stored.
func (w *world) entries(all stored) func(key api.Key) *fleet.Entry {
	return func(key api.Key) *fleet.Entry {
		if all[key] == nil {
			return nil
		}
		return &fleet.Entry{Object: all[key], SpecRevision: w.specs[key]}
	}
}

// checkSecond checks that a server that has followed another one, and knows more or less of what happened, can take
// over at any time and decide as the other would have. If a restart moves nothing, it writes nothing.
func checkSecond(t *rapid.T, w *world, p *planner, now time.Time) {
	all := w.afterPass(p)
	if w.second == nil {
		f := newPlanner(discard())
		f.started, f.following = p.started, true
		w.second = &second{f, map[api.Key]struct{}{}}
	}
	if rapid.IntRange(0, 2).Draw(t, "hear") > 0 {
		w.second.hear(w, all, now.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "clock"))*time.Second))
	}
	if rapid.IntRange(0, 3).Draw(t, "lead") > 0 {
		return
	}
	s := w.second
	w.second = nil
	s.hear(w, all, now) // it starts to lead only when it knows everything
	s.p.lead(s.ahead, w.entries(all))
	_, rests := replay(all, p.started, now)
	written := map[api.Key]bool{}
	for _, write := range s.p.pass(now) {
		key := write.key()
		written[key] = true
		if placed, ok := all[key].(*api.Placement); ok && leavesItsClusters(placed) {
			return // it counts again, and others may follow
		}
		if k := decidedAs(key.Kind); !reflect.DeepEqual(k.at(write.result()), k.at(all[key])) || rests {
			t.Fatalf("becoming the leader writes %s: %+v, previously %+v", key, write.result().StatusPart(), all[key].StatusPart())
		}
	}
	for key, object := range all {
		if d := s.p.known(key); d != nil && !written[key] && !decidedAs(key.Kind).agreed(d, object) {
			t.Fatalf("the leader has %s as %+v, but it is stored as %+v", key, d.result().StatusPart(), object.StatusPart())
		}
	}
}
