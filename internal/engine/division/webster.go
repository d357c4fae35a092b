package division

import "math/bits"

// party is a participant in an apportionment.
type party struct {
	votes    int64
	replicas int64 // current number; grows
	upper    int64 // maximum
	held     int64 // wins ties up to this number of replicas
	rank     int32 // breaks ties
	place    int32 // index of the place
}

// open reports whether the party can get another replica.
func (c *party) open() bool { return c.votes > 0 && c.replicas < c.upper }

// precedes reports whether a gets a replica before b. By the Webster (Sainte-Laguë) method, the
// larger value of votes/(2·replicas+1) wins. Ties go to a party that has fewer replicas than it
// held, then to the one with fewer replicas, then to the first by rank, or the last if descending.
func (a *party) precedes(b *party, descending bool) bool {
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

// apportion assigns n more replicas to the parties, which it reorders. It returns how many are left
// when all parties with votes are full.
func apportion(parties []party, n int64, descending bool) int64 {
	n = apportionQuotas(parties, n)
	return apportionOneByOne(parties, n, descending)
}

// apportionQuotas assigns in bulk what is safe, so that about one replica per party remains. It
// returns how many replicas are left.
//
// With a divisor d, every party would have round(votes/d) replicas: all whose quotient is at least
// d/2. As long as these are no more than the available replicas, all of them are among the best.
// Rounding adds at most half a replica per party, so a divisor that is computed for half a replica
// per party less than available cannot assign too much. Parties that already have more are left out
// of the computation; parties that are full leave a remainder for another round.
func apportionQuotas(parties []party, n int64) int64 {
	if n <= int64(len(parties)) {
		return n // one by one is as fast
	}
	for n > 0 {
		var votes, count, total int64
		for i := range parties {
			if c := &parties[i]; c.open() {
				votes += c.votes
				count++
				total += c.replicas
			}
		}
		if n <= count {
			return n
		}
		total += n
		// Leave out the parties that are ahead of their quota. Each one reduces the quotas of the
		// others.
		for {
			scale := 2*total - count
			if count == 0 || scale <= 0 {
				return n
			}
			kept, keptVotes, keptCount := n, int64(0), int64(0)
			for i := range parties {
				if c := &parties[i]; c.open() && c.quota(scale, votes) >= c.replicas {
					kept += c.replicas
					keptVotes += c.votes
					keptCount++
				}
			}
			if keptCount == count {
				break
			}
			votes, count, total = keptVotes, keptCount, kept
		}
		scale, full, before := 2*total-count, false, n
		for i := range parties {
			c := &parties[i]
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

// quota returns round(votes/d) for the divisor d = 2·total/scale.
func (c *party) quota(scale, total int64) int64 {
	hi, lo := bits.Mul64(uint64(c.votes), uint64(scale))
	lo, carry := bits.Add64(lo, uint64(total), 0)
	q, _ := bits.Div64(hi+carry, lo, 2*uint64(total))
	return int64(q)
}

// apportionOneByOne assigns replicas one at a time, using a heap.
func apportionOneByOne(parties []party, n int64, descending bool) int64 {
	open := 0
	for i := range parties {
		if parties[i].open() {
			if open < i {
				parties[open], parties[i] = parties[i], parties[open]
			}
			open++
		}
	}
	heap := parties[:open]
	if n < int64(len(heap)) {
		// Only the first n can get any.
		heap = firstParties(heap, int(n), descending)
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

// firstParties moves the first n parties to the front, unordered.
func firstParties(parties []party, n int, descending bool) []party {
	if n <= 0 {
		return nil
	}
	heap := parties[:n]
	for i := n/2 - 1; i >= 0; i-- {
		sink(heap, i, descending, true)
	}
	for i := n; i < len(parties); i++ {
		if parties[i].precedes(&heap[0], descending) {
			heap[0], parties[i] = parties[i], heap[0]
			sink(heap, 0, descending, true)
		}
	}
	return heap
}

// sink restores the heap below i, with the first party on top, or the last one.
func sink(heap []party, i int, descending, lastOnTop bool) {
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
