package filter

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// clusterAffinity admits the clusters of a workload's affinity group and of its overflow tiers.
type clusterAffinity struct{}

func (clusterAffinity) Name() string { return "cluster_affinity" }

func (clusterAffinity) Compile(s *Spec, made []Check) ([]Check, error) {
	if len(s.Tiers) == 0 {
		return made, nil
	}
	return append(made, &inTiers{tiers: s.Tiers}), nil
}

// inTiers requires that a cluster is in at least one of some tiers.
type inTiers struct {
	clusterAffinity
	tiers []Affinity
}

func (c *inTiers) Key(k key.Writer) {
	k.Each("tiers", len(c.tiers), func(k key.Writer, i int) { c.tiers[i].key(k) })
}

func (c *inTiers) Reads() columns.Aspects {
	reads := columns.Aspects(0)
	for i := range c.tiers {
		reads |= c.tiers[i].Reads()
	}
	return reads
}

func (c *inTiers) On() string { return c.tiers[0].Name }

func (c *inTiers) Rejection(n int) string {
	group := "cluster_affinity"
	if name := c.tiers[0].Name; name != "" {
		group = fmt.Sprintf("affinity group %q", name)
	}
	return Plural(n, "is", "are") + " not in " + group
}

func (c *inTiers) Apply(l *Evaluation, keep columns.Bitmap) {
	if len(c.tiers) == 1 {
		c.tiers[0].SelectInto(l.Fleet, keep, l.scratch)
		return
	}
	union, tier := columns.NewBitmap(l.Fleet.Slots()), columns.NewBitmap(l.Fleet.Slots())
	for i := range c.tiers {
		copy(tier, keep)
		c.tiers[i].SelectInto(l.Fleet, tier, l.scratch)
		union.Or(tier)
	}
	keep.And(union)
}

func (c *inTiers) Admits(l *Evaluation, row int, _ bool) bool {
	return TierOf(c.tiers, l.Fleet, row) >= 0
}

// Tiers returns an affinity group's own affinity, followed by its overflow tiers if overflow is
// set.
func Tiers(term *api.AffinityTerm, overflow bool) []Affinity {
	tiers := []Affinity{NewAffinity(term.AffinityName, &term.ClusterAffinity)}
	if overflow {
		for i := range term.OverflowAffinities {
			more := &term.OverflowAffinities[i]
			tiers = append(tiers, NewAffinity(more.AffinityName, &more.ClusterAffinity))
		}
	}
	return tiers
}

// TierOf returns the first tier that contains a cluster, or -1.
func TierOf(tiers []Affinity, f *columns.Fleet, row int) int {
	for i := range tiers {
		if tiers[i].matches(f.Cluster(row)) {
			return i
		}
	}
	return -1
}

func (c *inTiers) Reason(l *Evaluation, row int) string {
	reasons := make([]string, len(c.tiers))
	for i := range c.tiers {
		reasons[i] = c.tiers[i].mismatch(l.Fleet.Cluster(row))
		if i > 0 {
			reasons[i] = fmt.Sprintf("overflow %q: %s", c.tiers[i].Name, reasons[i])
		}
	}
	return strings.Join(reasons, "; ")
}
