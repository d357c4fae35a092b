package score

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"

// Ceiling is an upper bound on the score of any cluster outside a decision, with the decisions of
// others included, for all queries with one scorer. A current cluster that is not below it cannot
// be displaced. Like a Ranking, a Ceiling is kept, and recomputed when a rate or a count of
// decisions changes.
type Ceiling struct {
	score   float64
	ok      bool
	ranking *Ranking // for which it was computed
	ranked  int
	load    *ledger.Load
	counted int
}

// Of returns the ceiling for a Rating. ok is false if it cannot be computed cheaply.
func (c *Ceiling) Of(r *Rating) (score float64, ok bool) {
	if c == nil || r.Ranking == nil || r.By.Minds == nil {
		return 0, false
	}
	load, counted := r.Seen.Of()
	if c.ranking != r.Ranking || c.ranked != r.Ranking.version || c.load != load || c.counted != counted {
		*c = Ceiling{ranking: r.Ranking, ranked: r.Ranking.version, load: load, counted: counted}
		c.score, c.ok = r.ceiling()
	}
	return c.score, c.ok
}

// ceiling walks the ranking until no later cluster can have a higher score.
func (r *Rating) ceiling() (highest float64, ok bool) {
	whole, k := *r, r.Ranking
	whole.Seen = r.Seen.Whole()
	most := whole.MostOfOthers()
	var few [MaxByCount]float64
	known := whole.ByCount(few[:0])
	for i, at := range k.Order {
		row, own := int(at), k.Score[at]
		if i > 0 && own+most <= highest {
			break
		}
		var total float64
		if count := int(whole.Seen.At(row)); i > 0 && count < len(known) {
			total = own + known[count]
		} else if total, ok = r.By.Minds.AtMost(&whole, row, own); !ok {
			return 0, false
		}
		if i == 0 || total > highest {
			highest = total
		}
	}
	return highest, len(k.Order) > 0
}

// MaxByCount is the number of decision counts for which ByCount computes the effect.
const MaxByCount = 64

// ByCount appends what the decisions of others add to the score of a cluster outside the decision,
// by how many decisions chose it, as long as only that count matters.
func (r *Rating) ByCount(known []float64) []float64 {
	for count := 0; count <= int(r.Seen.High) && len(known) < cap(known); count++ {
		add, ok := r.ofCount(int32(count))
		if !ok {
			break
		}
		known = append(known, add)
	}
	return known
}
