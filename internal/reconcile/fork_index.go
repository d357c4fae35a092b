package reconcile

import (
	"cmp"
	"iter"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// forkIndex finds the decisions of a snapshot by their relations, so that a fork takes over only
// those that its changes concern. It is updated from one snapshot to the next by the objects that
// differ, and shares memory with its copies, which are immutable.
type forkIndex struct {
	records   *btree.BTreeG[*record] // of the snapshot
	relations *btree.BTreeG[relation]
	resting   *btree.BTreeG[restingClass]
}

// relation relates a decision to something.
type relation struct {
	kind relationKind
	to   string
	key  api.Key
}

type relationKind uint8

const (
	// onCluster: the placement chose the cluster with this name.
	onCluster relationKind = iota
	// restsIn: the placement rests in the class. It is only affected by changes of what the class
	// reads, or of its clusters.
	restsIn
	// awaitsHost: the cluster has no cloud yet, and gets one when there is one that fits.
	awaitsHost
	// restless: a fork takes over the decision at once, because it is waiting, depends on time, or
	// affects others in more ways than relations cover.
	restless
)

func inRelationOrder(a, b relation) bool {
	return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.to, b.to), a.key.Compare(b.key)) < 0
}

// restingClass summarizes the placements that rest in a class.
type restingClass struct {
	class string           // engine.Query.Class
	query *placement.Query // of any of them
	n     int
	// unsated counts those that have every cluster that fits, and want more.
	unsated int
	// movable counts those that the decisions of others alone may move.
	movable int
	// floor and floorTotal are the lowest Worst and WorstTotal of the others.
	floor, floorTotal placement.Merit
}

func newForkIndex(s *snapshot) *forkIndex {
	ix := &forkIndex{
		records: newRecords(), relations: btree.NewG(16, inRelationOrder),
		resting: btree.NewG(16, func(a, b restingClass) bool { return a.class < b.class }),
	}
	ix.advance(s, func(yield func(api.Key) bool) {
		s.records.Ascend(func(r *record) bool { return yield(*r.key) })
	})
	return ix
}

// freeze returns an immutable copy of the index.
func (ix *forkIndex) freeze() *forkIndex {
	return &forkIndex{records: ix.records, relations: ix.relations.Clone(), resting: ix.resting.Clone()}
}

// advance updates the index to a snapshot in which the given objects differ.
func (ix *forkIndex) advance(s *snapshot, differ iter.Seq[api.Key]) {
	lifted := map[string]struct{}{} // classes whose floor may be higher now
	for key := range differ {
		was, had := ix.records.Get(&record{key: &key})
		is, has := s.records.Get(&record{key: &key})
		if had {
			for r := range was.relations() {
				ix.relations.Delete(r)
			}
			if was.rests() && ix.leave(was.placed) {
				lifted[was.placed.query.Class] = struct{}{}
			}
		}
		if has {
			for r := range is.relations() {
				ix.relations.ReplaceOrInsert(r)
			}
			if is.rests() {
				ix.enter(is.placed)
			}
		}
	}
	ix.records = s.records
	for class := range lifted {
		ix.lift(class)
	}
}

// enter counts a placement among those that rest in its class.
func (ix *forkIndex) enter(p *placedState) {
	c, known := ix.resting.Get(restingClass{class: p.query.Class})
	if !known {
		c = restingClass{class: p.query.Class, query: p.query, floor: placement.Highest, floorTotal: placement.Highest}
	}
	c.n++
	c.count(p, 1)
	ix.resting.ReplaceOrInsert(c)
}

// leave undoes enter, and reports whether the placement may have determined the floor.
func (ix *forkIndex) leave(p *placedState) (lifted bool) {
	c, _ := ix.resting.Get(restingClass{class: p.query.Class})
	if c.n--; c.n == 0 {
		ix.resting.Delete(c)
		return false
	}
	c.count(p, -1)
	ix.resting.ReplaceOrInsert(c)
	return p.full && (p.worst == c.floor || p.worstTotal == c.floorTotal)
}

// count adds (1) or removes (-1) a placement.
func (c *restingClass) count(p *placedState, by int) {
	if p.movable {
		c.movable += by
	}
	switch {
	case !p.decided || p.query.Wanted == 0:
	case !p.full:
		c.unsated += by
	case by > 0:
		c.lower(p)
	}
}

