package division

import "math/bits"

// claim is a party in an apportionment.
type claim struct {
	votes    int64
	replicas int64 // what it has; grows
	upper    int64 // the most it can have
	held     int64 // it has the better claim of equals to as many replicas as that
	rank     int32 // breaks ties
	place    int32 // whose claim it is
}

// open reports whether the claim can get a replica at all.
func (c *claim) open() bool { return c.votes > 0 && c.replicas < c.upper }

// precedes reports whether a gets a replica before b: by the method of Webster and
// Sainte-Laguë the larger of votes/(2·replicas+1) does. Of equals one that has fewer
// replicas than it holds does, then the one with fewer replicas, then the first by rank, or
// the last if descending.
func (a *claim) precedes(b *claim, descending bool) bool {
	ahi, alo := bits.Mul64(uint64(a.votes), uint64(2*b.replicas+1))
	bhi, blo := bits.Mul64(uint64(b.votes), uint64(2*a.replicas+1))
	switch {
	case ahi != bhi:
		return ahi > bhi
	case alo != blo:
		return alo > blo
	case a.replicas < a.held != (b.replicas < b.held):
		return a.replicas < a.held
	case a.replicas != b.replicas:
		return a.replicas < b.replicas
	}
	return (a.rank < b.rank) != descending
}

// apportion gives n more replicas to the claims, which it reorders. It returns how
// many are left when all that have votes are full.
func apportion(claims []claim, n int64, descending bool) int64 {
	n = apportionQuotas(claims, n)
	return apportionOneByOne(claims, n, descending)
}

// apportionQuotas gives away at once what is safe to give, so that about a replica
// per claim remains. It returns how many replicas are left.
//
// With a divisor d every claim would have round(votes/d) replicas: all whose quotient
// is at least d/2. As long as these are no more than there are replicas, all of them
// are among the best. Rounding adds at most half a replica a claim, so the divisor
// that would give away half a replica a claim less than there is cannot give too
// much. Claims that have more than that already neither give nor take; claims that
// are full leave something over, for another round.
func apportionQuotas(claims []claim, n int64) int64 {
	if n <= int64(len(claims)) {
		return n // one by one is as fast
	}
	for n > 0 {
		var votes, parties, total int64
		for i := range claims {
			if c := &claims[i]; c.open() {
				votes += c.votes
				parties++
				total += c.replicas
			}
		}
		if n <= parties {
			return n
		}
		total += n
		// Leave out the claims that are ahead of their quota. Each one makes
		// the quotas of the others smaller.
		for {
			scale := 2*total - parties
			if parties == 0 || scale <= 0 {
				return n
			}
			kept, keptVotes, keptParties := n, int64(0), int64(0)
			for i := range claims {
				if c := &claims[i]; c.open() && c.quota(scale, votes) >= c.replicas {
					kept += c.replicas
					keptVotes += c.votes
					keptParties++
				}
			}
			if keptParties == parties {
				break
			}
			votes, parties, total = keptVotes, keptParties, kept
		}
		scale, full, before := 2*total-parties, false, n
		for i := range claims {
			c := &claims[i]
			if !c.open() {
				continue
			}
			if q := min(c.quota(scale, votes), c.upper); q > c.replicas {
				n -= q - c.replicas
				c.replicas = q
				full = full || q == c.upper
			}
		}
		if !full || n == before {
			return n
		}
	}
	return n
}

// quota is round(votes/d), for the divisor d = 2·total/scale.
func (c *claim) quota(scale, total int64) int64 {
	hi, lo := bits.Mul64(uint64(c.votes), uint64(scale))
	lo, carry := bits.Add64(lo, uint64(total), 0)
	q, _ := bits.Div64(hi+carry, lo, 2*uint64(total))
	return int64(q)
}

// apportionOneByOne gives replicas to the first in turn, from a heap.
func apportionOneByOne(claims []claim, n int64, descending bool) int64 {
	open := 0
	for i := range claims {
		if claims[i].open() {
			if open < i {
				claims[open], claims[i] = claims[i], claims[open]
			}
			open++
		}
	}
	heap := claims[:open]
	if n < int64(len(heap)) {
		// Nobody but the first n can get any.
		heap = firstClaims(heap, int(n), descending)
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i, descending, false)
	}
	for n > 0 && len(heap) > 0 {
		heap[0].replicas++
		n--
		if !heap[0].open() {
			last := len(heap) - 1
			heap[0], heap[last] = heap[last], heap[0]
			heap = heap[:last]
		}
		sink(heap, 0, descending, false)
	}
	return n
}

// firstClaims moves the n first claims to the front, in no order.
func firstClaims(claims []claim, n int, descending bool) []claim {
	if n <= 0 {
		return nil
	}
	heap := claims[:n]
	for i := n/2 - 1; i >= 0; i-- {
		sink(heap, i, descending, true)
	}
	for i := n; i < len(claims); i++ {
		if claims[i].precedes(&heap[0], descending) {
			heap[0], claims[i] = claims[i], heap[0]
			sink(heap, 0, descending, true)
		}
	}
	return heap
}

// sink restores the heap below i, with the first claim on top, or the last one.
func sink(heap []claim, i int, descending, lastOnTop bool) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if right := child + 1; right < len(heap) && heap[right].precedes(&heap[child], descending) != lastOnTop {
			child = right
		}
		if heap[child].precedes(&heap[i], descending) == lastOnTop {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
