package binding

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// Explain decides like Bind, and says for every cluster why it gets its replicas, or none, from the
// point of view of the affinity group that has the workload or was tried first.
func (b *Binder) Explain(f *columns.Fleet, p *Propagation, views []*placement.View, others ledger.Others, bound Present, now time.Time) (Binding, *api.Explanation) {
	out := b.Bind(f, p, views, others, nil, bound, now)
	group := out.group
	if group < 0 && len(out.tried) > 0 {
		group = out.tried[0].group
	}
	e := &bindingExplained{b: b, out: out, group: group}
	e.Verdicts, _ = placement.NewVerdicts(f, p.Groups[group].Query, others)
	e.result, e.err = b.try(group, false)
	if out.Complete {
		e.result, e.err = out.result, nil
	}
	e.admitPresent()
	return out, e.render(now)
}

// bindingExplained is a binding together with the verdict on every cluster.
type bindingExplained struct {
	*placement.Verdicts
	b      *Binder
	out    Binding
	group  int
	result division.Result
	err    error
	rating *siteRating // of an allocation, once needed
}

func (e *bindingExplained) admitPresent() {
	for i := range e.b.places {
		m := &e.b.places[i]
		if m.state != memberLeaving {
			e.JudgePresent(m.row)
		}
		if m.state == memberLeaving || m.state == memberFailed {
			e.Leave(m.row)
		}
	}
}

func (e *bindingExplained) render(now time.Time) *api.Explanation {
	f, p := e.b.fleet, e.b.p
	x := &api.Explanation{
		Kind: api.KindWorkload, Namespace: p.key.Namespace, Name: p.key.Name, At: now.UTC(),
		Total: f.Len(), Feasible: e.Admitted.Count(), Rejections: e.Rejections(), NearestMiss: e.NearestMiss(),
		Affinities: e.affinities(), Groups: e.groupReasons(),
		Candidates: make([]api.Candidate, 0, f.Len()),
	}
	if e.out.group >= 0 {
		x.ObservedAffinity = p.Groups[e.out.group].Name
	}
	switch {
	case e.out.evictionsSuspended:
		x.Kept = "brake"
	case e.out.held:
		x.Kept = "move_window"
	}
	if next := e.out.NextAt.UTC(); !next.IsZero() && next.Year() <= 9999 {
		x.NextAt = &next
	}
	x.Summary = e.summary() + e.splitClause()
	leaving := map[int32]string{}
	for i := range e.b.places {
		switch m := &e.b.places[i]; m.state {
		case memberLeaving:
			leaving[int32(m.row)] = m.evicted
		case memberFailed:
			leaving[int32(m.row)] = api.EvictedApplicationUnhealthy
		default:
		}
	}
	known := make(map[int32]*division.Candidate, len(e.b.candidates))
	if p.strategy.asks(p.replicas) {
		for i := range e.b.candidates {
			known[e.b.candidates[i].Row] = &e.b.candidates[i]
		}
	}
	rejected := e.Rejected()
	misfits := map[string]*api.Candidate{}
	for i := range rejected {
		misfits[rejected[i].Cluster] = &rejected[i]
	}
	chosen := map[int32]bool{}
	for i, s := range e.out.shares {
		chosen[s.Row] = true
		c := e.candidate(s.Row, known[s.Row])
		c.Selected, c.Rank = true, int64(i+1)
		if p.replicated {
			c.Replicas = &e.out.shares[i].Replicas
		}
		if !e.out.Complete {
			c.Reason = "keeps what it has while the workload waits"
		}
		// It may stay although it does not fit: because evictions are suspended, or because it fits
		// another group that cannot hold the whole workload.
		if misfit := misfits[c.Cluster]; misfit != nil {
			c.Filter = misfit.Filter
			c.Reason = cmp.Or(c.Reason, "keeps what it has while failover is held") + ", although it does not fit: " + misfit.Reason
		}
		x.Candidates = append(x.Candidates, c)
	}
	for _, row := range f.ByName() {
		if e.RejectedBy(int(row)) >= 0 || chosen[row] {
			continue
		}
		c := e.candidate(row, known[row])
		if why, ok := leaving[row]; ok {
			c.Filter, c.Reason = placement.EvictionsFilter, "the workload is leaving it: "+why
		}
		x.Candidates = append(x.Candidates, c)
	}
	x.Candidates = append(x.Candidates, slices.DeleteFunc(rejected, func(c api.Candidate) bool {
		row, ok := f.Row(c.Cluster)
		return ok && chosen[int32(row)]
	})...)
	return x
}

// candidate describes a cluster that fits; c is nil if it was not a candidate of the division.
func (e *bindingExplained) candidate(row int32, c *division.Candidate) api.Candidate {
	p := e.b.p
	out := api.Candidate{Cluster: e.b.fleet.Name(int(row)), Description: e.b.fleet.Description(int(row)), Current: e.Current.Has(int(row))}
	if c == nil {
		if p.replicated && p.replicas == 0 {
			out.Reason = "fits, and no replicas are wanted"
		}
		return out
	}
	if c.Free != division.Unknown && p.replicated {
		room := c.Free + c.Assigned
		out.Available = &room
	}
	if len(p.weights) > 0 {
		out.Weight = new(c.Weight) // the candidates are overwritten by the next decision
	}
	if tiers := p.Groups[e.group].tiers; c.Tier > 0 && int(c.Tier) < len(tiers) {
		out.Tier = tiers[c.Tier].Name
	}
	e.b.p.strategy.rate(e, c, &out)
	switch {
	case e.err == nil:
		out.Reason = e.result.Reason(c) + e.b.p.strategy.detail(e, c)
	case out.Available != nil:
		out.Reason = fmt.Sprintf("fits, and has room for %d %s, but %s cannot take the workload: %s%s",
			*out.Available, filter.Plural(int(*out.Available), "replica", "replicas"), e.b.p.strategy.takers(), e.err, e.b.p.strategy.detail(e, c))
	default:
		out.Reason = fmt.Sprintf("fits, but %s cannot take the workload: %s%s", e.b.p.strategy.takers(), e.err, e.b.p.strategy.detail(e, c))
	}
	if out.Available != nil && c.Free == 0 {
		out.Reason += e.gone(int(row))
	}
	return out
}

