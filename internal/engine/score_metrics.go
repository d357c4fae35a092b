package engine

import (
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// weightedMean is the metrics strategy: the mean of a cluster's normalised
// metrics, weighted as the cluster declares, with stickiness s as one more
// metric of value 1 on the clusters of the present decision:
//
//	current    (Σ w·m + s) / (Σ w + s)
//	elsewhere   Σ w·m / Σ w
//	no metrics  s on the current cluster, 0 elsewhere
//
// Example: metrics 0.9 and 0.1 with weights 1 and 10 score 1.9/11 = 0.1727;
// with s = 0.1 on the current cluster 2.0/11.1 = 0.1802.
// (spec/krake-scheduling.rst, Scheduling of Applications.)
type weightedMean struct{}

// Own implements Scorer. It is also the score: other placements do not matter.
func (weightedMean) Own(p *Pass, row int, current bool) float64 {
	f, q := p.fleet, p.query
	s := 0.0
	if current {
		s = q.stickiness
	}
	if !f.scored.Has(row) {
		return s
	}
	if s == 0 {
		return f.score[row]
	}
	r := f.rows[row]
	scale := scaleOf(r.sumWeights + s)
	return (r.sumProducts*scale + s*scale) / (r.sumWeights*scale + s*scale)
}

// scaleOf is what sums have to be scaled by to stay finite: 1, or a half where
// both addends are near the largest float. Either scales without rounding, so
// it does not matter whether a multiplication is fused with an addition.
func scaleOf(sum float64) float64 {
	if math.IsInf(sum, 0) {
		return 0.5
	}
	return 1
}

func (w weightedMean) Score(p *Pass, row int, current bool) float64 { return w.Own(p, row, current) }

func (weightedMean) Parts(p *Pass, row int, current bool) []api.ScorePart {
	f, q := p.fleet, p.query
	r := f.rows[row]
	sum := 0.0
	if f.scored.Has(row) {
		sum = r.sumWeights
	}
	parts := make([]api.ScorePart, 0, len(r.metrics)+1)
	sticky := current && q.stickiness > 0
	total, scale := sum, 1.0
	if sticky {
		scale = scaleOf(sum + q.stickiness)
		total = sum*scale + q.stickiness*scale
	}
	if sum > 0 {
		for _, m := range r.metrics {
			s := f.metrics[m.id]
			if !s.usable {
				continue
			}
			raw := s.raw
			parts = append(parts, api.ScorePart{
				Name: s.key.Path(), Raw: &raw, Value: s.normalized, Weight: m.weight,
				Share: m.weight * scale * s.normalized / total, Tells: &s.key,
			})
		}
	}
	if sticky {
		share := q.stickiness * scale / total
		if sum == 0 {
			share = q.stickiness // the score of a cluster without metrics is s itself
		}
		parts = append(parts, api.ScorePart{Name: "stickiness", Value: 1, Weight: q.stickiness, Share: share})
	}
	return parts
}
