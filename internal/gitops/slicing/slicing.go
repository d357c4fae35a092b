// Package slicing divides the clusters of a decision among objects of limited size, and says in
// which order to write them.
//
// Whoever watches the objects sees the clusters of all of them together. At no moment may a cluster
// be missing that is chosen before and after, and clusters are added before others are removed. So
// a cluster keeps its slice while that is possible; where it is not, it is in two of them for a
// moment.
package slicing

import (
	"cmp"
	"slices"
)

// most is the largest number of clusters in a slice.
const most = 100

// Group is what the clusters of a slice have in common: a decision group.
type Group struct {
	Index int64
	Name  string
}

// Part is the clusters of one group, best first.
type Part struct {
	Group    Group
	Clusters []string
}

// Slice is an object with a part of a decision.
type Slice struct {
	// Number identifies the slice among those of the decision. The first is 1.
	Number   int
	Group    Group
	Clusters []string
	// Hidden slices are not complete: nobody sees their clusters yet.
	Hidden bool
}

// Verb says what to do with a slice.
type Verb int

const (
	// Create makes a slice.
	Create Verb = iota
	// Write replaces the clusters of a slice.
	Write
	// Delete removes a slice.
	Delete
)

// Step is the writing of one slice. The slice is as it is to be afterwards; with Delete, only its
// number counts.
type Step struct {
	Verb Verb
	Slice
}

// Steps returns how to get from the present slices to a decision, in order; none if the slices are
// the decision already. Each cluster is in one part. Without parts, all slices are deleted; an empty
// part is a slice without clusters.
//
// After the last step, Steps must be called again: to use fewer slices, it may first have to make
// room. After a step that failed, it must be called with what is present then.
func Steps(present []Slice, parts []Part) []Step {
	p := newPlan(present, parts)
	p.keep()
	p.add()
	p.compact()
	return p.steps()
}

// planned is what becomes of a slice.
type planned struct {
	now    *Slice // nil if it is made
	group  Group
	number int
	// stays and added are the clusters that it has in the end. leaving are those that it keeps until
	// they are in another slice.
	stays, added, leaving []string
	surplus               bool
}

// room returns how many clusters can be added.
func (s *planned) room() int { return most - len(s.stays) - len(s.added) - len(s.leaving) }

type plan struct {
	parts  []Part
	slices []*planned     // by number
	part   map[string]int // of each chosen cluster
	rank   map[string]int
	seen   map[string]bool // clusters that are in a slice now
	placed map[string]bool // clusters that have a slice in the end
}

func newPlan(present []Slice, parts []Part) *plan {
	p := &plan{parts: parts, part: map[string]int{}, rank: map[string]int{}, seen: map[string]bool{}, placed: map[string]bool{}}
	for i, part := range parts {
		for rank, cluster := range part.Clusters {
			p.part[cluster], p.rank[cluster] = i, rank
		}
	}
	for i := range present {
		now := &present[i]
		p.slices = append(p.slices, &planned{now: now, group: now.Group, number: now.Number, surplus: true})
		if !now.Hidden {
			for _, cluster := range now.Clusters {
				p.seen[cluster] = true
			}
		}
	}
	p.sort()
	return p
}

func (p *plan) sort() {
	slices.SortFunc(p.slices, func(a, b *planned) int { return cmp.Compare(a.number, b.number) })
}

// needed returns how many slices a part needs.
func (p *plan) needed(i int) int { return max(1, (len(p.parts[i].Clusters)+most-1)/most) }

// keep leaves each cluster in the slice in which it is, if that is of its part, and makes the slices
// that are missing.
func (p *plan) keep() {
	for i := range p.parts {
		kept := 0
		for _, s := range p.slices {
			if s.group == p.parts[i].Group && kept < p.needed(i) && (len(p.parts) > 1 || s.number <= p.needed(i)) {
				s.surplus, kept = false, kept+1
			}
		}
		for number := 1; kept < p.needed(i); number++ {
			if !slices.ContainsFunc(p.slices, func(s *planned) bool { return s.number == number }) {
				p.slices = append(p.slices, &planned{group: p.parts[i].Group, number: number})
				kept++
			}
		}
		p.sort()
	}
	for _, s := range p.slices {
		if s.now == nil || s.now.Hidden {
			continue
		}
		for _, cluster := range s.now.Clusters {
			switch i, chosen := p.part[cluster]; {
			case !chosen:
			case p.parts[i].Group == s.group && !p.placed[cluster]:
				s.stays = append(s.stays, cluster)
				p.placed[cluster] = true
			default:
				s.leaving = append(s.leaving, cluster)
			}
		}
	}
}

