package engine

import (
	"fmt"
	"strings"
)

// clusterAffinity admits the clusters of a workload's affinity group, those of
// its overflow tiers included.
type clusterAffinity struct{}

func (clusterAffinity) Name() string { return "cluster_affinity" }

func (clusterAffinity) Compile(s *Spec, made []Check) ([]Check, error) {
	if len(s.tiers) == 0 {
		return made, nil
	}
	return append(made, &inTiers{tiers: s.tiers}), nil
}

// inTiers asks for the clusters of any of some tiers, at least one.
type inTiers struct {
	clusterAffinity
	tiers []affinity
}

func (c *inTiers) Key(k *Key) {
	k.Each("tiers", len(c.tiers), func(k *Key, i int) { c.tiers[i].key(k) })
}

func (c *inTiers) Reads() Aspects {
	reads := Aspects(0)
	for i := range c.tiers {
		reads |= c.tiers[i].reads()
	}
	return reads
}

func (c *inTiers) On() string { return c.tiers[0].name }

func (c *inTiers) Blame(n int) string {
	group := "cluster_affinity"
	if name := c.tiers[0].name; name != "" {
		group = fmt.Sprintf("affinity group %q", name)
	}
	return plural(n, "is", "are") + " not in " + group
}

func (c *inTiers) Apply(l *Look, keep Bitmap) {
	if len(c.tiers) == 1 {
		c.tiers[0].selectInto(l.fleet, keep, l.scratch)
		return
	}
	union, tier := newBitmap(l.fleet.Slots()), newBitmap(l.fleet.Slots())
	for i := range c.tiers {
		copy(tier, keep)
		c.tiers[i].selectInto(l.fleet, tier, l.scratch)
		union.or(tier)
	}
	keep.and(union)
}

func (c *inTiers) Admits(l *Look, row int, _ bool) bool { return tierOf(c.tiers, l.fleet, row) >= 0 }

// tierOf is the first tier that a cluster is in, -1 where it is in none.
func tierOf(tiers []affinity, f *Fleet, row int) int {
	for i := range tiers {
		if tiers[i].matches(f.rows[row].cluster) {
			return i
		}
	}
	return -1
}

func (c *inTiers) Reason(l *Look, row int) string {
	reasons := make([]string, len(c.tiers))
	for i := range c.tiers {
		reasons[i] = c.tiers[i].mismatch(l.fleet.rows[row].cluster)
		if i > 0 {
			reasons[i] = fmt.Sprintf("overflow %q: %s", c.tiers[i].name, reasons[i])
		}
	}
	return strings.Join(reasons, "; ")
}
