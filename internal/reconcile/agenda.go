package reconcile

import (
	"container/heap"
	"time"
)

// agenda holds the instants at which something has to be looked at again. An
// entry that no longer equals its owner's own instant is void.
type agenda[T appointee] []appointment[T]

// appointee is what an agenda is about: a pointer that holds its own instant.
type appointee interface {
	comparable
	// instant is where its instant is kept; zero = none.
	instant() *time.Time
	isGone() bool
}

type appointment[T appointee] struct {
	at   time.Time
	with T
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (a agenda[T]) Len() int           { return len(a) }
func (a agenda[T]) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda[T]) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda[T]) Push(x any)        { *a = append(*a, x.(appointment[T])) } //nolint:forcetypeassert // only set pushes
func (a *agenda[T]) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
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
	if !at.IsZero() {
		heap.Push(a, appointment[T]{at, with})
	}
}

// next is the earliest instant, zero if there is none.
func (a *agenda[T]) next() time.Time {
	for len(*a) > 0 {
		first := (*a)[0]
		if first.with.instant().Equal(first.at) && !first.with.isGone() {
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
