package binding

import "github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"

// stackAffinity prefers sites that run the workloads of the affinity, and avoids those of the
// anti-affinity.
type stackAffinity struct{}

func (stackAffinity) Name() string { return "StackAffinity" }

// Reads returns none: what runs on a site is not part of the fleet.
func (stackAffinity) Reads() columns.Aspects { return 0 }

// Rate is 100 if a workload of the affinity runs on the site, 0 if one of the anti-affinity does,
// and 50 otherwise; if both are configured, it is the average. The raw value is the difference
// between the numbers of both.
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
