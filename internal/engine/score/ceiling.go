package score

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"

// Ceiling is at least the score, together with what the decisions of others say, of any
// cluster outside of a decision, whoever asks by one scorer: a present cluster that is
// not below it gives way to none. It is kept, as a Ranking is, and found anew once a
// rate or a count of decisions differs.
type Ceiling struct {
	score   float64
	ok      bool
	ranking *Ranking // as of which it was found
	ranked  int
	load    *ledger.Load
	counted int
}

// Of is the ceiling of a look at the fleet; ok is false where it cannot be told at
// once.
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

// ceiling looks at the clusters in the order of the ranking until no later one can
// have a higher score.
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

// MaxByCount is for how many numbers of decisions it is noted what they add.
const MaxByCount = 64

// ByCount appends what the decisions of others add to the score of an outsider, by
// how many of them chose it, as far as nothing but that number counts.
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