// add gives each cluster that has no slice one of its part with room, if there is any. Clusters for
// which room has yet to be made get a further slice, for a time.
func (p *plan) add() {
	for i, part := range p.parts {
		for _, cluster := range part.Clusters {
			if !p.placed[cluster] {
				p.place(cluster, i)
			}
		}
	}
}

func (p *plan) place(cluster string, part int) {
	group := p.parts[part].Group
	for _, s := range p.slices {
		unseen := s.now != nil && s.now.Hidden && s.surplus // it is about to be deleted
		if s.group == group && !unseen && s.room() > 0 {
			s.added = append(s.added, cluster)
			p.placed[cluster] = true
			return
		}
	}
	number := 1
	for slices.ContainsFunc(p.slices, func(s *planned) bool { return s.number == number }) {
		number++
	}
	p.slices = append(p.slices, &planned{group: group, number: number, added: []string{cluster}, surplus: true})
	p.placed[cluster] = true
	p.sort()
}

// compact empties slices that are more than a part needs, as far as the others have room.
func (p *plan) compact() {
	for _, from := range p.slices {
		if !from.surplus {
			continue
		}
		stays := from.stays
		from.stays = nil
		for _, cluster := range stays {
			to := slices.IndexFunc(p.slices, func(s *planned) bool { return !s.surplus && s.group == from.group && s.room() > 0 })
			if to < 0 {
				from.stays = append(from.stays, cluster)
				continue
			}
			p.slices[to].added = append(p.slices[to].added, cluster)
			from.leaving = append(from.leaving, cluster)
		}
	}
}

// steps returns the writes: first those that add clusters, and of these first the ones that remove
// fewer than they add; then those that only remove; then deletions.
func (p *plan) steps() []Step {
	type weighed struct {
		Step
		gain int // clusters that appear, less those that disappear
	}
	var adding []weighed
	var removing, deleting []Step
	for _, s := range p.slices {
		final := p.inOrder(s.stays, s.added)
		gain, held := 0, 0
		for _, cluster := range s.added {
			if !p.seen[cluster] {
				gain++
			}
		}
		if s.now != nil && !s.now.Hidden {
			held = len(s.now.Clusters)
			gain -= held - len(s.stays) - len(s.leaving)
		}
		step := Step{Verb: Write, Slice: Slice{Number: s.number, Group: s.group, Clusters: p.inOrder(s.stays, s.added, s.leaving)}}
		switch {
		case s.now == nil:
			step.Verb = Create
			adding = append(adding, weighed{step, gain})
			continue
		case s.surplus && len(final) == 0:
			deleting = append(deleting, Step{Verb: Delete, Slice: Slice{Number: s.number}})
			continue
		case s.now.Hidden || len(s.added) > 0:
			adding = append(adding, weighed{step, gain})
		}
		same := slices.Equal(s.now.Clusters, final)
		if len(s.added) > 0 || s.now.Hidden {
			same = len(s.leaving) == 0
		}
		if !same {
			step.Clusters = final
			removing = append(removing, step)
		}
	}
	slices.SortStableFunc(adding, func(a, b weighed) int { return -cmp.Compare(min(a.gain, 0), min(b.gain, 0)) })
	all := make([]Step, 0, len(adding)+len(removing)+len(deleting))
	for _, a := range adding {
		all = append(all, a.Step)
	}
	return append(append(all, removing...), deleting...)
}

// inOrder returns clusters with the best first.
func (p *plan) inOrder(parts ...[]string) []string {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.part[a], p.part[b]), cmp.Compare(p.rank[a], p.rank[b]))
	})
	return all
}
