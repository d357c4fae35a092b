package engine

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Filter rejects clusters on grounds: the parts of a placement's spec that it
// looks at, one by one, so that the explanation can name the very constraint.
// Apply and Admits must agree; a property test holds them against each other.
type Filter interface {
	// Name is the filter's name in explanations.
	Name() string
	// Grounds is how many grounds the filter has for a query; 0 = not used.
	Grounds(q *Query) int
	// Apply removes from keep the clusters that the ground rejects, seen as
	// clusters outside of the present decision.
	Apply(p *Pass, ground int, keep Bitmap)
	// Admits is the same question for one row. current says that the cluster is
	// part of the present decision, which some filters judge more mildly.
	Admits(p *Pass, ground, row int, current bool) bool
	// On names what the ground looks at: the constraint as the user wrote it.
	On(q *Query, ground int) string
	// Blame completes the sentence about n clusters, "3 ...": "are not online".
	Blame(q *Query, ground, n int) string
	// Reason says why the ground rejects the row.
	Reason(p *Pass, ground, row int) string
}

// Cause is a part of what one ground rejected.
type Cause struct {
	On    string // what the ground looked at
	Count int
	Why   string // what is wrong with that, where more is known
}

// causer is a filter whose grounds are the same for every query, and which can
// say only of the fleet what it rejected clusters on.
type causer interface {
	// Causes divides the clusters that the filter rejected, most frequent first.
	Causes(p *Pass, rejected func(yield func(row int) bool)) []Cause
}

// teller is a filter whose reasons tell the values of metrics.
type teller interface {
	// Tells is the metric whose value the reason for a row tells, nil where it tells
	// of none.
	Tells(p *Pass, ground, row int) *api.Key
}

// filters are all filters, in the order in which they are applied and a
// rejection is attributed. A new filter is one file and one line here.
var filters = []Filter{
	ownership{},
	clusterSets{},
	state{},
	pause{},
	taints{},
	clusterAffinity{},
	site{},
	labelConstraints{},
	predicates{},
	customResources{},
	apiResources{},
	groups{},
	metricsAvailable{},
	metricConstraints{},
	resources{},
}

// Pass is one look at the fleet for one query.
type Pass struct {
	fleet    *Fleet
	query    *Query
	reserved *Reservations
	scratch  Bitmap // overwritten by every Apply that needs it

	// What scoring by prioritizers needs; see score_prioritizers.go.
	ranking *Ranking
	seen    seen
	mine    Bitmap // rows of the present decision, where its own use matters
	spans   []span // of the relative terms
	left    []span // of what reservations leave; nil where nothing asks
	// candidates are the rows a relative ranking has; nil where it has all.
	candidates Bitmap
	figures    []figures // by term, once resolved
	// settled: the decision answers its spec, and a wish to be elsewhere moves
	// nothing.
	settled bool
	// until is when time alone first takes out a row that Apply kept; zero = never.
	until time.Time
}

// newPass returns a pass with scratch space for Apply.
func newPass(f *Fleet, q *Query, reserved *Reservations) *Pass {
	return &Pass{fleet: f, query: q, reserved: reserved, scratch: newBitmap(f.Slots())}
}

// Mask is the set of clusters that the filters admit for a query, seen as
// clusters outside of its present decision. It depends on the query's Class
// only.
func Mask(f *Fleet, q *Query, reserved *Reservations) Bitmap {
	return newPass(f, q, reserved).mask()
}

func (p *Pass) mask() Bitmap {
	keep := newBitmap(p.fleet.Slots())
	copy(keep, p.fleet.live)
	for _, filter := range filters {
		for ground := range filter.Grounds(p.query) {
			filter.Apply(p, ground, keep)
		}
	}
	return keep
}

// Admits reports whether the filters admit one row. It is Mask for a single
// cluster, and the only judge of a cluster of the present decision.
func Admits(f *Fleet, q *Query, reserved *Reservations, row int, current bool) bool {
	p := Pass{fleet: f, query: q, reserved: reserved}
	return p.admits(row, current)
}

func (p *Pass) admits(row int, current bool) bool {
	if !p.fleet.live.Has(row) {
		return false
	}
	for _, filter := range filters {
		for ground := range filter.Grounds(p.query) {
			if !filter.Admits(p, ground, row, current) {
				return false
			}
		}
	}
	return true
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
