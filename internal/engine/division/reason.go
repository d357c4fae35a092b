package division

import (
	"fmt"
	"slices"
	"strings"
)

// Reason says briefly why a candidate got its replicas, or none.
func (r *Result) Reason(c *Candidate) string {
	i, ok := slices.BinarySearchFunc(r.Shares, c.Rank, func(s Share, rank int32) int { return int(s.Rank) - int(rank) })
	var n int64
	switch q := &r.request; {
	case ok && !q.Replicated:
		return "is chosen"
	case ok && q.Replicas == 0:
		return "is kept, with none of 0 replicas"
	case ok && q.Mode == Duplicate:
		return fmt.Sprintf("gets all %d replicas", q.Replicas)
	case ok:
		n = r.Shares[i].Replicas
	}
	if n == 0 {
		if why := r.whyNot(c); why != "" {
			return why
		}
	}
	return r.whyShare(c, n)
}

// whyNot says what prevents a candidate from getting anything. It returns "" if its claim is just
// too small.
func (r *Result) whyNot(c *Candidate) string {
	q := &r.request
	if why := r.whyUnusable(c); why != "" {
		return why
	}
	switch {
	case q.Replicated && q.Replicas == 0:
		return "no replicas are wanted"
	case len(r.Shares) == 0 && q.counted():
		if c.Free == Unknown {
			return "could take replicas"
		}
		return fmt.Sprintf("has room for %d of %d replicas", c.most(q), q.Replicas)
	case len(r.Shares) == 0:
		return "could be chosen"
	case r.unchanged:
		return "no replica has to move"
	}
	if why := r.whyNotChosen(c); why != "" {
		return why
	}
	if why := r.whyNoSite(c); why != "" {
		return why
	}
	switch {
	case q.divided() && r.kept > q.Replicas && c.Assigned > 0 && !q.anew():
		return fmt.Sprintf("its %d replicas are part of the surplus of %d", c.Assigned, r.kept-q.Replicas)
	case q.divided() && c.Tier > 0:
		return "the clusters before it have room enough"
	case q.Mode == Aggregate:
		return "fewer clusters have room enough"
	case q.divided() && c.Min > 0:
		return fmt.Sprintf("takes at least %d replicas, and fewer are left", c.Min)
	}
	return ""
}

// whyUnusable says why a candidate cannot be used.
func (r *Result) whyUnusable(c *Candidate) string {
	q := &r.request
	for i := range q.Constraints {
		if k := &q.Constraints[i]; k.Groups != nil && k.Groups.Of[c.Row] < 0 {
			return "has no " + k.By
		}
	}
	if !q.counted() || c.usable(q, r.weighted) {
		return ""
	}
	switch most := c.most(q); {
	case q.Mode == Static && r.weighted && c.Weight <= 0:
		return "has no weight"
	case c.Min > q.Replicas:
		return fmt.Sprintf("takes at least %d replicas of %d", c.Min, q.Replicas)
	case c.Max == most && c.Max < q.Replicas && c.Max > 0:
		return fmt.Sprintf("may have at most %d of %d replicas", c.Max, q.Replicas)
	case most == 0 || q.Mode == Duplicate:
		return fmt.Sprintf("is full: has room for %d of %d replicas", most, q.Replicas)
	default:
		return fmt.Sprintf("takes at least %d replicas, and has room for %d", c.Min, most)
	}
}

// whyNotChosen names the constraint that others meet without the candidate.
func (r *Result) whyNotChosen(c *Candidate) string {
	var one [1]int32
	for i, set := range r.groups {
		k := &r.request.Constraints[i]
		switch {
		case k.Groups == nil:
			if r.used >= k.Max {
				return fmt.Sprintf("max_groups %d of %s are chosen without it", k.Max, k.By)
			}
			continue
		case k.Min <= 1 && k.Max == Unlimited:
			continue
		}
		for _, id := range k.Groups.of(c.Row, &one) {
			if !set.has(id) {
				return fmt.Sprintf("%s %s is not among the %d chosen", k.By, k.Groups.Names[id], set.count())
			}
		}
	}
	return ""
}

// whyShare says how many replicas a candidate keeps and gets, and why.
func (r *Result) whyShare(c *Candidate, n int64) string {
	q := &r.request
	kept := int64(0)
	if !q.anew() {
		kept = min(c.Assigned, c.Max)
	}
	more := q.Replicas - r.kept
	var b strings.Builder
	switch {
	case more <= 0 && n == c.Assigned:
		fmt.Fprintf(&b, "keeps its %d of %d", n, q.Replicas)
	case more <= 0 && n < c.Assigned:
		fmt.Fprintf(&b, "keeps %d of its %d", n, c.Assigned)
		if more < 0 {
			fmt.Fprintf(&b, ": %d of all %d go", -more, r.kept)
		}
	case kept == 0 && r.kept == 0:
		fmt.Fprintf(&b, "%d of %d%s", n, q.Replicas, r.claim(c))
	case kept == 0:
		fmt.Fprintf(&b, "gets %d of %d new ones%s", n, max(more, n), r.claim(c))
	case n >= kept:
		fmt.Fprintf(&b, "keeps %d, gets %d of %d new ones%s", kept, n-kept, max(more, n-kept), r.claim(c))
	default:
		fmt.Fprintf(&b, "keeps %d of its %d", n, c.Assigned)
	}
	switch {
	case n == 0:
	case n == c.Max:
		fmt.Fprintf(&b, ", at most %d", c.Max)
	case n == c.Min:
		fmt.Fprintf(&b, ", at least %d", c.Min)
	case n == 1 && r.anchored && kept == 0:
		b.WriteString(", as min_groups asks for")
	case c.Free != Unknown && c.Free > 0 && n == c.Assigned+c.Free:
		b.WriteString(", and is full")
	}
	return b.String()
}

// claim says by what criterion new replicas are divided.
func (r *Result) claim(c *Candidate) string {
	q := &r.request
	switch {
	case q.Mode == Aggregate:
		return " on the fewest clusters with room"
	case q.Mode == Centralize:
		return " in the order of the scores"
	case q.Mode == Static && !r.weighted:
		return fmt.Sprintf(" by equal weights of %d", r.votes)
	case q.Mode == Static:
		return fmt.Sprintf(" by weight %d of %d", c.Weight, r.votes)
	case c.Free == Unknown:
		return ", with room for anything"
	}
	room := c.Free
	if q.Fresh {
		room += c.Assigned
	}
	return fmt.Sprintf(" by room for %d of %d", room, r.votes)
}
