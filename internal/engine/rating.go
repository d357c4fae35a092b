package engine

// Rating is one look at the fleet to rate clusters: all that scorers see besides
// what they are made of.
type Rating struct {
	Look
	by      *scoring
	ranking *Ranking // nil: nothing is known of the scores yet
	// candidates are the rows a relative ranking has; nil where it has all.
	candidates Bitmap
	spans      []span // of what candidates are compared by
	// What others decided, without the present decision itself.
	seen seen
	mine Bitmap // rows of the present decision, where its own use matters
	left []span // of what reservations leave; nil where nothing asks
	// settled: the decision answers its spec, and a wish to be elsewhere moves
	// nothing.
	settled bool
	figures []figures // by term of a policy, once resolved
}

// see takes in what others decided, for a query whose own present decision has some
// rows.
func (r *Rating) see(load *Load, present []int) {
	reads := r.by.traits.Reads
	if reads.Any(Chosen) {
		r.seen = load.without(present, r.fleet.Slots())
	}
	if reads.Any(Reserved) && len(present) > 0 {
		r.mine = newBitmap(r.fleet.Slots())
		for _, row := range present {
			r.mine.set(row)
		}
	}
}

// base is Own of a row outside of the decision, from the ranking where that has it.
// The ranking of a relative scorer has only candidates; another has every cluster.
func (r *Rating) base(row int) float64 {
	if k := r.ranking; k != nil && row < len(k.score) && (r.candidates == nil || r.candidates.Has(row)) {
		return k.score[row]
	}
	return r.by.ranks.Base(r, row)
}

// ofCount is what the decisions of others add to the score of any outsider that some
// number of them chose; ok is false where more than the number counts.
func (r *Rating) ofCount(count int32) (add float64, ok bool) {
	if r.by.minds == nil {
		return 0, true
	}
	return r.by.minds.OfCount(r, count)
}

// mostOfOthers is the most that the decisions of others add to the score of any
// outsider.
func (r *Rating) mostOfOthers() float64 {
	if r.by.minds == nil {
		return 0
	}
	return r.by.minds.Most(r)
}

// measure finds the spans of what candidates are compared by.
func (r *Rating) measure(candidates Bitmap) []span {
	spans := make([]span, r.by.traits.Spans)
	candidates.each(func(row int) { r.by.ranks.Cover(r, spans, row) })
	return spans
}

// measureLeft finds the spans of what reservations leave to compare by, over the
// clusters of a mask and the present ones.
func (r *Rating) measureLeft(mask Bitmap, present []int) {
	if r.by.minds == nil || !r.by.traits.Reads.Any(Reserved) {
		return
	}
	r.left = make([]span, r.by.traits.Spans)
	mask.each(func(row int) { r.by.minds.CoverLeft(r, r.left, row) })
	for _, row := range present {
		r.by.minds.CoverLeft(r, r.left, row)
	}
}
