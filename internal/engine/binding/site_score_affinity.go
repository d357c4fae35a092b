package binding

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// stackAffinity prefers sites that run workloads which this one wants to be with,
// and those that do not run what it wants to be apart from.
type stackAffinity struct{}

func (stackAffinity) Name() string { return "StackAffinity" }

// Reads are none: what runs on a site is no fact of the site.
func (stackAffinity) Reads() columns.Aspects { return 0 }

// Rate is 100 beside a workload that is wanted, 0 beside one that is not, and 50
// where there is neither; the average where both are asked for. The figure is how
// many more of the wanted ones are there than of the others.
func (stackAffinity) Rate(s *siteSeen) (score, raw int64) {
	const neutral = 50
	raw = int64(s.affine - s.apart)
	with, without := int64(neutral), int64(neutral)
	if s.affine > 0 {
		with = 100
	}
	if s.apart > 0 {
		without = 0
	}
	switch {
	case len(s.allocation.apart) == 0:
		return with, raw
	case len(s.allocation.affine) == 0:
		return without, raw
	}
	return (with + without) / 2, raw
}
