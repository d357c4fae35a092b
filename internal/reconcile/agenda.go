package reconcile

import (
	"container/heap"
	"time"
)

// agenda holds the instants at which a placement has to be looked at again. An
// entry that no longer equals the placement's own instant is void.
type agenda []appointment //nolint:recvcheck // as container/heap wants it

type appointment struct {
	at     time.Time
	placed *tracked
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(appointment)) } //nolint:forcetypeassert // only add pushes
func (a *agenda) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

// set makes at the placement's instant; zero is none.
func (a *agenda) set(p *tracked, at time.Time) {
	if p.at.Equal(at) {
		return
	}
	p.at = at
	if !at.IsZero() {
		heap.Push(a, appointment{at, p})
	}
}

// next is the earliest instant, zero if there is none.
func (a *agenda) next() time.Time {
	for len(*a) > 0 {
		first := (*a)[0]
		if first.placed.at.Equal(first.at) && !first.placed.gone {
			return first.at
		}
		heap.Pop(a)
	}
	return time.Time{}
}

// due removes and returns the placements whose instant has come.
func (a *agenda) due(now time.Time) []*tracked {
	var out []*tracked
	for {
		at := a.next()
		if at.IsZero() || at.After(now) {
			return out
		}
		p := (*a)[0].placed
		heap.Pop(a)
		p.at = time.Time{}
		out = append(out, p)
	}
}
