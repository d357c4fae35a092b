package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Query is a placement made ready to decide: what is asked of clusters as checks,
// and how those that fit are chosen from. Immutable.
type Query struct {
	Key api.Key
	// Class is equal for two queries that admit and score the same, whatever they
	// are named and however they spell it: their mask can be shared.
	Class string
	// Wanted is how many clusters to choose, or All.
	Wanted          int
	RescheduleAfter time.Duration
	Migration       bool

	checks      checks
	tolerations *tolerations // those of the checks: they also say who ranks last
	seed        uint64       // of the tie hash
	requests    Needs        // what is reserved

	minImprovement float64
	strategy       api.Strategy // whose scorer rates clusters
	scoring        *scoring
	spread         []api.SpreadConstraint
	groups         *api.DecisionStrategy

	// one and many are what hosts are called; empty = "cluster", "clusters".
	one, many string
}

// NewQuery compiles a placement. The error is that of a spec that never should
// have passed validation.
func NewQuery(p *api.Placement) (*Query, error) { return newQuery(p, false) }

// newQuery is NewQuery for a placement that may take clusters with a metric that
// has no value.
func newQuery(p *api.Placement, takesFailing bool) (*Query, error) {
	spec := &p.Spec
	q := &Query{
		Key:             api.KeyOf(p),
		Wanted:          All,
		RescheduleAfter: spec.RescheduleAfter.Or(0),
		Migration:       spec.Migration == nil || *spec.Migration,
		minImprovement:  spec.MinImprovement,
		spread:          spec.SpreadConstraints,
		groups:          spec.DecisionStrategy,
	}
	q.seed = hashText(p.Metadata.UID)
	if p.Metadata.UID == "" {
		q.seed = hashText(q.Key.Path())
	}
	if spec.NumberOfClusters != nil {
		q.Wanted = int(*spec.NumberOfClusters)
	}
	compile, ok := strategies[spec.Strategy]
	if !ok {
		return nil, fmt.Errorf("%s: spec.strategy: %q is not known", q.Key, spec.Strategy)
	}
	q.strategy, q.scoring = spec.Strategy, compile(spec)
	asked := &Spec{
		Namespace: p.Metadata.Namespace, Placement: spec, rated: q.scoring.traits.Metrics, takesFailing: takesFailing,
		tolerations: newTolerations(spec.Tolerations),
	}
	if err := q.ask(asked); err != nil {
		return nil, fmt.Errorf("%s: %w", q.Key, err)
	}
	return q, nil
}

// newGroupQuery is the query of what chooses among the clusters that fit by other
// means than a score.
func newGroupQuery(key api.Key, s *Spec) (*Query, error) {
	q := &Query{Key: key, Wanted: All, Migration: true}
	if err := q.ask(s); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return q, nil
}

// ask compiles what the query asks of clusters.
func (q *Query) ask(s *Spec) error {
	var err error
	if q.checks, err = compileChecks(s); err != nil {
		return err
	}
	q.tolerations = s.tolerations
	for _, check := range q.checks.all {
		if room, ok := check.(*hasRoom); ok {
			q.requests = append(q.requests, room.request)
		}
	}
	if q.scoring == nil {
		q.scoring = unrated
	}
	k := newKey(false)
	q.writeClass(&k)
	q.Class = k.String()
	return nil
}

// writeClass writes what makes two queries admit and score the same.
func (q *Query) writeClass(k *Key) {
	q.writeScoring(k)
	q.checks.write(k)
}

// writeScoring writes what makes two queries score the same.
func (q *Query) writeScoring(k *Key) {
	k.Text("strategy", string(q.strategy))
	q.scoring.Key(k)
}

// Reads are the aspects of the fleet that say who is admitted.
func (q *Query) Reads() Aspects { return q.checks.reads }

// SeatReads are the aspects of chosen clusters that matter besides who is admitted
// and which merit it has: the labels say which group a cluster is in, the place how
// many others may be there, and what expires when to look again.
func (q *Query) SeatReads() Aspects {
	reads := Aspects(0)
	if q.groups != nil && len(q.groups.DecisionGroups) > 0 {
		reads |= Labels
	}
	if q.Spreads() {
		reads |= Labels | Place
	}
	for _, check := range q.checks.expiring {
		reads |= check.Reads()
	}
	return reads
}

// Wording is equal for two queries of one Class that are told the same, word for
// word, about clusters that do not fit.
func (q *Query) Wording() string {
	k := newKey(true)
	q.checks.write(&k)
	return k.String()
}

// Sets are the cluster sets that the query is confined to, in the order of their
// names; none stands for every cluster.
func (q *Query) Sets() []string {
	if in, ok := checkOf[*inSets](q); ok {
		return in.sets
	}
	return nil
}

// HasRequests reports that the decision reserves resources.
func (q *Query) HasRequests() bool { return len(q.requests) > 0 }

// Requests are the amounts that the decision reserves on each cluster.
func (q *Query) Requests() Needs { return q.requests }

// UnknownMetrics lists the metrics that the query's constraints name and that
// do not exist, in the order of the constraints.
func (q *Query) UnknownMetrics(f *Fleet) []string {
	var unknown []string
	for _, check := range q.checks.all {
		if c, ok := check.(*metricConstraint); ok && !f.HasMetric(c.is.Name()) && !slices.Contains(unknown, c.is.Name()) {
			unknown = append(unknown, c.is.Name())
		}
	}
	return unknown
}

// Mask is the set of clusters that the checks admit for a query, seen as clusters
// outside of its present decision. It depends on the query's Class only.
func Mask(f *Fleet, q *Query, reserved *Reservations) Bitmap {
	l := newLook(f, q, reserved)
	return q.checks.mask(&l)
}

// Admits reports whether the checks admit one row. It is Mask for a single
// cluster, and the only judge of a cluster of the present decision.
func Admits(f *Fleet, q *Query, reserved *Reservations, row int, current bool) bool {
	l := q.look(f, reserved)
	return q.checks.admits(&l, row, current)
}

// look is a look at single rows for a query.
func (q *Query) look(f *Fleet, reserved *Reservations) Look {
	return lookAt(f, reserved, &q.Key)
}

// newLook is one with scratch space for Apply.
func newLook(f *Fleet, q *Query, reserved *Reservations) Look {
	l := q.look(f, reserved)
	l.writable()
	return l
}

// checkOf is the first check of a type among those of a query.
func checkOf[T Check](q *Query) (check T, ok bool) {
	for _, c := range q.checks.all {
		if check, ok = c.(T); ok {
			return check, true
		}
	}
	return check, false
}
