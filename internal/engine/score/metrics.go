package score

import (
	"math"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// weightedMean is the metrics strategy: the mean of a cluster's normalized metrics, weighted as the
// cluster declares. Clusters of the current decision have the stickiness s as an additional metric
// with value 1:
//
//	current    (Σ w·m + s) / (Σ w + s)
//	elsewhere   Σ w·m / Σ w
//	no metrics  s on the current cluster, 0 elsewhere
//
// Example: metrics 0.9 and 0.1 with weights 1 and 10 score 1.9/11 = 0.1727; with s = 0.1 on the
// current cluster 2.0/11.1 = 0.1802. (spec/krake-scheduling.rst, Scheduling of Applications.)
type weightedMean struct{ stickiness float64 }

// Unrated is the scoring of queries that only ask which clusters fit.
var Unrated = newScoring("", &weightedMean{})

// Shared instances of what most placements use.
var (
	loose = newScoring(api.StrategyMetrics, &weightedMean{})
	usual = newScoring(api.StrategyMetrics, &weightedMean{api.DefaultStickiness})
)

func newWeightedMean(_ string, spec *api.PlacementSpec) *Scoring {
	switch m := spec.Metrics; {
	case m == nil || m.Stickiness == nil || *m.Stickiness == 0:
		return loose
	case *m.Stickiness == api.DefaultStickiness:
		return usual
	default:
		return newScoring(api.StrategyMetrics, &weightedMean{*m.Stickiness})
	}
}

// Key implements scorer. Stickiness is not part of it, because it does not affect clusters outside
// a decision.
func (*weightedMean) Key(key.Writer) {}

// Traits implements scorer.
func (*weightedMean) Traits() Traits { return Traits{Reads: columns.MetricValues, Words: &ownWords} }

// Own implements scorer. It is also the score, because decisions of other placements do not matter.
func (w *weightedMean) Own(r *Rating, row int, current bool) float64 {
	f := r.Fleet
	s := 0.0
	if current {
		s = w.stickiness
	}
	if !f.Scored().Has(row) {
		return s
	}
	if s == 0 {
		return f.MeanScores()[row]
	}
	sums := f.Rows()[row]
	scale := scaleOf(sums.SumWeights + s)
	return (sums.SumProducts*scale + s*scale) / (sums.SumWeights*scale + s*scale)
}

// scaleOf returns a factor that keeps sums finite: 1, or a half if both addends are near the
// largest float. Scaling by either does not round, so fusing the multiplication with an addition
// makes no difference.
func scaleOf(sum float64) float64 {
	if math.IsInf(sum, 0) {
		return 0.5
	}
	return 1
}

// Score implements scorer.
func (w *weightedMean) Score(r *Rating, row int, current bool) float64 { return w.Own(r, row, current) }

// Parts implements scorer.
func (w *weightedMean) Parts(r *Rating, row int, current bool) []api.ScorePart {
	f := r.Fleet
	listed := f.Rows()[row]
	sum := 0.0
	if f.Scored().Has(row) {
		sum = listed.SumWeights
	}
	parts := make([]api.ScorePart, 0, len(listed.Metrics)+1)
	sticky := current && w.stickiness > 0
	total, scale := sum, 1.0
	if sticky {
		scale = scaleOf(sum + w.stickiness)
		total = sum*scale + w.stickiness*scale
	}
	if sum > 0 {
		for _, m := range listed.Metrics {
			s := f.MetricOf(row, m)
			if !s.Usable {
				continue
			}
			raw := s.Raw
			parts = append(parts, api.ScorePart{
				Name: s.Key.Path(), Raw: &raw, Value: s.Normalized, Weight: m.Weight,
				Share: m.Weight * scale * s.Normalized / total, Tells: &s.Key,
			})
		}
	}
	if sticky {
		share := w.stickiness * scale / total
		if sum == 0 {
			share = w.stickiness // the score of a cluster without metrics is s itself
		}
		parts = append(parts, api.ScorePart{Name: "stickiness", Value: 1, Weight: w.stickiness, Share: share})
	}
	return parts
}

// ownWords is the default wording.
var ownWords = Words{Satisfied: satisfied, WellReason: api.ReasonWellConfigured}

func satisfied(t Tally) api.Condition {
	c := api.Condition{Type: api.ConditionSatisfied, Status: api.ConditionTrue, Reason: api.ReasonSatisfied}
	switch {
	case t.Wanted == 0:
		c.Reason = api.ReasonNoClustersWanted
	case t.Chosen == 0:
		c.Status, c.Reason, c.Message = api.ConditionFalse, api.ReasonNoSuitableClusters, t.Why()
	case t.Wanted == All:
		c.Reason = api.ReasonAllFitting
	case t.Missing() > 0:
		c.Status, c.Reason, c.Message = api.ConditionFalse, api.ReasonTooFewClusters, t.Why()
	}
	return c
}
