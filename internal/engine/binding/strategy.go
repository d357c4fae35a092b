package binding

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/division"
)

// strategy is how a workload is bound: over the clusters that a policy selects, or
// over the sites of OpenStack that it asks for itself. All that differs between the
// two is said here.
type strategy interface {
	// direction is equal for two workloads that are told by the same where to go.
	direction(p *Propagation) string
	// reading yields what reads aspects of clusters besides the checks, with what it
	// reads.
	reading(yield func(part string, reads columns.Aspects) bool)
	// inOneRegion reports whether all replicas are to be in one region.
	inOneRegion() bool
	// asks reports whether anybody is asked to take so many replicas.
	asks(replicas int64) bool
	// divide asks the clusters of the mask to take the whole workload.
	divide(b *Binder, group *AffinityGroup) (division.Result, error)
	// complete says of the chosen clusters what the division does not know.
	complete(b *Binder)

	// takers are those who are asked, for sentences.
	takers() string
	// rate says how good a cluster is.
	rate(e *bindingExplained, c *division.Candidate, out *api.Candidate)
	// detail is what a sentence about a cluster says besides.
	detail(e *bindingExplained, c *division.Candidate) string
}

// selection is the strategy of clusters that a policy selects. Immutable.
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

// Direction is equal for two workloads that are told by the same where to go: one
// policy in one version, or the same wishes for sites.
func (p *Propagation) Direction() string { return p.strategy.direction(p) }

// Directed reports whether anything says where a workload goes: its policy, or the
// workload itself.
func Directed(w *api.Workload, policy *api.PropagationPolicy) bool {
	return policy != nil || w.Spec.Allocation != nil
}
