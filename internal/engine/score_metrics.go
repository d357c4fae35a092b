package engine

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

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

func (weightedMean) Score(f *Fleet, q *Query, row int, current bool) float64 {
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
	return (r.sumProducts + s) / (r.sumWeights + s)
}

func (weightedMean) Parts(f *Fleet, q *Query, row int, current bool) []api.ScorePart {
	r := f.rows[row]
	sum := 0.0
	if f.scored.Has(row) {
		sum = r.sumWeights
	}
	parts := make([]api.ScorePart, 0, len(r.metrics)+1)
	sticky := current && q.stickiness > 0
	total := sum
	if sticky {
		total += q.stickiness
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
				Share: m.weight * s.normalized / total,
			})
		}
	}
	if sticky {
		share := q.stickiness / total
		if sum == 0 {
			share = q.stickiness // the score of a cluster without metrics is s itself
		}
		parts = append(parts, api.ScorePart{Name: "stickiness", Value: 1, Weight: q.stickiness, Share: share})
	}
	return parts
}