// gone says which resource of the workload a cluster no longer has.
func (e *bindingExplained) gone(row int) string {
	cluster := e.b.fleet.Cluster(row)
	why := columns.GoneBecause(cluster, columns.ResourcePods)
	for _, r := range e.b.p.needs {
		why = cmp.Or(why, columns.GoneBecause(cluster, r.Resource))
	}
	if why == "" {
		return ""
	}
	return "; " + why
}

// maxNamedClusters is the number of clusters that the summary names.
const maxNamedClusters = 5

func (e *bindingExplained) summary() string {
	p := e.b.p
	fits := func(group int) string {
		if group == e.group {
			return e.Sentence()
		}
		v, _ := placement.NewVerdicts(e.b.fleet, p.Groups[group].Query, e.b.others)
		return v.Sentence()
	}
	if !e.out.Complete {
		return pendingSentence(p, e.out, fits)
	}
	shares := slices.Clone(e.out.shares)
	slices.SortStableFunc(shares, func(a, b division.Share) int { return cmp.Compare(b.Replicas, a.Replicas) })
	names := make([]string, 0, maxNamedClusters+1)
	for _, s := range shares[:min(len(shares), maxNamedClusters)] {
		name := e.b.fleet.Name(int(s.Row))
		if p.replicated {
			name += fmt.Sprintf(" %d", s.Replicas)
		}
		names = append(names, name)
	}
	if more := len(shares) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("%d %s chosen", len(shares), filter.Plural(len(shares), "cluster", "clusters"))
	if name := p.Groups[e.out.group].Name; name != "" {
		text += fmt.Sprintf(" from group %q", name)
	}
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text + "; " + e.Sentence()
}

// splitClause says how the replicas are split between node types.
func (e *bindingExplained) splitClause() string {
	shares := make([]int64, len(e.out.shares))
	for i := range e.out.shares {
		shares[i] = e.out.shares[i].Replicas
	}
	return splitClause(e.b.p.spec, shares)
}

// affinities returns the result for each affinity group.
func (e *bindingExplained) affinities() []api.AffinityTried {
	p := e.b.p
	if len(p.Groups) == 1 && p.Groups[0].Name == "" {
		return nil
	}
	out := make([]api.AffinityTried, len(p.Groups))
	for i, g := range p.Groups {
		out[i] = api.AffinityTried{AffinityName: g.Name, Result: api.AffinityNotTried}
	}
	var none *division.NoCandidatesError
	for _, t := range e.out.tried {
		a := &out[t.group]
		switch {
		case t.err == nil:
			a.Result = api.AffinityScheduled
		case errors.As(t.err, &none):
			v, _ := placement.NewVerdicts(e.b.fleet, p.Groups[t.group].Query, e.b.others)
			a.Result, a.Message = api.AffinityNoFit, v.Sentence()
		default:
			a.Result, a.Message = api.AffinityUnschedulable, t.err.Error()
		}
	}
	for _, earlier := range e.out.earlier {
		from := earlier.FeasibleSince.Format(time.RFC3339)
		at := earlier.FeasibleSince.Add(p.stabilization).Format(time.RFC3339)
		if i := p.Group(earlier.AffinityName); i >= 0 && i < e.group {
			out[i].Message = fmt.Sprintf("could take the workload back since %s, and does at %s if it still can", from, at)
		} else {
			out[e.group].Message = fmt.Sprintf("%q has room since %s for replicas that overflowed, and takes them back at %s if it still has", earlier.AffinityName, from, at)
		}
	}
	if !e.out.Complete && len(e.out.shares) > 0 {
		out[e.group].Result = api.AffinityKept
	}
	for i := range out {
		if out[i].Result == api.AffinityNotTried && out[i].Message == "" {
			out[i].Message = e.whyNotTried(i)
		}
	}
	return out
}

// whyNotTried says why a group was not tried.
func (e *bindingExplained) whyNotTried(group int) string {
	switch first := e.out.tried[0].group; {
	case group < first && e.b.p.failBack:
		return "cannot take the workload back now"
	case group < first:
		return "comes before the group that has the workload: it is only tried after an explicit reschedule, or with fail_back"
	case !e.out.Complete:
		return "running replicas do not move on to it because there is no room for more"
	}
	return "a group before it has the workload"
}

// groupReasons says for every group of a spread constraint whether it is used.
func (e *bindingExplained) groupReasons() []api.GroupReason {
	var out []api.GroupReason
	for i := range e.b.p.constraints {
		c := &e.b.p.constraints[i]
		if c.SpreadByField == api.GroupByCluster {
			continue
		}
		counts, chosen := map[string]int{}, map[string]bool{}
		e.Admitted.Each(func(row int) {
			for _, group := range filter.GroupsOf(e.b.fleet.Cluster(row), c) {
				counts[group]++
			}
		})
		for _, s := range e.out.shares {
			for _, group := range filter.GroupsOf(e.b.fleet.Cluster(int(s.Row)), c) {
				chosen[group] = true
			}
		}
		names := make([]string, 0, len(counts))
		for name := range counts {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			out = append(out, api.GroupReason{By: c.By(), Group: name, Clusters: counts[name], Chosen: chosen[name]})
		}
	}
	return out
}