// lower lowers the floor for a placement that has all its seats.
func (c *restingClass) lower(p *placedState) {
	if p.worst.Less(c.floor) {
		c.floor = p.worst
	}
	if p.worstTotal.Less(c.floorTotal) {
		c.floorTotal = p.worstTotal
	}
}

// lift recomputes the floor of a class.
func (ix *forkIndex) lift(class string) {
	c, known := ix.resting.Get(restingClass{class: class})
	if !known {
		return
	}
	c.floor, c.floorTotal = placement.Highest, placement.Highest
	for key := range ix.related(restsIn, class) {
		if r, _ := ix.records.Get(&record{key: &key}); r.placed.decided && r.placed.full && r.placed.query.Wanted != 0 {
			c.lower(r.placed)
		}
	}
	ix.resting.ReplaceOrInsert(c)
}

// related yields the decisions related to one thing, in key order.
func (ix *forkIndex) related(kind relationKind, to string) iter.Seq[api.Key] {
	return func(yield func(api.Key) bool) {
		ix.relations.AscendGreaterOrEqual(relation{kind: kind, to: to}, func(r relation) bool {
			return r.kind == kind && r.to == to && yield(r.key)
		})
	}
}

// rests reports whether a record is that of a placement at rest.
func (r *record) rests() bool {
	p := r.placed
	return p != nil && p.decided && !p.wanting && p.told == "" && p.at.IsZero() && !p.query.Spreads()
}

// relations yields the relations of a decision.
func (r *record) relations() iter.Seq[relation] {
	return func(yield func(relation) bool) {
		switch object := r.object.(type) {
		case *api.Placement:
			for _, name := range r.status.Clusters {
				if !yield(relation{onCluster, name, *r.key}) {
					return
				}
			}
			if r.rests() {
				yield(relation{restsIn, r.placed.query.Class, *r.key})
				return
			}
		case *api.Cluster:
			if g := r.guest; g.host == "" && object.Spec.OpenStack == nil {
				if g.waits {
					yield(relation{awaitsHost, "", *r.key})
				}
				return // only needed by its key
			}
		}
		yield(relation{restless, "", *r.key})
	}
}

// on returns how many placements of the snapshot chose a cluster.
func (ix *forkIndex) on(cluster string) (n int32) {
	for range ix.related(onCluster, cluster) {
		n++
	}
	return n
}

// forks maintains the index of the current snapshot, from the first fork on.
type forks struct {
	// indexing is held while the index is updated to a snapshot. Passes do not wait for it.
	indexing sync.Mutex
	index    *forkIndex // nil before the first fork

	// mu guards the differences between the snapshot of the index and the current one, and that
	// both are replaced together.
	mu        sync.Mutex
	differing differences
}

// latest returns the current snapshot with its index.
func (f *forks) latest(current *atomic.Pointer[snapshot]) (*snapshot, *forkIndex) {
	f.indexing.Lock()
	defer f.indexing.Unlock()
	f.mu.Lock()
	s, differing := current.Load(), f.differing.take()
	f.mu.Unlock()
	if f.index == nil || differing.many {
		f.index = newForkIndex(s)
	} else {
		f.index.advance(s, maps.Keys(differing.keys))
	}
	return s, f.index.freeze()
}

// show replaces the current snapshot by one that differs in some objects.
func (f *forks) show(current *atomic.Pointer[snapshot], s *snapshot, differing differences) {
	f.mu.Lock()
	defer f.mu.Unlock()
	current.Store(s)
	if f.differing.many = f.differing.many || differing.many; f.differing.many {
		f.differing.keys = nil
	}
	for key := range differing.keys {
		f.differing.add(key)
	}
}

// maxDiffering is the number of differing objects above which the index is rebuilt.
const maxDiffering = 4096

// differences are the objects recorded since a snapshot.
type differences struct {
	keys map[api.Key]struct{}
	many bool // more than are listed
}

// add adds an object.
func (d *differences) add(key api.Key) {
	switch {
	case d.many:
	case len(d.keys) == maxDiffering:
		d.keys, d.many = nil, true
	case d.keys == nil:
		d.keys = map[api.Key]struct{}{key: {}}
	default:
		d.keys[key] = struct{}{}
	}
}

// take returns the differences and resets them.
func (d *differences) take() differences {
	taken := *d
	*d = differences{}
	return taken
}
