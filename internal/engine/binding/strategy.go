package binding

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
)

// strategy is how a workload is bound: to the clusters that a policy selects, or to the OpenStack
// sites that it requests itself. All differences between the two are here.
type strategy interface {
	// direction is equal for workloads that are placed by the same rules.
	direction(p *Propagation) string
	// reading yields each part, besides the checks, that reads aspects of clusters, with these
	// aspects.
	reading(yield func(part string, reads columns.Aspects) bool)
	// inOneRegion reports whether all replicas must be in one region.
	inOneRegion() bool
	// asks reports whether clusters are tried for this number of replicas.
	asks(replicas int64) bool
	// divide tries to place the whole workload on the clusters of the mask.
	divide(b *Binder, group *AffinityGroup) (division.Result, error)
	// demand says which clusters would take what the workload lacks, if a group failed with an
	// error.
	demand(b *Binder, group *AffinityGroup, profile *filter.Profile, err error) *api.Demand
	// complete adds what the division does not know about the chosen clusters.
	complete(b *Binder)

	// takers names the candidates in messages.
	takers() string
	// rate adds the rating of a cluster.
	rate(e *bindingExplained, c *division.Candidate, out *api.Candidate)
	// detail returns an addition to the sentence about a cluster.
	detail(e *bindingExplained, c *division.Candidate) string
}

// selection is the strategy for the clusters that a policy selects. Immutable.
type selection struct{ policy *api.PropagationPolicy }

func (s selection) direction(*Propagation) string {
	return fmt.Sprintf("%s %s %d", s.policy.Path(), s.policy.Metadata.UID, s.policy.Metadata.Generation)
}

func (selection) reading(func(part string, reads columns.Aspects) bool) {}

func (selection) inOneRegion() bool { return false }
func (selection) asks(int64) bool   { return true }
func (selection) complete(*Binder)  {}
func (selection) takers() string    { return "the group" }

func (selection) divide(b *Binder, group *AffinityGroup) (division.Result, error) {
	b.gather(group)
	request := b.request()
	return b.divider.Divide(&request, b.candidates)
}

func (selection) rate(*bindingExplained, *division.Candidate, *api.Candidate) {}

func (selection) detail(*bindingExplained, *division.Candidate) string { return "" }

// Direction is equal for workloads that are placed by the same rules: one version of a policy, or
// the same requirements on sites.
func (p *Propagation) Direction() string { return p.strategy.direction(p) }

// Directed reports whether anything determines where a workload goes: its policy, or the workload
// itself.
func Directed(w *api.Workload, policy *api.PropagationPolicy) bool {
	return policy != nil || w.Spec.Allocation != nil
}
