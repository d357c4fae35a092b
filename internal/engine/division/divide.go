package division

import (
	"cmp"
	"slices"
)

// Divider divides. It keeps scratch memory for the next division, so it is for
// one goroutine at a time. The zero value is ready.
type Divider struct{}

// Divide chooses among the candidates and divides the replicas over them. The
// result does not refer to the candidates or to the divider.
func (d *Divider) Divide(r *Request, candidates []Candidate) (Result, error) {
	if len(candidates) == 0 {
		return Result{}, &NoCandidatesError{}
	}
	var res Result
	if r.Mode == Duplicate || !r.Replicated {
		for i := range candidates {
			res.Shares = append(res.Shares, Share{candidates[i].Row, candidates[i].Rank, r.Replicas})
		}
	} else {
		left := r.Replicas
		for i := range candidates {
			c := &candidates[i]
			n := left
			if c.Free != Unknown {
				n = min(n, c.Free+c.Held)
			}
			n = min(n, c.Max)
			left -= n
			if n > 0 {
				res.Shares = append(res.Shares, Share{c.Row, c.Rank, n})
			}
		}
		if left > 0 {
			return Result{}, &NoRoomError{Room: r.Replicas - left, Wanted: r.Replicas}
		}
	}
	slices.SortFunc(res.Shares, func(a, b Share) int { return cmp.Compare(a.Rank, b.Rank) })
	return res, nil
}

// Reason says in a few words why a candidate got its replicas, or none.
func (r *Result) Reason(c *Candidate) string { return "" }
