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

// Trigger is what makes a decision differ from the one before: a check that rejects a cluster that
// is left, or that rejected one that is gained, or else the scores.
type Trigger struct {
	Cluster string // that is left or gained; "" if it is none of them
	Check   string // name of the filter; "" if no check decides
	// Reads are the aspects on which the check, or the score, depends.
	Reads columns.Aspects
	// Difference is what differs between the two versions of the fleet; nil if nothing of it does.
	Difference *columns.Difference
	// Metric is the metric that the check looks at, or nil.
	Metric *api.Key
}

// Comparison finds what makes decisions differ between two versions of the fleet.
type Comparison struct {
	Before, After *columns.Fleet
	Others        ledger.Others // of After
	Rows          []int         // that differ
}

// maxRowsCompared is the number of clusters outside a decision that are compared to find what
// changed.
const maxRowsCompared = 32

// Of finds it for a query. scores are the aspects that determine the choice among the clusters that
// fit. view may be nil if they are not scored.
func (c *Comparison) Of(q *Query, view *View, scores columns.Aspects, left, gained []string) Trigger {
	if found, ok := c.rejecting(q, c.After, left, true); ok {
		return found
	}
	found := Trigger{Reads: scores | q.Reads()}
	if c.Before.Len() == 0 {
		return found // nothing is known of it
	}
	if admitted, ok := c.rejecting(q, c.Before, gained, false); ok {
		return admitted
	}
	if d, cluster := c.rating(q, view, scores, left, gained); d != nil {
		found.Difference, found.Cluster = d, cluster
		return found
	}
	// What changed on clusters outside the decision may still change how these are compared, or how
	// many of them there may be in a domain.
	names := make([]string, min(len(c.Rows), maxRowsCompared))
	for i := range names {
		names[i] = c.nameOf(c.Rows[i])
	}
	slices.Sort(names) // the numbers of the rows differ between a server and a simulation
	for _, name := range names {
		if d := c.differ(name, found.Reads, nil); d != nil {
			found.Difference, found.Cluster = d, name
			return found
		}
	}
	return found
}

// nameOf returns the name of the cluster in a row, before if it is gone.
func (c *Comparison) nameOf(row int) string {
	for _, f := range [...]*columns.Fleet{c.After, c.Before} {
		if cluster := f.Cluster(row); cluster != nil {
			return cluster.Metadata.Name
		}
	}
	return ""
}

// rejecting finds a check that rejects one of some clusters in a version of the fleet, or that one is
// not in it. current says that they are part of the decision.
func (c *Comparison) rejecting(q *Query, in *columns.Fleet, names []string, current bool) (Trigger, bool) {
	look := q.evaluation(in, c.Others.Reserved)
	for _, name := range names {
		row, ok := in.Row(name)
		if !ok {
			return Trigger{Cluster: name, Difference: c.differ(name, 0, nil)}, true
		}
		for _, check := range q.Checks.All {
			if !check.Admits(&look, row, current) {
				metric := told(check, &look, row)
				return Trigger{name, check.Name(), check.Reads(), c.differ(name, check.Reads(), metric), metric}, true
			}
		}
	}
	return Trigger{}, false
}

// told returns the metric that a check looks at, or nil.
func told(check filter.Check, l *filter.Evaluation, row int) *api.Key {
	if t, ok := check.(filter.Teller); ok {
		return t.Tells(l, row)
	}
	return nil
}

// differ returns the first thing that differs about a cluster, or nil; that of a metric is
// preferred.
func (c *Comparison) differ(name string, reads columns.Aspects, metric *api.Key) *columns.Difference {
	if c.Before.Len() == 0 {
		return nil
	}
	differences := columns.Differences(c.Before, c.After, name, reads)
	if len(differences) == 0 {
		return nil
	}
	at := max(slices.IndexFunc(differences, func(d columns.Difference) bool { return metric != nil && d.Object == *metric }), 0)
	return &differences[at]
}

// rating returns what differs most about the clusters' scores, and of which cluster.
func (c *Comparison) rating(q *Query, view *View, scores columns.Aspects, left, gained []string) (most *columns.Difference, of string) {
	best := math.Inf(-1)
	for i, names := range [...][]string{left, gained} {
		for _, name := range names {
			differences := columns.Differences(c.Before, c.After, name, scores)
			if len(differences) == 0 {
				continue
			}
			parts := c.parts(q, view, name)
			for at := range differences {
				d := &differences[at]
				// What speaks for the change comes first: a cluster that is left has become worse,
				// or one that is gained better.
				gain := d.Gain * weightOf(parts, d)
				if i == 0 {
					gain = -gain
				}
				if gain > best {
					best, most, of = gain, d, name
				}
			}
		}
	}
	return most, of
}

// parts returns the parts of a cluster's present score.
func (c *Comparison) parts(q *Query, view *View, name string) []api.ScorePart {
	row, ok := c.After.Row(name)
	if !ok || view == nil {
		return nil
	}
	p := view.rating(c.After, q, c.Others)
	p.See(c.Others.Load, nil)
	p.MeasureLeft(view.Mask, []int{row})
	return q.scoring.Parts(&p.Rating, row, false)
}

// weightOf returns the weight of the part of a score that a difference is about, or 1.
func weightOf(parts []api.ScorePart, d *columns.Difference) float64 {
	for i := range parts {
		part := &parts[i]
		score, scored := strings.CutPrefix(d.Field, "spec.scores.")
		if scored && part.Name == d.Object.Name+"/"+score || part.Tells != nil && *part.Tells == d.Object {
			return part.Weight
		}
	}
	return 1
}

// Ripens reports whether a decision became old enough to be moved by scores between two versions of
// the fleet.
func (q *Query) Ripens(present Present, before, after *columns.Fleet) bool {
	end := present.ScheduledAt.Add(q.rescheduleAfter)
	return q.rescheduleAfter > 0 && before.Now().Before(end) && !after.Now().Before(end)
}
