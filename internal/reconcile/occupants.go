package reconcile

import "iter"

// occupants are who has something in a place, by the name of the place: placements on
// the clusters that they chose, workloads on those that they run on or are leaving,
// guests on their hosts.
type occupants[D member] map[string]map[D]struct{}

// move keeps them in step with where one is: before it was in some places, now it is in
// others. A place may be named twice.
func (o occupants[D]) move(d D, before, now iter.Seq[string]) {
	for place := range before {
		drop(o, place, d)
	}
	for place := range now {
		add(o, place, d)
	}
}

// has reports whether one is in a place.
func (o occupants[D]) has(place string, d D) bool {
	_, in := o[place][d]
	return in
}

// wake has all in a place decided again.
func (o occupants[D]) wake(q *queue, place string) {
	for d := range o[place] {
		q.mark(d)
	}
}

// inPlace is where a guest is: on a host, or nowhere.
func inPlace(host string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if host != "" {
			yield(host)
		}
	}
}

// nowhere is no place.
func nowhere(func(string) bool) {}
