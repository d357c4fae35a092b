package score

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// prioritizer rates clusters from -100 to 100, by what is known of them or by what
// is decided. It is an immutable value that describes itself, as a Check does. What
// it rates by it says with the interfaces below, of which it has those that it
// needs. Each sort has a file of its own.
//
// They are told the position of their term among those that look at the cluster:
// what they see of the fleet is found there in Rating.figures and Rating.spans.
type prioritizer interface {
	// Name is the name in explanations.
	Name() string
	// Key writes what makes the prioritizer equal to another: two with equal keys
	// rate alike.
	Key(k key.Writer)
	// Reads are the aspects of the fleet that a rate depends on.
	Reads() columns.Aspects
}

// builtins are the built-in prioritizers, in the order in which those that look at
// decisions are explained. A new one is one file and one line here.
var builtins = []prioritizer{
	balancing{builtin{api.PrioritizerBalance}},
	steady{builtin{api.PrioritizerSteady}},
	evenness{builtin{api.PrioritizerSpread}},
	allocatable{builtin{api.PrioritizerAllocatableCPU}, "cpu"},
	allocatable{builtin{api.PrioritizerAllocatableMemory}, "memory"},
	available{builtin{api.PrioritizerAvailableCPU}, "cpu"},
	available{builtin{api.PrioritizerAvailableMemory}, "memory"},
}

// configured make prioritizers from what the user says of them, by type. A built-in
// one is found by its name.
var configured = map[api.PrioritizerType]func(*api.PrioritizerConfig) prioritizer{
	api.PrioritizerAddon:  func(c *api.PrioritizerConfig) prioritizer { return addonScore{c.ResourceName, c.ScoreName} },
	api.PrioritizerMetric: func(c *api.PrioritizerConfig) prioritizer { return metricScore{c.Name} },
}

// builtin is what is built in under a name.
type builtin struct{ kind string }

// Name implements prioritizer.
func (b builtin) Name() string { return b.kind }

// Key implements prioritizer.
func (b builtin) Key(k key.Writer) {
	k.Text("type", string(api.PrioritizerBuiltin))
	k.Text("builtin", b.kind)
}

// observable is a prioritizer that is shown as a part of the score.
type observable interface {
	// Observe is the rate of a row, and what it rests on.
	Observe(r *Rating, i, row int, current bool) (rate float64, from observation)
}

// observation is what the score of a prioritizer rests on.
type observation struct {
	// raw is the figure as the user knows it, nil where there is none.
	raw *float64
	// metric is that whose value the figure is, nil where it is something else.
	metric *api.Key
	// reason says why there is no figure, or why it does not count; "" where it
	// counts.
	reason string
	// expiredAt is since when the figure does not count because it is too old.
	expiredAt *time.Time
}

// rater is a prioritizer that rates a cluster by what is known of it, whoever asks.
type rater interface {
	Rate(r *Rating, i, row int) float64
}

// sighted is a rater that finds figures in a fleet, once for every look at it.
type sighted interface {
	Figures(f *columns.Fleet) figures
}

// figures is where a prioritizer finds its figures by row; it uses one of them.
type figures struct {
	scores  []int8
	amounts []int64 // in thousandths, or unreported
}

// amount is the amount of a row.
func (x *figures) amount(row int) int64 {
	if row < len(x.amounts) {
		return x.amounts[row]
	}
	return columns.Unreported
}

// comparing is a rater that compares the candidates with each other by an amount.
type comparing interface {
	Amount(r *Rating, i, row int) int64
}

// minding is a prioritizer that looks at what other placements decided. It says where
// a new seat goes and moves none.
type minding interface {
	// Mind is what their decisions add to the rate of a row.
	Mind(r *Rating, i, row int) float64
	// Bounds are the least and the most of Mind for any cluster outside of the
	// decision.
	Bounds(r *Rating) (least, most float64)
	// Most is at least Mind of a row for whichever placement asks. ok is false where
	// that cannot be told at once.
	Most(r *Rating, row int) (most float64, ok bool)
}

// counting is a minding one that looks at nothing but how many decisions chose a
// cluster, of at most high for any.
type counting interface {
	OfCount(count, high int32) float64
}

// sharing is a comparing one that also compares what others leave of the amount.
type sharing interface {
	Left(r *Rating, i, row int) int64
}

// sticking is a prioritizer that rates the clusters of the present decision. With a
// positive weight that is what staying is worth; with a negative one it is a wish to
// be elsewhere, which moves nothing that answers its spec: the decision would leave
// its clusters as soon as it is made.
type sticking interface {
	Stay() float64
}

// evening is a prioritizer that rates how evenly the chosen clusters are divided, and
// no single one.
type evening interface {
	Evens()
}

// perishing is a prioritizer whose rates expire.
type perishing interface {
	// Expired are the rows on which the rate no longer counts, and what it is that
	// has expired there.
	Expired(f *columns.Fleet) (what string, on *columns.RowSet)
	// Until is when time alone next changes the rate of a row, zero if never.
	Until(f *columns.Fleet, row int) time.Time
}

// naming is a prioritizer for which the user named a metric.
type naming interface {
	Metric() string
}
