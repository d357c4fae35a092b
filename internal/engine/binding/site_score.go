package binding

import (
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// siteScorer rates a site for an allocation, from 0 to 100. A site's score is the sum over all
// scorers, each with weight 1.
type siteScorer interface {
	// Name returns the scorer's name in explanations.
	Name() string
	// Reads returns the aspects of a site that the score depends on.
	Reads() columns.Aspects
	// Rate returns the score and the raw value that it is computed from.
	Rate(s *siteSeen) (score, raw int64)
}

// siteScorers lists all scorers of sites. To add one, add its file and a line here.
var siteScorers = []siteScorer{
	stackAffinity{},
	flavorPosition{},
	leastAllocated{},
}

// siteSeen is what scorers see of a site. What the workload itself holds there is not counted, so
// that a site scores the same before and after it is chosen.
type siteSeen struct {
	position   int32 // of the flavor that replicas would have; -1 = none
	allocation *allocation
	affine     int // workloads of the affinity that run there
	apart      int // workloads of the anti-affinity that run there
	amounts    [len(ratedAmounts)]siteAmount
}

// siteAmount is the capacity of a resource, and how much of it is free.
type siteAmount struct{ capacity, free amount.Milli }

// siteRating rates the sites of one workload.
type siteRating struct {
	b             *Binder
	affine, apart []int // number of workloads by row; nil if it does not matter
	seen          siteSeen
	left          []siteColumns // of the resources that sites have, few of which differ
}

// siteColumns holds the columns of one resource.
type siteColumns struct {
	resource              string
	uncommitted, reserved *amount.Column
}

// columns returns the columns of a resource.
func (r *siteRating) columns(resource string) *siteColumns {
	for i := range r.left {
		if r.left[i].resource == resource {
			return &r.left[i]
		}
	}
	r.left = append(r.left, siteColumns{resource, r.b.fleet.Uncommitted()[resource], r.b.others.Reserved.Column(resource)})
	return &r.left[len(r.left)-1]
}

func (b *Binder) siteRating() *siteRating {
	r := &siteRating{b: b, left: make([]siteColumns, 0, 4)}
	r.affine = r.count(b.p.allocation.affine)
	r.apart = r.count(b.p.allocation.apart)
	return r
}

// count counts workloads by row.
func (r *siteRating) count(workloads []api.Key) []int {
	if len(workloads) == 0 || r.b.others.Bindings == nil {
		return nil
	}
	counts := make([]int, r.b.fleet.Slots())
	for _, key := range workloads {
		if key == r.b.p.key {
			continue
		}
		for _, c := range r.b.others.Bindings.ClustersOf(key) {
			if row, ok := r.b.fleet.Row(c.Name); ok {
				counts[row]++
			}
		}
	}
	return counts
}

// see collects the input of scorers.
func (r *siteRating) see(c *division.Candidate, position int32) *siteSeen {
	row, s := int(c.Row), &r.seen
	*s = siteSeen{position: position, allocation: r.b.p.allocation}
	if r.affine != nil {
		s.affine = r.affine[row]
	}
	if r.apart != nil {
		s.apart = r.apart[row]
	}
	var own *ledger.Hold
	if c.Present {
		own, _ = r.b.others.Reserved.Held(r.b.p.key, r.b.fleet.Name(row))
	}
	for _, a := range r.b.siteSize(row) {
		left := r.columns(a.resource)
		free := left.uncommitted.At(row).Minus(ledger.At(left.reserved, row))
		if own != nil {
			free = free.Plus(own.Of(a.resource))
		}
		to := &s.amounts[a.rated]
		to.capacity = to.capacity.Plus(a.capacity)
		to.free = to.free.Plus(amount.Min(free.Rest(), a.capacity))
	}
	return s
}

// score returns the sum of all scores.
func (r *siteRating) score(c *division.Candidate, position int32) int64 {
	seen, sum := r.see(c, position), int64(0)
	for _, scorer := range siteScorers {
		score, _ := scorer.Rate(seen)
		sum += score
	}
	return sum
}

// parts returns the parts of the score for explanations.
func (r *siteRating) parts(c *division.Candidate, position int32) []api.ScorePart {
	seen := r.see(c, position)
	parts := make([]api.ScorePart, 0, len(siteScorers))
	for _, scorer := range siteScorers {
		score, raw := scorer.Rate(seen)
		figure := float64(raw)
		parts = append(parts, api.ScorePart{Name: scorer.Name(), Raw: &figure, Value: float64(score), Weight: 1, Share: float64(score)})
	}
	return parts
}

// siteSized caches a cluster's amounts of the rated resources as long as the cluster is the same.
type siteSized struct {
	cluster *api.Cluster
	amounts []sizedAmount
}

type sizedAmount struct {
	resource string
	rated    int // index into ratedAmounts
	capacity amount.Milli
}

func (b *Binder) siteSize(row int) []sizedAmount {
	for len(b.sizes) <= row {
		b.sizes = append(b.sizes, siteSized{})
	}
	cluster, known := b.fleet.Cluster(row), &b.sizes[row]
	if known.cluster == cluster {
		return known.amounts
	}
	known.cluster, known.amounts = cluster, nil
	columns.ResourcesOf(cluster, func(resource string) {
		for i := range ratedAmounts {
			if name := ratedAmounts[i].resource; resource != name && !strings.HasPrefix(resource, name+"/") {
				continue
			}
			if milli, ok := columns.Amount(resource, cluster.Status.Allocatable, cluster.Spec.Allocatable); ok {
				known.amounts = append(known.amounts, sizedAmount{resource, i, milli})
			}
		}
	})
	return known.amounts
}
