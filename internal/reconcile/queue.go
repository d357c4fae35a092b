package reconcile

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// decision is something that is decided: the clusters of a placement, the binding of a workload,
// the host of a guest.
type decision interface {
	kind() decidedKind
	key() api.Key
	// stored returns the object as it was last applied, and result the same with its status as last
	// decided.
	stored() api.Object
	result() api.Object
	revision() int64
	// part lays the decision over the status as it is stored, where others write the rest of
	// it; nil where all of it is decided.
	part() func(stored api.Object)
	// wants reports whether it did not get what it wants.
	wants() bool
	queued() *queueEntry
	appointee
}

// queueEntry is the queue's state of a decision.
type queueEntry struct {
	at     time.Time // when it becomes stale through the passing of time; zero = never
	rounds rounds
	place  place
	// answered is the version of the object that the decision answers, if it was written since.
	answered api.Object
	stale    bool
	gone     bool // its object is gone
}

// place is the position of a decision in the last large batch that was sorted; zero if there is
// none since the inputs of its turn changed. Sorting a hundred thousand decisions by name costs as
// much as deciding a quarter of them.
type place struct{ batch, at int32 }

// largeBatch is the size from which places are kept.
const largeBatch = 1000

// rewritten notes the version of an object that its decision answers, before another one is applied.
// observed is the generation that the decision answers.
func (t *queueEntry) rewritten(object api.Object, observed int64) {
	if object.Meta().Generation == observed {
		t.answered = object
	}
}

func (t *queueEntry) queued() *queueEntry { return t }
func (t *queueEntry) instant() *time.Time { return &t.at }
func (t *queueEntry) over() bool          { return t.gone }

// queue holds the stale decisions, and those that become stale through the passing of time.
type queue struct {
	lanes  []lane // by rank of their kind
	agenda agenda[decision]
	sorted int32 // number of large batches sorted
}

// lane holds the stale decisions of one kind. They are made in rounds, in which each has its turn:
// one that becomes stale in a round is made in the same round if its turn is still to come. So it
// does not matter whether it was stale from the beginning, as everything is after a start: if it is
// evaluated before anything that affects it has changed, it stays as it is.
type lane struct {
	stale []decision // of the next round
	batch []decision // of this round, in the order of their turns
	made  int        // how many of the batch have had their turn
	added []decision // to this round; a heap
	now   decision   // whose turn it is; nil between rounds
}

func newQueue() queue { return queue{lanes: make([]lane, len(decidedKinds))} }

// mark marks a decision as stale.
func (q *queue) mark(d decision) {
	t := d.queued()
	if t.stale {
		return
	}
	t.stale = true
	k := d.kind()
	l := &q.lanes[k.rank()]
	if l.now != nil && k.compare(l.now, d) < 0 {
		heap.Push(turns{l, k}, d)
	} else {
		l.stale = append(l.stale, d)
	}
}

// turns are the decisions that were added to a round, as a heap.
type turns struct {
	*lane
	kind decidedKind
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t turns) Len() int           { return len(t.added) }
func (t turns) Less(i, j int) bool { return t.kind.compare(t.added[i], t.added[j]) < 0 }
func (t turns) Swap(i, j int)      { t.added[i], t.added[j] = t.added[j], t.added[i] }
func (t turns) Push(x any)         { t.added = append(t.added, x.(decision)) } //nolint:forcetypeassert // only mark pushes
func (t turns) Pop() any {
	last := len(t.added) - 1
	x := t.added[last]
	t.added[last] = nil
	t.added = t.added[:last]
	return x
}

// markDue marks the decisions whose time has come.
func (q *queue) markDue(now time.Time) {
	for _, d := range q.agenda.due(now) {
		q.mark(d)
	}
}

// len returns the number of stale decisions.
func (q *queue) len() int {
	n := 0
	for i := range q.lanes {
		n += len(q.lanes[i].stale)
	}
	return n
}

// has reports whether decisions of a kind are stale.
func (q *queue) has(k decidedKind) bool { return len(q.lanes[k.rank()].stale) > 0 }

