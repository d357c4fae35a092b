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

// Query is a compiled placement: the requirements on clusters as checks, and how to choose among
// those that fit. Immutable.
type Query struct {
	*asked
	*arranged

	Key api.Key
	// Wanted is the number of clusters to choose, or All.
	Wanted          int
	rescheduleAfter time.Duration
	Migration       bool

	seed           uint64 // of the tie hash
	minImprovement float64
	scoring        *score.Scoring
}

// asked is the part of a query that is shared by queries with the same requirements in the same
// words: see Share.
type asked struct {
	// Class is equal for queries that admit and score the same, whatever their names and spelling.
	// They can share a mask.
	Class       string
	Checks      filter.Checks
	tolerations *filter.Tolerations // of the checks; they also determine which clusters rank last
	reserves    ledger.Needs        // what is reserved

	// One and Many name the candidates in messages; empty = "cluster", "clusters".
	One, Many string
}

// arranged is the part of a query that says how the clusters are chosen together.
type arranged struct {
	spread []api.SpreadConstraint
	groups *api.DecisionStrategy
}

// unarranged is shared by the queries that choose each cluster independently, which are most.
var unarranged = &arranged{}

func arrange(spec *api.PlacementSpec) *arranged {
	if len(spec.SpreadConstraints) == 0 && spec.DecisionStrategy == nil {
		return unarranged
	}
	return &arranged{spec.SpreadConstraints, spec.DecisionStrategy}
}

// Share lets a new query share the memory of another with the same Class and Wording. The receiver
// must not be in use elsewhere.
func (q *Query) Share(other *Query) { q.asked = other.asked }

// NewQuery compiles a placement. It fails only for a spec that should not have passed validation.
func NewQuery(p *api.Placement) (*Query, error) { return Compile(p, false) }

// Compile is NewQuery with the option to accept clusters whose metrics have no value.
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
	if q.scoring, err = score.Compile(p.Metadata.Namespace, spec); err != nil {
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

// NewGroupQuery compiles a query for objects that choose among the clusters that fit by other means
// than a score.
func NewGroupQuery(key api.Key, s *filter.Spec) (*Query, error) {
	q := &Query{asked: &asked{}, arranged: unarranged, Key: key, Wanted: score.All, Migration: true}
	if err := q.ask(s); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return q, nil
}

// ask compiles the requirements on clusters.
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

// writeClass writes the parts that determine what is admitted and how it is scored.
func (q *Query) writeClass(k key.Writer) {
	q.scoring.Key(k)
	q.Checks.Write(k)
}

// Reads returns the aspects of the fleet that determine which clusters are admitted.
func (q *Query) Reads() columns.Aspects { return q.Checks.Reads }

// SeatReads returns the aspects of chosen clusters that matter in addition to admission and merit:
// labels determine decision groups, places determine spread, metrics that cannot be read keep a
// decision, and expiry determines when to reevaluate.
func (q *Query) SeatReads() columns.Aspects {
	reads := columns.Aspects(0)
	if q.groups != nil && len(q.groups.DecisionGroups) > 0 {
		reads |= columns.Labels
	}
	if q.Spreads() {
		reads |= columns.Labels | columns.Place
	}
	if q.scoring.Traits.Reads.Any(columns.MetricValues) || q.Checks.Reads.Any(columns.Failing) {
		reads |= columns.Failing
	}
	return reads | q.Checks.ExpiringReads()
}

// Wording is equal for queries of one Class that get the same sentence, word for word, about
// clusters that do not fit.
func (q *Query) Wording() string {
	k := key.OfWords()
	q.Checks.Write(k)
	return k.String()
}

// Sets returns the cluster sets that the query is restricted to, sorted; none means every cluster.
func (q *Query) Sets() []string {
	if in, ok := filter.First[filter.Confining](&q.Checks); ok {
		return in.Sets()
	}
	return nil
}

// HasRequests reports whether the decision reserves resources.
func (q *Query) HasRequests() bool { return len(q.reserves) > 0 }

// Requests returns the amounts that the decision reserves on each cluster.
func (q *Query) Requests() ledger.Needs { return q.reserves }

// unknownMetrics lists the metrics that the query's constraints name and that do not exist, in the
// order of the constraints.
func (q *Query) unknownMetrics(f *columns.Fleet) []string {
	var unknown []string
	for _, check := range q.Checks.All {
		if c, ok := check.(filter.Naming); ok && !f.HasMetric(c.Metric()) && !slices.Contains(unknown, c.Metric()) {
			unknown = append(unknown, c.Metric())
		}
	}
	return unknown
}

// Admits reports whether the checks admit one row. It is the mask of a View for a single cluster,
// and the only check for clusters of the current decision.
func Admits(f *columns.Fleet, q *Query, reserved *ledger.Reservations, row int, current bool) bool {
	l := q.evaluation(f, reserved)
	return q.Checks.Admits(&l, row, current)
}

// evaluation returns an Evaluation for single rows.
func (q *Query) evaluation(f *columns.Fleet, reserved *ledger.Reservations) filter.Evaluation {
	return filter.NewEvaluation(f, reserved, &q.Key)
}

// newEvaluation returns an Evaluation with the scratch space that Apply needs.
func newEvaluation(f *columns.Fleet, q *Query, reserved *ledger.Reservations) filter.Evaluation {
	l := q.evaluation(f, reserved)
	l.Writable()
	return l
}
