package score

import (
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// scorer rates clusters for a query. Like a Check, it is an immutable value that describes itself,
// so that deciding, sharing, waking and explaining do not depend on the strategy. Optional
// properties are in the interfaces below.
//
// Clusters are compared first by standing (see Fleet.Standing) and then by score.
type scorer interface {
	// Key writes what distinguishes the scorer from others of its strategy: two with equal keys
	// rate clusters outside a decision alike, and have equal traits.
	Key(k key.Writer)
	// Traits returns the declared properties.
	Traits() Traits
	// Own returns the score of a row based on the cluster and the placement itself; current adds
	// stickiness.
	Own(r *Rating, row int, current bool) float64
	// Score returns Own plus the effect of the decisions of other placements. Users see this score.
	Score(r *Rating, row int, current bool) float64
	// Parts returns the parts of the score for explanations.
	Parts(r *Rating, row int, current bool) []api.ScorePart
}

// strategies create the scorers of placements, by strategy. To add one, add its file and a line
// here.
var strategies = map[api.Strategy]func(namespace string, spec *api.PlacementSpec) *Scoring{
	api.StrategyMetrics:      newWeightedMean,
	api.StrategyPrioritizers: newPrioritizers,
}

// Traits are the declared properties of a scorer. The zero value declares none.
type Traits struct {
	// Reads are the aspects of the fleet that a score depends on: those of the rated cluster, and
	// the decisions of other placements.
	Reads columns.Aspects
	// Minds says that the score contains something that affects where new seats go but moves none:
	// decisions of other placements, or a negative steady weight.
	Minds bool
	// Away says that there is a negative steady weight: the displayed score of a current cluster is
	// lower than the one that keeps it.
	Away bool
	// Herds says that a cluster may score higher because others chose it.
	Herds bool
	// spans is the number of amounts by which candidates are compared with one another, so that an
	// additional candidate may change all scores.
	spans int
	// flat says that a ranker's Base is the same for all clusters, which are then ordered by name
	// only.
	flat bool
	// Evenness is the value of an even distribution over the domains of spread constraints.
	Evenness float64
	// Metrics are the metrics that must exist because the user named them.
	Metrics []string
	// Words is the wording of the placement's conditions.
	Words *Words
}

// ranker is a scorer that orders the clusters itself, those with equal scores by name. Every
// cluster then has a score. All other scorers use the fleet's order by metrics, in which each
// placement orders equals by its own tie hash.
type ranker interface {
	scorer
	// RankKey writes the parts that determine Base.
	RankKey(k key.Writer)
	// Base returns Own of a cluster outside the decision, using Rating.spans.
	Base(r *Rating, row int) float64
	// Cover widens the spans to include a row.
	Cover(r *Rating, spans []span, row int)
}

// minder is a scorer that takes the decisions of other placements into account.
type minder interface {
	scorer
	// Others returns the score of a row including their effect.
	Others(r *Rating, row int, score float64) float64
	// OfCount returns their effect on a cluster that count decisions chose. ok is false if more
	// than the count matters.
	OfCount(r *Rating, count int32) (add float64, ok bool)
	// Most returns an upper bound on their effect on any cluster outside the decision.
	Most(r *Rating) float64
	// AtMost returns an upper bound on Others of such a cluster for any placement. ok is false if
	// it cannot be computed cheaply.
	AtMost(r *Rating, row int, score float64) (most float64, ok bool)
	// CoverLeft widens the spans to include what others leave on a row.
	CoverLeft(r *Rating, spans []span, row int)
}

// perishable is a scorer with scores that expire.
type perishable interface {
	scorer
	// Expired describes what has expired on one of some rows, or returns "". has reports whether a
	// set contains one of the rows.
	Expired(f *columns.Fleet, has func(*columns.RowSet) bool) string
	// Until returns when the score of a row next changes through the passing of time alone, or
	// zero.
	Until(f *columns.Fleet, row int) time.Time
}

// Scoring is how queries rate clusters: a scorer with its declared properties. Common ones are
// shared.
type Scoring struct {
	scorer
	strategy api.Strategy // "" for queries that only ask which clusters fit
	Traits   Traits
	Ranks    ranker     // nil: uses the order of the fleet
	Minds    minder     // nil: independent of the decisions of others
	Perishes perishable // nil: independent of time
}

// Compile compiles the scoring of a placement in a namespace. It fails only for a spec that should
// not have passed validation.
func Compile(namespace string, spec *api.PlacementSpec) (*Scoring, error) {
	compile, ok := strategies[spec.Strategy]
	if !ok {
		return nil, fmt.Errorf("spec.strategy: %q is not known", spec.Strategy)
	}
	return compile(namespace, spec), nil
}

func newScoring(strategy api.Strategy, s scorer) *Scoring {
	by := &Scoring{scorer: s, strategy: strategy, Traits: s.Traits()}
	by.Ranks, _ = s.(ranker)
	by.Minds, _ = s.(minder)
	by.Perishes, _ = s.(perishable)
	return by
}

// Key writes the parts that determine the scores.
func (s *Scoring) Key(k key.Writer) {
	k.Text("strategy", string(s.strategy))
	s.scorer.Key(k)
}

// RankKey writes the parts that determine the Ranking, if there is one.
func (s *Scoring) RankKey(k key.Writer) {
	k.Text("strategy", string(s.strategy))
	s.Ranks.RankKey(k)
}

// Relative reports whether candidates are compared with each other, so that an additional one may
// change all scores.
func (s *Scoring) Relative() bool { return s.Traits.spans > 0 }

// Unread returns a metric that the score of a row depends on and whose value cannot be read, or nil.
func (s *Scoring) Unread(f *columns.Fleet, row int) *columns.MetricState {
	if !f.Unread() {
		return nil
	}
	for _, listed := range f.Rows()[row].Metrics {
		state := f.MetricOf(row, listed)
		if state.Unread() && (s.Ranks == nil || slices.Contains(s.Traits.Metrics, state.Key.Name)) {
			return state
		}
	}
	return nil
}
