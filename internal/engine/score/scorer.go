package score

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// scorer rates clusters for a query. It is an immutable value that describes
// itself, as a Check does, so that deciding, sharing, waking and explaining need no
// list of the strategies there are. What only some scorers have to say is asked by
// the interfaces below.
//
// Clusters are compared by standing first (see Fleet.standing) and by score within
// it.
type scorer interface {
	// Key writes what makes the scorer equal to another of its strategy: two with
	// equal keys rate clusters outside of a decision alike, and say the same of
	// themselves.
	Key(k key.Writer)
	// Traits are what others have to know of it.
	Traits() Traits
	// Own is the score of a row by what is known of the cluster and of the
	// placement itself; current adds what staying is worth.
	Own(r *Rating, row int, current bool) float64
	// Score is Own together with what the decisions of other placements say. It
	// is what the user sees.
	Score(r *Rating, row int, current bool) float64
	// Parts are what the score is made of, for the explanation.
	Parts(r *Rating, row int, current bool) []api.ScorePart
}

// strategies make the scorers of placements, by strategy. A new one is one file and
// one line here.
var strategies = map[api.Strategy]func(*api.PlacementSpec) *Scoring{
	api.StrategyMetrics:      newWeightedMean,
	api.StrategyPrioritizers: newPrioritizers,
}

// Traits are what a scorer says of itself; the zero value is one that asks for
// nothing.
type Traits struct {
	// Reads are the aspects of the fleet that a score depends on: those of the
	// cluster that is rated, and what other placements decided.
	Reads columns.Aspects
	// Minds says that something counts in the score which says where a new seat
	// goes but moves none: the decisions of other placements, or a wish to be
	// elsewhere than now.
	Minds bool
	// Away says that there is such a wish: what is shown of a present cluster is
	// less than what keeps it.
	Away bool
	// spans is how many amounts candidates are compared by, one with another, so
	// that one more candidate may change the score of all.
	spans int
	// flat says that Base is the same for all clusters of a ranker, whose names alone
	// order them.
	flat bool
	// Evenness is what an even division over the domains of spread constraints is
	// worth.
	Evenness float64
	// Metrics are those that have to exist because the user named them.
	Metrics []string
	// Words are those of the placement's conditions.
	Words *Words
}

// ranker is a scorer that orders clusters itself, those of equal score by name.
// Every cluster has a score then. For all other scorers the fleet has one order, by
// its metrics; equals in it are ordered by each placement's own tie hash.
type ranker interface {
	scorer
	// RankKey writes what makes Base equal to that of another of the strategy.
	RankKey(k key.Writer)
	// Base is Own of a cluster outside of the decision, by Rating.spans.
	Base(r *Rating, row int) float64
	// Cover widens the spans to what is compared of a row.
	Cover(r *Rating, spans []span, row int)
}

// minder is a scorer in which the decisions of other placements count.
type minder interface {
	scorer
	// Others is the score of a row with what they add to it.
	Others(r *Rating, row int, score float64) float64
	// OfCount is what they add to that of a cluster which some number of them chose; ok
	// is false where more than the number counts.
	OfCount(r *Rating, count int32) (add float64, ok bool)
	// Most is at least what they add to that of any cluster outside of the decision.
	Most(r *Rating) float64
	// AtMost is at least Others of such a cluster for whichever placement asks; ok is
	// false where that cannot be told at once.
	AtMost(r *Rating, row int, score float64) (most float64, ok bool)
	// CoverLeft widens the spans to what others leave of what is compared of a row.
	CoverLeft(r *Rating, spans []span, row int)
}

// perishable is a scorer by whose scores time alone may change what is decided.
type perishable interface {
	scorer
	// Expired names what has expired on one of some rows, "" where nothing has.
	// has reports whether a set has one of them.
	Expired(f *columns.Fleet, has func(*columns.RowSet) bool) string
	// Until is when time alone next changes the score of a row, zero if never.
	Until(f *columns.Fleet, row int) time.Time
}

// Scoring is how queries rate clusters: a scorer with what it says of itself. Those
// that most placements have are shared.
type Scoring struct {
	scorer
	strategy api.Strategy // "" for queries that only ask who fits
	Traits   Traits
	Ranks    ranker     // nil: by the order of the fleet
	Minds    minder     // nil: whatever others decide
	Perishes perishable // nil: whatever the time is
}

// Compile is how a placement rates clusters. The error is that of a spec that never
// should have passed validation.
func Compile(spec *api.PlacementSpec) (*Scoring, error) {
	compile, ok := strategies[spec.Strategy]
	if !ok {
		return nil, fmt.Errorf("spec.strategy: %q is not known", spec.Strategy)
	}
	return compile(spec), nil
}

func newScoring(strategy api.Strategy, s scorer) *Scoring {
	by := &Scoring{scorer: s, strategy: strategy, Traits: s.Traits()}
	by.Ranks, _ = s.(ranker)
	by.Minds, _ = s.(minder)
	by.Perishes, _ = s.(perishable)
	return by
}

// Key writes what makes two queries score the same.
func (s *Scoring) Key(k key.Writer) {
	k.Text("strategy", string(s.strategy))
	s.scorer.Key(k)
}

// RankKey writes what makes two queries share a Ranking, where they have one.
func (s *Scoring) RankKey(k key.Writer) {
	k.Text("strategy", string(s.strategy))
	s.Ranks.RankKey(k)
}

// Relative reports that candidates are compared with each other, so that one more of
// them may change the score of all.
func (s *Scoring) Relative() bool { return s.Traits.spans > 0 }
