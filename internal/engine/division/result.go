package division

// Share is what one cluster gets.
type Share struct {
	Row, Rank int32
	Replicas  int64
}

// Result is a division.
type Result struct {
	Shares []Share // by Rank

	request  Request
	weighted bool
}

func newResult(r *Request) Result { return Result{request: *r} }

// Reason says in a few words why a candidate got its replicas, or none.
func (r *Result) Reason(c *Candidate) string { return "" }
