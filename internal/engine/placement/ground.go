package placement

import (
	"math"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Ground is what makes a decision differ from the one before: a check that rejects a cluster that
// is left, or that rejected one that is gained, or else the scores.
type Ground struct {
	Cluster string // that is left or gained; "" if it is none of them
	Check   string // name of the filter; "" if no check decides
	// Reads are the aspects on which the check, or the score, depends.
	Reads columns.Aspects
	// Input is what differs between the two versions of the fleet; nil if nothing of it does.
	Input *columns.Input
	// Metric is the metric that the check looks at, or nil.
	Metric *api.Key
}

// Grounds finds what makes decisions differ between two versions of the fleet.
type Grounds struct {
	Before, After *columns.Fleet
	Others        ledger.Others // of After
	Rows          []int         // that differ
}

// maxRowsCompared is the number of clusters outside a decision that are compared to find what
// changed.
const maxRowsCompared = 32

// Of finds it for a query. scores are the aspects that determine the choice among the clusters that
// fit. view may be nil if they are not scored.
func (g *Grounds) Of(q *Query, view *View, scores columns.Aspects, left, gained []string) Ground {
	if found, ok := g.rejecting(q, left); ok {
		return found
	}
	if found, ok := g.admitting(q, gained); ok {
		return found
	}
	found := Ground{Reads: scores | q.Reads()}
	if g.Before.Len() == 0 {
		return found
	}
	if in, cluster := g.rating(q, view, scores, left, gained); in != nil {
		found.Input, found.Cluster = in, cluster
		return found
	}
	// What changed on clusters outside the decision may still change how these are compared, or how
	// many of them there may be in a domain.
	for _, row := range g.Rows[:min(len(g.Rows), maxRowsCompared)] {
		name := g.nameOf(row)
		if in := g.differ(name, found.Reads, nil); in != nil {
			found.Input, found.Cluster = in, name
			return found
		}
	}
	return found
}

// nameOf returns the name of the cluster in a row, before if it is gone.
func (g *Grounds) nameOf(row int) string {
	for _, f := range [...]*columns.Fleet{g.After, g.Before} {
		if c := f.Cluster(row); c != nil {
			return c.Metadata.Name
		}
	}
	return ""
}

// rejecting finds a check that rejects a cluster that is left.
func (g *Grounds) rejecting(q *Query, left []string) (Ground, bool) {
	look := q.look(g.After, g.Others.Reserved)
	for _, name := range left {
		row, ok := g.After.Row(name)
		if !ok {
			return Ground{Cluster: name, Input: g.differ(name, 0, nil)}, true
		}
		for _, check := range q.Checks.All {
			if !check.Admits(&look, row, true) {
				metric := told(check, &look, row)
				return Ground{name, check.Name(), check.Reads(), g.differ(name, check.Reads(), metric), metric}, true
			}
		}
	}
	return Ground{}, false
}

// admitting finds a check that rejected a cluster that is gained.
func (g *Grounds) admitting(q *Query, gained []string) (Ground, bool) {
	if g.Before.Len() == 0 {
		return Ground{}, false // nothing is known of it
	}
	look := q.look(g.Before, g.Others.Reserved)
	for _, name := range gained {
		row, ok := g.Before.Row(name)
		if !ok {
			return Ground{Cluster: name, Input: g.differ(name, 0, nil)}, true
		}
		for _, check := range q.Checks.All {
			if check.Admits(&look, row, false) {
				continue
			}
			metric := told(check, &look, row)
			if in := g.differ(name, check.Reads(), metric); in != nil || check.Reads().Any(columns.Clock) {
				return Ground{name, check.Name(), check.Reads(), in, metric}, true
			}
			break // amounts that were reserved before are free now
		}
	}
	return Ground{}, false
}

// told returns the metric that a check looks at, or nil.
func told(check filter.Check, l *filter.Look, row int) *api.Key {
	if t, ok := check.(filter.Teller); ok {
		return t.Tells(l, row)
	}
	return nil
}

// differ returns the first thing that differs about a cluster, or nil; that of a metric is
// preferred.
func (g *Grounds) differ(name string, reads columns.Aspects, metric *api.Key) *columns.Input {
	if g.Before.Len() == 0 {
		return nil
	}
	inputs := columns.Differ(g.Before, g.After, name, reads)
	if len(inputs) == 0 {
		return nil
	}
	at := max(slices.IndexFunc(inputs, func(in columns.Input) bool { return metric != nil && in.Object == *metric }), 0)
	return &inputs[at]
}

// rating returns what differs most about the clusters' scores, and of which cluster.
func (g *Grounds) rating(q *Query, view *View, scores columns.Aspects, left, gained []string) (most *columns.Input, of string) {
	best := math.Inf(-1)
	for i, names := range [...][]string{left, gained} {
		for _, name := range names {
			inputs := columns.Differ(g.Before, g.After, name, scores)
			if len(inputs) == 0 {
				continue
			}
			parts := g.parts(q, view, name)
			for at := range inputs {
				in := &inputs[at]
				// What speaks for the change comes first: a cluster that is left has become worse,
				// or one that is gained better.
				gain := in.Gain * weightOf(parts, in)
				if i == 0 {
					gain = -gain
				}
				if gain > best {
					best, most, of = gain, in, name
				}
			}
		}
	}
	return most, of
}

// parts returns the parts of a cluster's present score.
func (g *Grounds) parts(q *Query, view *View, name string) []api.ScorePart {
	row, ok := g.After.Row(name)
	if !ok || view == nil {
		return nil
	}
	p := view.rating(g.After, q, g.Others)
	p.See(g.Others.Load, nil)
	p.MeasureLeft(view.Mask, []int{row})
	return q.scoring.Parts(&p.Rating, row, false)
}

// weightOf returns the weight of the part of a score that an input is, or 1.
func weightOf(parts []api.ScorePart, in *columns.Input) float64 {
	for i := range parts {
		part := &parts[i]
		score, scored := strings.CutPrefix(in.Field, "spec.scores.")
		if scored && part.Name == in.Object.Name+"/"+score || part.Tells != nil && *part.Tells == in.Object {
			return part.Weight
		}
	}
	return 1
}

// Edge returns the clusters between which a seat moves next, or would move if the decision were not
// kept: the one that is given up, and the one that is gained. ok is false if there are none.
func (out *Outcome) Edge(f *columns.Fleet) (from, to string, ok bool) {
	if !out.hasNext || len(out.Choices) == 0 {
		return "", "", false
	}
	return f.Name(out.worstRow), f.Name(out.nextRow), true
}

// KeptByAge reports whether scores alone would move the decision, and it is too young for that.
func (out *Outcome) KeptByAge() bool { return out.kept == keptByAge }

// Age reports whether a decision became old enough to be moved by scores between two versions of
// the fleet.
func (q *Query) Age(present Present, before, after *columns.Fleet) bool {
	end := present.ScheduledAt.Add(q.rescheduleAfter)
	return q.rescheduleAfter > 0 && before.Now().Before(end) && !after.Now().Before(end)
}

// Chooses reports whether a row is chosen.
func (out *Outcome) Chooses(row int) bool {
	return slices.ContainsFunc(out.Choices, func(c Choice) bool { return c.Row == row })
}

// MinImprovement returns how much better a cluster must be to take over a seat.
func (q *Query) MinImprovement() float64 { return q.minImprovement }
