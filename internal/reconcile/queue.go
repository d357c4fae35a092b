package reconcile

import (
	"cmp"
	"container/heap"
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
	// verdict returns a pointer to the status as last decided, which several may share.
	verdict() any
	revision() int64
	// part lays the decision over the status as it is stored, where others write the rest of
	// it; nil where all of it is decided.
	part() func(stored api.Object)
	// wants reports whether it did not get what it wants.
	wants() bool
	queued() *turn
	appointee
}

// turn is the queue's state of a decision.
type turn struct {
	at     time.Time // when it becomes stale through the passing of time; zero = never
	rounds rounds
	place  place
	stale  bool
	gone   bool // its object is gone
	// answered is the version of the object that the decision answers; nil if that is the present one,
	// or not known.
	answered api.Object
	// move is why the decision differs from the stored one; nil if it does not.
	move *move
	// carried is the move of a decision that was replaced by the stored one, and may be made again.
	carried *move
}

// move is why a decision differs from the one before, and when it was made.
type move struct {
	cause  *api.Cause
	margin *api.HistoryMargin
	at     time.Time
}

func newMove(cause *api.Cause, margin *api.HistoryMargin, at time.Time) *move {
	return &move{cause, margin, at}
}

// moves notes why a decision differs from the one before. Until it is written, the first reason
// counts.
func (t *turn) moves(cause *api.Cause, margin *api.HistoryMargin, at time.Time) {
	switch {
	case t.move != nil:
		t.move.at = at
	case t.carried != nil:
		t.move = newMove(t.carried.cause, t.carried.margin, at)
	default:
		t.move = newMove(cause, margin, at)
	}
}

// made notes that the decision was made for the present version of its object.
func (t *turn) made() { t.answered, t.carried = nil, nil }

// place is the position of a decision in the last large batch that was sorted; zero if there is
// none since the inputs of its turn changed. Sorting a hundred thousand decisions by name costs as
// much as deciding a quarter of them.
type place struct{ batch, at int32 }

// largeBatch is the size from which places are kept.
const largeBatch = 1000

func (t *turn) queued() *turn       { return t }
func (t *turn) instant() *time.Time { return &t.at }
func (t *turn) over() bool          { return t.gone }

// queue holds the stale decisions, and those that become stale through the passing of time.
type queue struct {
	stale  [][]decision // by rank of their kind
	agenda agenda[decision]
	sorted int32 // number of large batches sorted
}

func newQueue() queue { return queue{stale: make([][]decision, len(decidedKinds))} }

// mark marks a decision as stale.
func (q *queue) mark(d decision) {
	if t := d.queued(); !t.stale {
		t.stale = true
		rank := d.kind().rank()
		q.stale[rank] = append(q.stale[rank], d)
	}
}

// markDue marks the decisions whose time has come.
func (q *queue) markDue(now time.Time) {
	for _, d := range q.agenda.due(now) {
		q.mark(d)
	}
}

// done takes back a batch, whose memory is reused.
func (q *queue) done(k decidedKind, batch []decision) {
	if q.stale[k.rank()] == nil {
		clear(batch)
		q.stale[k.rank()] = batch[:0]
	}
}

// len returns the number of stale decisions.
func (q *queue) len() int {
	n := 0
	for _, lane := range q.stale {
		n += len(lane)
	}
	return n
}

// has reports whether decisions of a kind are stale.
func (q *queue) has(k decidedKind) bool { return len(q.stale[k.rank()]) > 0 }

// take returns the stale decisions of a kind in the order in which they are made. Each stays marked
// until its turn, so that earlier ones do not add it again.
func (q *queue) take(k decidedKind) []decision {
	batch := q.stale[k.rank()]
	q.stale[k.rank()] = nil
	q.sort(k, batch)
	return batch
}

// sort sorts a batch by the turns of a kind.
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
