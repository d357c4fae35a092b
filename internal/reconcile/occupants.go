package reconcile

import "iter"

// occupants are the decisions in a place, by name of the place: placements on the clusters that
// they chose, workloads on the clusters that they run on or are leaving, guests on their hosts.
type occupants[D member] map[string]map[D]struct{}

// move updates the index after a decision has moved between places. Places may be repeated.
func (o occupants[D]) move(d D, before, now iter.Seq[string]) {
	for place := range before {
		drop(o, place, d)
	}
	for place := range now {
		add(o, place, d)
	}
}

// has reports whether a decision is in a place.
func (o occupants[D]) has(place string, d D) bool {
	_, in := o[place][d]
	return in
}

// wake marks all decisions in a place as stale.
func (o occupants[D]) wake(q *queue, place string) {
	for d := range o[place] {
		q.mark(d)
	}
}

// inPlace yields the place of a guest: its host, or nothing.
func inPlace(host string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if host != "" {
			yield(host)
		}
	}
}

// nowhere yields no places.
func nowhere(func(string) bool) {}