// round yields the stale decisions of a kind at their turns. Each stays marked until its turn, so
// that earlier ones do not add it again.
func (q *queue) round(k decidedKind) iter.Seq[decision] {
	l := &q.lanes[k.rank()]
	return func(yield func(decision) bool) {
		l.batch, l.stale, l.made = l.stale, l.batch[:0], 0
		q.sort(k, l.batch)
		defer l.end()
		for l.next(k) {
			l.now.queued().stale = false
			if !yield(l.now) {
				return
			}
		}
	}
}

// next moves on to the next turn of a round, and reports whether there is one.
func (l *lane) next(k decidedKind) bool {
	switch {
	case len(l.added) > 0 && (l.made == len(l.batch) || k.compare(l.added[0], l.batch[l.made]) < 0):
		l.now, _ = heap.Pop(turns{l, k}).(decision)
	case l.made < len(l.batch):
		l.now = l.batch[l.made]
		l.made++
	default:
		return false
	}
	return true
}

// end ends a round. The memory of the batch is reused.
func (l *lane) end() {
	clear(l.batch)
	l.batch, l.now = l.batch[:0], nil
}

// sort sorts a batch by the turns of a kind.
func (q *queue) sort(k decidedKind, batch []decision) {
	if len(batch) < largeBatch {
		slices.SortFunc(batch, k.compare)
		return
	}
	first := batch[0].queued().place.batch
	if first != 0 && !slices.ContainsFunc(batch, func(d decision) bool { return d.queued().place.batch != first }) {
		slices.SortFunc(batch, func(a, b decision) int { return cmp.Compare(a.queued().place.at, b.queued().place.at) })
		return
	}
	slices.SortFunc(batch, k.compare)
	q.sorted++
	for i, d := range batch {
		d.queued().place = place{q.sorted, int32(i)}
	}
}

// maxRounds is how often a decision is made in one pass. It is made again if reservations changed
// in the pass affect it.
const maxRounds = 4

// rounds counts how often a decision was made in a pass.
type rounds struct{ pass, made int32 }

// another reports whether it may be made once more in a pass.
func (r *rounds) another(pass int) bool {
	if r.pass != int32(pass) {
		r.pass, r.made = int32(pass), 0
	}
	r.made++
	return r.made <= maxRounds
}

// agenda holds the times at which decisions or views must be evaluated again. An entry is void if
// it differs from the current time of its element.
type agenda[T appointee] []appointment[T]

type appointment[T appointee] struct {
	at   time.Time
	with T
}

// appointee is something that must be evaluated again.
type appointee interface {
	instant() *time.Time // when that is, zero for never
	over() bool          // it no longer exists
}

func (a *appointment[T]) void() bool { return !a.with.instant().Equal(a.at) || a.with.over() }

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (a *agenda[T]) Len() int           { return len(*a) }
func (a *agenda[T]) Less(i, j int) bool { return (*a)[i].at.Before((*a)[j].at) }
func (a *agenda[T]) Swap(i, j int)      { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }
func (a *agenda[T]) Push(x any)         { *a = append(*a, x.(appointment[T])) } //nolint:forcetypeassert // only set pushes
func (a *agenda[T]) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = appointment[T]{}
	*a = (*a)[:last]
	return x
}

// set sets the time of an element; zero means none.
func (a *agenda[T]) set(with T, at time.Time) {
	own := with.instant()
	if own.Equal(at) {
		return
	}
	*own = at
	if at.IsZero() {
		return
	}
	if len(*a) == cap(*a) { // void entries must not make it grow
		*a = slices.DeleteFunc(*a, func(x appointment[T]) bool { return x.void() })
		heap.Init(a)
		*a = slices.Grow(*a, len(*a)+1)
	}
	heap.Push(a, appointment[T]{at, with})
}

// next returns the earliest time, or zero.
func (a *agenda[T]) next() time.Time {
	for len(*a) > 0 {
		if first := &(*a)[0]; !first.void() {
			return first.at
		}
		heap.Pop(a)
	}
	return time.Time{}
}

// due removes and returns the elements whose time has come.
func (a *agenda[T]) due(now time.Time) []T {
	var out []T
	for {
		at := a.next()
		if at.IsZero() || at.After(now) {
			return out
		}
		with := (*a)[0].with
		heap.Pop(a)
		*with.instant() = time.Time{}
		out = append(out, with)
	}
}
