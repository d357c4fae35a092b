package score

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// prioritizer rates clusters from -100 to 100, by facts about them or by decisions. Like a Check,
// it is an immutable value that describes itself, by implementing those of the interfaces below
// that apply. Each prioritizer has its own file.
//
// Methods get i, the position of the term among the terms that look at clusters, which is its index
// in Rating.figures and Rating.spans.
type prioritizer interface {
	// Name returns the name in explanations.
	Name() string
	// Key writes what distinguishes the prioritizer: two with equal keys give equal rates.
	Key(k key.Writer)
	// Reads returns the aspects of the fleet that a rate depends on.
	Reads() columns.Aspects
}

// builtins are the built-in prioritizers, in the order in which those that look at decisions are
// explained. To add one, add its file and a line here.
var builtins = []prioritizer{
	balancing{builtin{api.PrioritizerBalance}},
	steady{builtin{api.PrioritizerSteady}},
	evenness{builtin{api.PrioritizerSpread}},
	allocatable{builtin{api.PrioritizerAllocatableCPU}, "cpu"},
	allocatable{builtin{api.PrioritizerAllocatableMemory}, "memory"},
	available{builtin{api.PrioritizerAvailableCPU}, "cpu"},
	available{builtin{api.PrioritizerAvailableMemory}, "memory"},
}

// configured creates prioritizers from the user's configuration, by type, for a placement in a
// namespace. A built-in one is looked up by name.
var configured = map[api.PrioritizerType]func(namespace string, c *api.PrioritizerConfig) prioritizer{
	api.PrioritizerAddon: func(_ string, c *api.PrioritizerConfig) prioritizer {
		return addonScore{c.ResourceName, c.ScoreName}
	},
	api.PrioritizerMetric: func(namespace string, c *api.PrioritizerConfig) prioritizer {
		return metricScore{namespace, c.Name}
	},
}

// builtin is the name and key of a built-in prioritizer.
type builtin struct{ kind string }

// Name implements prioritizer.
func (b builtin) Name() string { return b.kind }

// Key implements prioritizer.
func (b builtin) Key(k key.Writer) {
	k.Text("builtin", b.kind)
}

// observable is a prioritizer that explanations show as a part of the score.
type observable interface {
	// Observe returns the rate of a row and what it is based on.
	Observe(r *Rating, i, row int, current bool) (rate float64, from observation)
}

// observation is what the rate of a prioritizer is based on.
type observation struct {
	// raw is the value as the user knows it, or nil.
	raw *float64
	// metric is the metric whose value raw is, or nil.
	metric *api.Key
	// reason says why there is no value, or why it does not count. It is "" if it counts.
	reason string
	// expiredAt is when the value expired.
	expiredAt *time.Time
}

// rater is a prioritizer that rates a cluster by facts about it, independent of the query.
type rater interface {
	Rate(r *Rating, i, row int) float64
}

// columnar is a rater that looks up columns of the fleet, once for every Rating.
type columnar interface {
	Lookup(f *columns.Fleet) lookup
}

// lookup holds the columns in which a prioritizer looks up values by row; each uses one of them.
type lookup struct {
	scores  []int8
	amounts *amount.Column // in thousandths, or Unreported
}

// amount returns the amount of a row.
func (x *lookup) amount(row int) amount.Milli {
	if row < x.amounts.Len() {
		return x.amounts.At(row)
	}
	return amount.Unreported
}

// comparing is a rater that compares candidates by an amount.
type comparing interface {
	Amount(r *Rating, i, row int) amount.Milli
}

// crossPlacement is a prioritizer that takes the decisions of other placements into account. It affects
// where new seats go, but moves none.
type crossPlacement interface {
	// Mind returns what their decisions add to the rate of a row.
	Mind(r *Rating, i, row int) float64
	// Bounds returns the bounds of Mind for clusters outside the decision.
	Bounds(r *Rating) (least, most float64)
	// Most returns an upper bound on Mind of a row for any placement. ok is false if it cannot be
	// computed cheaply.
	Most(r *Rating, row int) (most float64, ok bool)
}

// counting is a crossPlacement prioritizer that only depends on how many decisions chose a cluster. high
// is the maximum over all clusters.
type counting interface {
	OfCount(count, high int32) float64
}

// sharing is a comparing prioritizer that also compares what others leave of the amount.
type sharing interface {
	Left(r *Rating, i, row int) amount.Milli
}

// sticking is a prioritizer that rates the clusters of the current decision. A positive weight
// favors staying. A negative weight favors other clusters, but moves no decision that still meets
// its spec: otherwise a decision would leave its clusters as soon as it is made.
type sticking interface {
	Stay() float64
}

// spreading is a prioritizer that rates how evenly the chosen clusters are distributed, not single
// clusters.
type spreading interface {
	Evens()
}

// perishing is a prioritizer whose rates expire.
type perishing interface {
	// Expired returns the rows whose rate has expired, and a description of what expired.
	Expired(f *columns.Fleet) (what string, on *columns.RowSet)
	// Until returns when the rate of a row next changes through the passing of time alone, or zero.
	Until(f *columns.Fleet, row int) time.Time
}

// naming is a prioritizer for which the user named a metric.
type naming interface {
	Metric() string
}
