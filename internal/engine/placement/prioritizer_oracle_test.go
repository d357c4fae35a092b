package placement

import (
	"cmp"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// prioritizerOracle is the naive implementation of strategy prioritizers: it counts, compares and sorts plain objects
// anew for every decision. The filters are those of the other oracle.
type prioritizerOracle struct {
	oracle
	// elsewhere lists the clusters of the other placements' decisions, once for each decision.
	elsewhere []string
}

// contestant is a cluster that fits.
type contestant struct {
	cluster *api.Cluster
	current bool
	// total is the weighted sum; own is the part of it that can move a decision that answers its spec.
	total, own float64
	// wish is what a negative weight of steady subtracts from the total.
	wish    float64
	demoted bool
}

func (o prioritizerOracle) builtinWeights(p *api.Placement) map[string]float64 {
	weights := map[string]float64{}
	if p.Spec.PrioritizerPolicy.Mode == "additive" {
		weights["balance"], weights["steady"] = 1, 1
	}
	for _, c := range p.Spec.PrioritizerPolicy.Configurations {
		if c.Type == "builtin" {
			weights[c.Name] = float64(*c.Weight) // the last one counts
		}
	}
	return weights
}

// contestants returns the clusters that fit, with their scores.
func (o prioritizerOracle) contestants(p *api.Placement, present Present) []*contestant {
	var fit []*contestant
	for name, c := range o.Clusters {
		current := slices.ContainsFunc(present.Decisions, func(d api.Decision) bool { return d.Cluster == name })
		if filter, _ := o.rejects(p, c, current); filter == "" {
			fit = append(fit, &contestant{cluster: c, current: current, demoted: o.demoted(p, c)})
		}
	}
	// each adds a prioritizer to the totals, and its own part to what can move a decision.
	each := func(weight float64, score, own func(x *contestant) float64) {
		for _, x := range fit {
			x.total += weight * score(x)
			x.own += weight * own(x)
		}
	}
	none := func(*contestant) float64 { return 0 }
	for name, weight := range o.builtinWeights(p) {
		switch name {
		case "balance":
			each(weight, o.balance(), none)
		case "steady":
			steady := func(x *contestant) float64 {
				if x.current && !present.Fresh {
					return 100
				}
				return 0
			}
			own := steady
			if weight < 0 {
				own = none // otherwise a decision would move as soon as it is made
				for _, x := range fit {
					x.wish = weight * steady(x)
				}
			}
			each(weight, steady, own)
		case "resource_allocatable_cpu", "resource_allocatable_memory":
			score := o.scaled(fit, func(x *contestant) (amount.Milli, bool) {
				return o.allocatable(x.cluster, name[len("resource_allocatable_"):])
			})
			each(weight, score, score)
		case "resource_available_cpu", "resource_available_memory":
			resource := name[len("resource_available_"):]
			left := o.scaled(fit, func(x *contestant) (amount.Milli, bool) {
				milli, ok := o.available(x.cluster, resource, api.KeyOf(p), x.current)
				return milli.Rest(), ok
			})
			unreserved := oracle{World: o.World}
			free := o.scaled(fit, func(x *contestant) (amount.Milli, bool) {
				return unreserved.available(x.cluster, resource, api.KeyOf(p), x.current)
			})
			each(weight, left, free)
		}
	}
	for _, c := range p.Spec.PrioritizerPolicy.Configurations {
		weight := float64(*c.Weight)
		switch c.Type {
		case "builtin":
		case "addon":
			score := func(x *contestant) float64 {
				s := o.Scores[api.Key{Kind: api.KindPlacementScore, Namespace: x.cluster.Metadata.Name, Name: c.ResourceName}]
				if s == nil || s.Spec.ValidUntil != nil && o.Now.After(*s.Spec.ValidUntil) {
					return 0
				}
				return float64(s.Spec.Scores[c.ScoreName])
			}
			each(weight, score, score)
		case "metric":
			score := func(x *contestant) float64 {
				ref, ok := metricNamed(p, x.cluster, c.Name)
				if v := o.metric(ref.Key(), x.cluster.Metadata.Name); ok && v.usable {
					return 200*v.normalized - 100
				}
				return 0
			}
			each(weight, score, score)
		}
	}
	return fit
}

// balance counts the decisions of other placements, over all clusters.
func (o prioritizerOracle) balance() func(*contestant) float64 {
	counts := map[string]int{}
	highest := 0
	for _, name := range o.elsewhere {
		if o.Clusters[name] != nil {
			counts[name]++
			highest = max(highest, counts[name])
		}
	}
	return func(x *contestant) float64 {
		if highest == 0 {
			return 100
		}
		half := int(100 * (0.5 - float64(counts[x.cluster.Metadata.Name])/float64(highest)))
		return float64(2 * half)
	}
}

func amountOrder(a, b amount.Milli) int { return a.Minus(b).Sign() }

// scaled maps amounts to -100 ... 100 over the clusters that fit and report one.
func (o prioritizerOracle) scaled(fit []*contestant, of func(*contestant) (amount.Milli, bool)) func(*contestant) float64 {
	var all []amount.Milli
	for _, x := range fit {
		if a, ok := of(x); ok {
			all = append(all, a)
		}
	}
	return func(x *contestant) float64 {
		a, ok := of(x)
		if !ok {
			return 0
		}
		low, high := slices.MinFunc(all, amountOrder), slices.MaxFunc(all, amountOrder)
		if low == high {
			return 100
		}
		return float64(int((a.Minus(low).Float()/high.Minus(low).Float() - 0.5) * 2 * 100))
	}
}

// allocatable returns the static amount, which only counts if the capacity is known, too.
func (o prioritizerOracle) allocatable(c *api.Cluster, resource string) (amount.Milli, bool) {
	figure := func(reported, declared api.Quantities) (amount.Milli, bool) {
		q, ok := reported[resource]
		if !ok {
			q, ok = declared[resource]
		}
		if !ok {
			return amount.Milli{}, false
		}
		milli, err := q.Milli()
		return milli, err == nil
	}
	milli, ok := figure(c.Status.Allocatable, c.Spec.Allocatable)
	_, whole := figure(c.Status.Capacity, c.Spec.Capacity)
	return milli, ok && whole
}

// order sorts by total, highest first; then present clusters, then those without PreferNoSchedule taints, then by name.
// margin is the advantage of a present cluster.
func (o prioritizerOracle) order(list []*contestant, margin float64, presentFirst bool) {
	bit := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	worth := func(x *contestant) float64 {
		if x.current {
			return x.total + margin
		}
		return x.total
	}
	slices.SortFunc(list, func(x, y *contestant) int {
		byPresence := 0
		if presentFirst {
			byPresence = bit(y.current) - bit(x.current)
		}
		return cmp.Or(cmp.Compare(worth(y), worth(x)), byPresence, bit(x.demoted)-bit(y.demoted),
			cmp.Compare(x.cluster.Metadata.Name, y.cluster.Metadata.Name))
	})
}

// misconfigured reports whether the policy names a metric that does not exist.
func (o prioritizerOracle) misconfigured(p *api.Placement) bool {
	return slices.ContainsFunc(p.Spec.PrioritizerPolicy.Configurations, func(c api.PrioritizerConfig) bool {
		if c.Type != "metric" || *c.Weight == 0 {
			return false
		}
		for key := range o.Metrics {
			if key.Name == c.Name {
				return false
			}
		}
		return true
	})
}

// seats returns the clusters chosen by totals alone, those that stay because nothing may move, and those chosen by the
// rule: a decision that answers its spec keeps a cluster unless another is better by more than min_improvement, both in
// total and by its own part. A negative steady counts only if the spec has changed, and only in totals.
func (o prioritizerOracle) seats(p *api.Placement, present Present) (best, kept, chosen []*contestant) {
	fit := o.contestants(p, present)
	if present.Answered && !present.Fresh {
		for _, x := range fit {
			x.total -= x.wish
		}
		defer func() {
			for _, x := range fit {
				x.total += x.wish
			}
		}()
	}
	margin := p.Spec.MinImprovement
	if present.Fresh {
		margin = 0
	}
	o.order(fit, margin, true)
	wanted := len(fit)
	if n := p.Spec.NumberOfClusters; n != nil {
		wanted = min(wanted, int(*n))
	}
	var outsiders []*contestant
	for _, x := range fit {
		if x.current && len(kept) < wanted {
			kept = append(kept, x)
		} else if !x.current {
			outsiders = append(outsiders, x)
		}
	}
	incumbents := len(kept)
	kept = append(kept, outsiders[:wanted-incumbents]...)
	best = fit[:wanted]
	if !present.Answered || present.Fresh {
		return best, kept, slices.Clone(best)
	}
	// Vacant seats go to the best clusters. Then each other cluster, the best first, may replace the worst present
	// cluster if it is better in both respects.
	chosen = slices.Clone(kept)
	for _, x := range outsiders[wanted-incumbents:] {
		for i := incumbents - 1; i >= 0; i-- {
			y := chosen[i]
			if y.current && x.total > y.total+margin && x.own > y.own+margin {
				chosen[i] = x
				break
			}
		}
	}
	return best, kept, chosen
}

func stayingOf(list []*contestant) int {
	n := 0
	for _, x := range list {
		if x.current {
			n++
		}
	}
	return n
}

// outdone reports whether a decision would lose more clusters if only totals
// counted.
func (o prioritizerOracle) outdone(p *api.Placement, present Present) bool {
	best, _, chosen := o.seats(p, present)
	return stayingOf(best) < stayingOf(chosen)
}

// unread reports whether a metric that the policy names cannot be read on a cluster that may stay.
func (o prioritizerOracle) unread(p *api.Placement, present Present) bool {
	named := func(name string) bool {
		return slices.ContainsFunc(p.Spec.PrioritizerPolicy.Configurations, func(c api.PrioritizerConfig) bool {
			return c.Type == api.PrioritizerMetric && c.Name == name && *c.Weight != 0
		})
	}
	return slices.ContainsFunc(present.Decisions, func(d api.Decision) bool {
		c := o.Clusters[d.Cluster]
		if c == nil {
			return false
		}
		filter, _ := o.rejects(p, c, true)
		return filter == "" && o.unreadOn(c, named)
	})
}

func (o prioritizerOracle) decide(p *api.Placement, present Present) answer {
	_, kept, chosen := o.seats(p, present)
	var out answer
	end := present.ScheduledAt.Add(p.Spec.RescheduleAfter.Or(0))
	if stayingOf(chosen) < stayingOf(kept) {
		switch {
		case o.misconfigured(p):
			chosen, out.held = kept, keptByMisconfiguration
		case !*p.Spec.Migration:
			chosen, out.held = kept, KeptByMigration
		case present.Answered && !present.Fresh && o.Now.Before(end):
			chosen, out.held, out.nextAt = kept, keptByAge, end
		case !present.Fresh && o.unread(p, present):
			chosen, out.held = kept, keptByUnread
		}
	}
	for _, x := range chosen {
		if at := o.runsOut(p, x.cluster); !at.IsZero() && (out.nextAt.IsZero() || at.Before(out.nextAt)) {
			out.nextAt = at
		}
	}
	out.same = stayingOf(chosen) == len(chosen) && len(chosen) == len(present.Decisions)
	o.order(chosen, 0, false)
	for _, x := range chosen {
		out.seats = append(out.seats, seat{x.cluster.Metadata.Name, x.total})
	}
	return out
}

// spreadCase converts the clusters that fit, and the spread constraints, to numbers.
func (o prioritizerOracle) spreadCase(p *api.Placement, present Present) ([]*contestant, spreadCase) {
	fit := o.contestants(p, present)
	margin := p.Spec.MinImprovement
	if present.Fresh {
		margin = 0
	}
	o.order(fit, margin, true)
	c := spreadCase{n: len(fit), weight: o.builtinWeights(p)["spread"]}
	if n := p.Spec.NumberOfClusters; n != nil {
		c.n = min(c.n, int(*n))
	}
	for _, x := range fit {
		score := x.total
		if x.current {
			score += margin
		}
		c.score = append(c.score, score)
	}
	for _, s := range p.Spec.SpreadConstraints {
		rule := spreadRule{maxSkew: int(*s.MaxSkew), hard: s.WhenUnsatisfiable == "DoNotSchedule"}
		var names []string
		for _, x := range fit {
			value, ok := x.cluster.Metadata.Labels[s.TopologyKey]
			switch s.Type {
			case "Label":
			case "Claim":
				value, ok = x.cluster.Spec.Claims[s.TopologyKey]
			case "Field":
				value = x.cluster.Spec.Region
				ok = value != ""
			}
			var domains []int32
			if ok {
				if !slices.Contains(names, value) {
					names = append(names, value)
				}
				domains = []int32{int32(slices.Index(names, value))}
			}
			rule.domains = append(rule.domains, domains)
		}
		rule.count = len(names)
		c.rules = append(c.rules, rule)
	}
	return fit, c
}
