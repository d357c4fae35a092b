package division

import (
	"errors"
	"slices"
)

// Divider divides replicas. It keeps scratch memory for the next division, so it must not be used
// concurrently. The zero value is ready to use.
//
// Its data is layered; each layer knows only the ones before it: the pool of places, the selection
// from it, the choice of groups, the choice as a whole, and the assignment of replicas. Sites are
// divided separately.
type Divider struct {
	assignment

	shed   int64 // replicas that were kept when a surplus was removed before the choice
	shares []Share
	sites  siteDivision
}

// Divide chooses among the candidates and divides the replicas among them. The result does not
// refer to the candidates or the divider. If it fails, the result has no shares but still has the
// reasons of candidates that cannot be used.
func (d *Divider) Divide(r *Request, candidates []Candidate) (Result, error) {
	res, err := d.divide(r, candidates)
	if err == nil && r.Mode == Static && r.counted() && (len(r.Constraints) > 0 || d.minima()) {
		d.settleStatic(r, candidates, &res)
	}
	return res, err
}

// maxSettling limits how often a division by static weights is repeated.
const maxSettling = 8

// settleStatic repeats the division until it is stable. Which clusters are chosen depends on which
// run replicas, and clusters that get none no longer do.
func (d *Divider) settleStatic(r *Request, candidates []Candidate, res *Result) {
	again := *r
	again.Fresh = false
	after := slices.Clone(candidates)
	for range maxSettling {
		for i := range after {
			c := &after[i]
			held := int64(0)
			at, chosen := slices.BinarySearchFunc(res.Shares, c.Rank, func(s Share, rank int32) int { return int(s.Rank) - int(rank) })
			if chosen {
				held = res.Shares[at].Replicas
			}
			if c.Free != Unknown {
				c.Free += c.Assigned - held
			}
			c.Assigned, c.Present = held, chosen
		}
		next, err := d.divide(&again, after)
		if err != nil || slices.Equal(next.Shares, res.Shares) {
			return
		}
		next.request = *r
		*res = next
	}
}

// divide makes a single division.
func (d *Divider) divide(r *Request, candidates []Candidate) (Result, error) {
	res := Result{request: *r}
	if len(candidates) == 0 {
		return res, &NoCandidatesError{}
	}
	if r.Mode == Centralize || r.Mode == Discrete {
		err := d.sites.divide(r, candidates, &res)
		return res, err
	}
	d.searchSteps = 0
	d.ceiling = [2]int64{Unlimited, Unlimited}
	d.gather(r, candidates)
	res.weighted = d.weighted
	if res.unchanged = d.unchanged(r); !res.unchanged {
		if err := noRoomToGrow(r, candidates); err != nil {
			return res, err
		}
		if len(d.places) == 0 {
			return res, d.noPlaces(r, candidates)
		}
		err := d.decideFirst(r, candidates)
		for range maxRelaxations {
			if err == nil || !d.minima() || !d.relax(r, candidates) {
				break
			}
			if d.decide(r) == nil {
				err = nil
			}
		}
		if err != nil && !d.decidePacked(r, candidates) {
			if err = d.decideFew(r, candidates, err); err != nil {
				return res, err
			}
		}
	}
	res.anchored = r.divided() && !res.unchanged && d.anchored
	if r.Mode == Static && r.counted() {
		res.Cramped = d.cramped(r, candidates)
	}
	d.emit(r, &res)
	if d.shed > 0 && !res.unchanged {
		res.kept = d.shed
	}
	return res, nil
}

// cramped reports whether a candidate takes all that it has room for, or cannot be used for lack of
// room.
func (d *Divider) cramped(r *Request, candidates []Candidate) bool {
	for i := range d.places {
		if p := &d.places[i]; p.replicas == p.most && p.most < r.Replicas {
			return true
		}
	}
	for i := range candidates {
		c := &candidates[i]
		if c.Free != Unknown && c.most(r) < max(c.Min, 1) && (c.Weight > 0 || !d.weighted) {
			return true
		}
	}
	return false
}

// decideFirst decides with all places; if there is a surplus of aggregated replicas, it first tries
// only the places that hold some.
func (d *Divider) decideFirst(r *Request, candidates []Candidate) error {
	d.shed = 0
	if d.surplus(r) {
		kept := d.kept
		d.onlyHolders(r)
		if d.decide(r) == nil {
			d.shed = kept
			return nil
		}
		d.gather(r, candidates)
	}
	return d.decide(r)
}

