package placement

import (
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/score"
)

// Query is a placement made ready to decide: what is asked of clusters as checks,
// and how those that fit are chosen from. Immutable.
type Query struct {
	*asked
	*arranged

	Key api.Key
	// Wanted is how many clusters to choose, or All.
	Wanted          int
	rescheduleAfter time.Duration
	Migration       bool

	seed           uint64 // of the tie hash
	minImprovement float64
	scoring        *score.Scoring
}

// asked is the part of a query that those share which ask for the same in the same
// words: see Share.
type asked struct {
	// Class is equal for two queries that admit and score the same, whatever they
	// are named and however they spell it: their mask can be shared.
	Class       string
	Checks      filter.Checks
	tolerations *filter.Tolerations // those of the checks: they also say who ranks last
	reserves    ledger.Needs        // what is reserved

	// One and many are what hosts are called; empty = "cluster", "clusters".
	One, Many string
}

// arranged is the part of a query that says how the clusters are chosen together.
type arranged struct {
	spread []api.SpreadConstraint
	groups *api.DecisionStrategy
}

// unarranged is shared by the queries that choose each cluster by itself: most.
var unarranged = &arranged{}

func arrange(spec *api.PlacementSpec) *arranged {
	if len(spec.SpreadConstraints) == 0 && spec.DecisionStrategy == nil {
		return unarranged
	}
	return &arranged{spec.SpreadConstraints, spec.DecisionStrategy}
}

// Share has a query that nobody else has yet, and that has the Class and the Wording
// of another, keep no memory of its own for what is the same in both.
func (q *Query) Share(other *Query) { q.asked = other.asked }

// NewQuery compiles a placement. The error is that of a spec that never should
// have passed validation.
func NewQuery(p *api.Placement) (*Query, error) { return Compile(p, false) }

// Compile is NewQuery for a placement that may take clusters with a metric that
// has no value.
func Compile(p *api.Placement, takesFailing bool) (*Query, error) {
	spec := &p.Spec
	q := &Query{
		asked:           &asked{},
		arranged:        arrange(spec),
		Key:             api.KeyOf(p),
		Wanted:          score.All,
		rescheduleAfter: spec.RescheduleAfter.Or(0),
		Migration:       spec.Migration == nil || *spec.Migration,
		minImprovement:  spec.MinImprovement,
	}
	q.seed = columns.HashText(p.Metadata.UID)
	if p.Metadata.UID == "" {
		q.seed = columns.HashText(q.Key.Path())
	}
	if spec.NumberOfClusters != nil {
		q.Wanted = int(*spec.NumberOfClusters)
	}
	var err error
	if q.scoring, err = score.Compile(spec); err != nil {
		return nil, fmt.Errorf("%s: %w", q.Key, err)
	}
	err = q.ask(&filter.Spec{
		Namespace: p.Metadata.Namespace, Placement: spec, Rated: q.scoring.Traits.Metrics, TakesFailing: takesFailing,
		Tolerations: filter.NewTolerations(spec.Tolerations),
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Key, err)
	}
	return q, nil
}

// NewGroupQuery is the query of what chooses among the clusters that fit by other
// means than a score.
func NewGroupQuery(key api.Key, s *filter.Spec) (*Query, error) {
	q := &Query{asked: &asked{}, arranged: unarranged, Key: key, Wanted: score.All, Migration: true}
	if err := q.ask(s); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return q, nil
}

// ask compiles what the query asks of clusters.
func (q *Query) ask(s *filter.Spec) error {
	var err error
	if q.Checks, err = filter.CompileChecks(s); err != nil {
		return err
	}
	q.tolerations = s.Tolerations
	for _, check := range q.Checks.All {
		if check, ok := check.(filter.Reserving); ok {
			q.reserves = append(q.reserves, check.Reserves())
		}
	}
	if q.scoring == nil {
		q.scoring = score.Unrated
	}
	k := key.New()
	q.writeClass(k)
	q.Class = k.String()
	return nil
}

// writeClass writes what makes two queries admit and score the same.
func (q *Query) writeClass(k key.Writer) {
	q.scoring.Key(k)
	q.Checks.Write(k)
}

// Reads are the aspects of the fleet that say who is admitted.
func (q *Query) Reads() columns.Aspects { return q.Checks.Reads }

// SeatReads are the aspects of chosen clusters that matter besides who is admitted
// and which merit it has: the labels say which group a cluster is in, the place how
// many others may be there, and what expires when to look again.
func (q *Query) SeatReads() columns.Aspects {
	reads := columns.Aspects(0)
	if q.groups != nil && len(q.groups.DecisionGroups) > 0 {
		reads |= columns.Labels
	}
	if q.Spreads() {
		reads |= columns.Labels | columns.Place
	}
	return reads | q.Checks.ExpiringReads()
}

// Wording is equal for two queries of one Class that are told the same, word for
// word, about clusters that do not fit.
func (q *Query) Wording() string {
	k := key.OfWords()
	q.Checks.Write(k)
	return k.String()
}

// Sets are the cluster sets that the query is confined to, in the order of their
// names; none stands for every cluster.
func (q *Query) Sets() []string {
	if in, ok := filter.First[filter.Confining](&q.Checks); ok {
		return in.Sets()
	}
	return nil
}

// HasRequests reports that the decision reserves resources.
func (q *Query) HasRequests() bool { return len(q.reserves) > 0 }

// Requests are the amounts that the decision reserves on each cluster.
func (q *Query) Requests() ledger.Needs { return q.reserves }

// unknownMetrics lists the metrics that the query's constraints name and that
// do not exist, in the order of the constraints.
func (q *Query) unknownMetrics(f *columns.Fleet) []string {
	var unknown []string
	for _, check := range q.Checks.All {
		if c, ok := check.(filter.Naming); ok && !f.HasMetric(c.Metric()) && !slices.Contains(unknown, c.Metric()) {
			unknown = append(unknown, c.Metric())
		}
	}
	return unknown
}

// Admits reports whether the checks admit one row. It is the mask of a View for a
// single cluster, and the only judge of a cluster of the present decision.
func Admits(f *columns.Fleet, q *Query, reserved *ledger.Reservations, row int, current bool) bool {
	l := q.look(f, reserved)
	return q.Checks.Admits(&l, row, current)
}

// look is a look at single rows for a query.
func (q *Query) look(f *columns.Fleet, reserved *ledger.Reservations) filter.Look {
	return filter.LookAt(f, reserved, &q.Key)
}

// newLook is one with scratch space for Apply.
func newLook(f *columns.Fleet, q *Query, reserved *ledger.Reservations) filter.Look {
	l := q.look(f, reserved)
	l.Writable()
	return l
}
