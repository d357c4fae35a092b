package reconcile

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// decision is what is decided: the clusters of a placement, the binding of a
// workload, the host of something that is created on one.
type decision interface {
	kind() decidedKind
	key() api.Key
	// stored is the object as it was taken in last, result the same with its status as
	// last decided, and revision that of the spec that was decided.
	stored() api.Object
	result() api.Object
	revision() int64
	// part lays the decision over the status as it is stored, where others write the rest of
	// it; nil where all of it is decided.
	part() func(stored api.Object)
	// wants reports whether it did not get what it wants.
	wants() bool
	queued() *turn
	appointee
}

// turn is what the queue keeps of a decision.
type turn struct {
	at     time.Time // when time alone makes it stale; zero = never
	rounds rounds
	place  place
	stale  bool
	gone   bool // with its object
}

// place is where a decision stood in a large batch that was sorted; zero where it was
// in none since what its turn depends on was taken in. To sort a hundred thousand by
// their names costs as much as to decide a quarter of them.
type place struct{ batch, at int32 }

// largeBatch is the size from which places are kept.
const largeBatch = 1000

func (t *turn) queued() *turn       { return t }
func (t *turn) instant() *time.Time { return &t.at }
func (t *turn) over() bool          { return t.gone }

// queue holds the decisions that are to be made again: those that are stale, and
// those that time alone makes so.
type queue struct {
	stale  [][]decision // by rank of their kind
	agenda agenda[decision]
	sorted int32 // how many large batches were
}

func newQueue() queue { return queue{stale: make([][]decision, len(decidedKinds))} }

// mark has a decision made again.
func (q *queue) mark(d decision) {
	if t := d.queued(); !t.stale {
		t.stale = true
		rank := d.kind().rank()
		q.stale[rank] = append(q.stale[rank], d)
	}
}

// markDue marks those whose instant has come.
func (q *queue) markDue(now time.Time) {
	for _, d := range q.agenda.due(now) {
		q.mark(d)
	}
}

// done takes back a batch that was taken, for those that are stale next.
func (q *queue) done(k decidedKind, batch []decision) {
	if q.stale[k.rank()] == nil {
		clear(batch)
		q.stale[k.rank()] = batch[:0]
	}
}

// len is how many decisions are stale.
func (q *queue) len() int {
	n := 0
	for _, lane := range q.stale {
		n += len(lane)
	}
	return n
}

// has reports whether decisions of a kind are stale.
func (q *queue) has(k decidedKind) bool { return len(q.stale[k.rank()]) > 0 }

// take returns the stale decisions of a kind in the order in which they are made.
// Each stays marked until its turn, so that those before it do not add it again.
func (q *queue) take(k decidedKind) []decision {
	batch := q.stale[k.rank()]
	q.stale[k.rank()] = nil
	q.sort(k, batch)
	return batch
}

// sort puts a batch into the order of the turns of a kind.
func (q *queue) sort(k decidedKind, batch []decision) {
	if len(batch) < largeBatch {
		k.sort(batch)
		return
	}
	first := batch[0].queued().place.batch
	if first != 0 && !slices.ContainsFunc(batch, func(d decision) bool { return d.queued().place.batch != first }) {
		slices.SortFunc(batch, func(a, b decision) int { return cmp.Compare(a.queued().place.at, b.queued().place.at) })
		return
	}
	k.sort(batch)
	q.sorted++
	for i, d := range batch {
		d.queued().place = place{q.sorted, int32(i)}
	}
}

// maxRounds is how often a decision is made in one pass. A second time is due
// when a reservation taken or freed in the pass concerns it.
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

// agenda holds the instants at which decisions, or views, have to be looked at again.
// An entry that no longer equals the instant of its own is void.
type agenda[T appointee] []appointment[T]

type appointment[T appointee] struct {
	at   time.Time
	with T
}

// appointee is what has to be looked at again.
type appointee interface {
	instant() *time.Time // when that is, zero for never
	over() bool          // it is no more
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

// set makes at the instant of one; zero is none.
func (a *agenda[T]) set(with T, at time.Time) {
	own := with.instant()
	if own.Equal(at) {
		return
	}
	*own = at
	if at.IsZero() {
		return
	}
	if len(*a) == cap(*a) { // it is not to grow by what is void
		*a = slices.DeleteFunc(*a, func(x appointment[T]) bool { return x.void() })
		heap.Init(a)
		*a = slices.Grow(*a, len(*a)+1)
	}
	heap.Push(a, appointment[T]{at, with})
}

// next is the earliest instant, zero if there is none.
func (a *agenda[T]) next() time.Time {
	for len(*a) > 0 {
		if first := &(*a)[0]; !first.void() {
			return first.at
		}
		heap.Pop(a)
	}
	return time.Time{}
}

// due removes and returns those whose instant has come.
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