// decide chooses places and assigns their replicas.
func (d *Divider) decide(r *Request) error {
	if err := d.choose(r); err != nil {
		return err
	}
	if r.divided() {
		return d.assign(r)
	}
	switch {
	case r.counted():
		for i := range d.places {
			d.places[i].replicas = r.Replicas
		}
	case r.Replicated:
		d.rest(r)
	}
	return nil
}

// rest selects the places that a workload without replicas keeps: its current ones, or all that are
// chosen. Overflow tiers are not used without replicas.
func (d *Divider) rest(r *Request) {
	all := r.Empty || r.Bare && !slices.ContainsFunc(d.places, func(p place) bool { return p.present })
	for i := range d.places {
		p := &d.places[i]
		p.state = out
		if p.present || all && p.tier == 0 {
			p.state = chosen
		}
	}
	d.keepChosen()
}

// decidePacked decides with places whose lower bounds fit together, if leaving out those with the
// largest was not enough.
func (d *Divider) decidePacked(r *Request, candidates []Candidate) bool {
	for _, roomiest := range []bool{false, true} {
		d.ceiling = [2]int64{Unlimited, Unlimited}
		d.gather(r, candidates)
		if !r.divided() || !d.minima() {
			return false
		}
		if d.pack(r, roomiest) && d.decide(r) == nil {
			return true
		}
	}
	return false
}

// decideFew decides with no more clusters than replicas, so that each can have one, if the chosen
// clusters need more.
func (d *Divider) decideFew(r *Request, candidates []Candidate, err error) error {
	var spread *spreadError
	if !errors.As(err, &spread) || spread.replicas == 0 {
		return err
	}
	d.ceiling = [2]int64{Unlimited, Unlimited}
	d.gather(r, candidates)
	d.few = true
	defer func() { d.few = false }()
	if d.decide(r) == nil {
		return nil
	}
	return err
}

// maxRelaxations limits how often places are left out because of their lower bounds.
const maxRelaxations = 16

// relax rebuilds the places without those that have the largest lower bounds: first among those
// that hold no replicas, then among all. It reports whether any are left.
func (d *Divider) relax(r *Request, candidates []Candidate) bool {
	if d.largest[0] > 0 {
		d.ceiling[0] = d.largest[0] - 1
	} else {
		d.ceiling[1] = d.largest[1] - 1
	}
	d.gather(r, candidates)
	return len(d.places) > 0
}

// noRoomToGrow returns an error if a cluster that runs a copy has no room for a larger one: nothing is
// taken from it, and the workload waits.
func noRoomToGrow(r *Request, candidates []Candidate) error {
	if r.Mode != Duplicate || r.Fresh || !r.counted() {
		return nil
	}
	room := r.Replicas
	for i := range candidates {
		if c := &candidates[i]; c.Free != Unknown && c.Assigned > 0 && c.Assigned < r.Replicas {
			room = min(room, c.Assigned+c.Free)
		}
	}
	if room < r.Replicas {
		return &NoRoomError{Room: room, Wanted: r.Replicas}
	}
	return nil
}

// noPlaces returns an error that says why no candidate can be used.
func (d *Divider) noPlaces(r *Request, candidates []Candidate) error {
	var room int64
	least := int64(Unlimited)
	for i := range candidates {
		c := &candidates[i]
		if grouped(r.Constraints, c.Row) {
			room = max(room, c.most(r))
			least = min(least, c.Min)
		}
	}
	switch {
	case least == Unlimited:
		for i := range r.Constraints {
			if c := &r.Constraints[i]; c.Groups != nil {
				return &NoCandidatesError{by: c.By}
			}
		}
	case room > 0 && least > r.Replicas:
		return &tooFewReplicasError{replicas: r.Replicas, needed: least}
	}
	return &NoRoomError{Room: room, Wanted: r.Replicas}
}

// unchanged reports whether the current replicas are exactly those requested. If so, it sets the
// places to the present binding.
func (d *Divider) unchanged(r *Request) bool {
	if !r.divided() || r.anew() || d.kept != r.Replicas {
		return false
	}
	for i := range d.places {
		if p := &d.places[i]; p.kept > 0 && p.kept < p.least {
			return false
		}
	}
	clusters := int64(d.holders)
	for i := range r.Constraints {
		c := &r.Constraints[i]
		if c.Groups == nil {
			if clusters < c.Min || clusters > c.Max {
				return false
			}
			continue
		}
		var t tally
		t.reset(c)
		for j := range d.places {
			if p := &d.places[j]; p.kept > 0 {
				t.add(p.row)
			}
		}
		if !t.holds() {
			return false
		}
	}
	for i := range d.places {
		p := &d.places[i]
		p.state, p.replicas = out, p.kept
		if p.present {
			p.state = chosen
		}
	}
	d.keepChosen()
	return true
}
