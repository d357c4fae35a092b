package binding

import (
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
)

func (a *allocation) direction(p *Propagation) string {
	wishes := p.spec.Allocation
	return fmt.Sprintf("%s %q %v %s %s", p.Groups[0].Query.Class, wishes.Flavors, wishes.Machines, wishes.LocationStrategy, wishes.RegionStrategy)
}

func (a *allocation) reading(yield func(part string, reads columns.Aspects) bool) {
	if len(a.further) > 0 && !yield("machines", columns.Flavors) {
		return
	}
	for _, scorer := range siteScorers {
		if !yield(scorer.Name(), scorer.Reads()) {
			return
		}
	}
}

func (a *allocation) inOneRegion() bool        { return a.alone }
func (a *allocation) asks(replicas int64) bool { return replicas > 0 }
func (a *allocation) takers() string           { return "the sites" }

func (a *allocation) divide(b *Binder, _ *AffinityGroup) (division.Result, error) {
	return b.trySites()
}

// complete records the flavors of the chosen sites.
func (a *allocation) complete(b *Binder) {
	b.out.flavors = make(map[int32]string, len(b.out.shares))
	for _, s := range b.out.shares {
		flavor := b.flavorOn(b.fleet.Name(int(s.Row)))
		if at := b.candidateAt(int(s.Row)); b.out.Complete && !b.out.frozen && at >= 0 {
			flavor = b.candidateFlavor(at)
		}
		b.out.flavors[s.Row] = flavor
	}
}

// rate adds the rating of a site.
func (a *allocation) rate(e *bindingExplained, c *division.Candidate, out *api.Candidate) {
	if e.rating == nil {
		e.rating = e.b.siteRating()
	}
	score := float64(c.Weight)
	out.Score, out.Scores = &score, e.rating.parts(c, e.b.positions[e.b.candidateAt(int(c.Row))])
}

// detail names the flavor that replicas have, or would have, on a site.
func (a *allocation) detail(e *bindingExplained, c *division.Candidate) string {
	if len(a.flavors) == 0 {
		return ""
	}
	flavor := e.b.candidateFlavor(e.b.candidateAt(int(c.Row)))
	_, chosen := slices.BinarySearchFunc(e.out.shares, c.Rank, func(s division.Share, rank int32) int { return int(s.Rank) - int(rank) })
	switch {
	case flavor == "":
		return "; no machine of any of the flavors is left"
	case chosen:
		return ", with flavor " + flavor
	}
	return "; replicas would have flavor " + flavor
}
