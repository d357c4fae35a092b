package httpapi

import (
	"context"
	"errors"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// previewedWorkload is what becomes of a workload when a policy is written.
type previewedWorkload struct {
	Object  *api.Workload
	Current api.WorkloadStatus
	Claimed bool
	Summary string
}

// workloadDecisions are decisions that know workloads, too.
type workloadDecisions interface {
	Decisions
	PreviewWorkload(workload *api.Workload) (status api.WorkloadStatus, explanation *api.Explanation, err error)
	PreviewPolicy(policy *api.PropagationPolicy) (map[api.Key]previewedWorkload, error)
	ObservePolicy(policy *api.PropagationPolicy) *api.PropagationPolicy
	ReportHealth(ctx context.Context, key api.Key, report api.HealthReport) (revision int64, err error)
}

// withoutWorkloads stands in where decisions know no workloads.
type withoutWorkloads struct{ Decisions }

var errNoWorkloads = errors.New("workloads are not decided")

func (withoutWorkloads) PreviewWorkload(*api.Workload) (api.WorkloadStatus, *api.Explanation, error) {
	return api.WorkloadStatus{}, nil, errNoWorkloads
}

func (withoutWorkloads) PreviewPolicy(*api.PropagationPolicy) (map[api.Key]previewedWorkload, error) {
	return nil, errNoWorkloads
}

func (withoutWorkloads) ObservePolicy(policy *api.PropagationPolicy) *api.PropagationPolicy {
	return policy
}

func (withoutWorkloads) ReportHealth(context.Context, api.Key, api.HealthReport) (int64, error) {
	return 0, errNoWorkloads
}

func knowingWorkloads(decisions Decisions) workloadDecisions {
	if full, ok := decisions.(workloadDecisions); ok {
		return full
	}
	return withoutWorkloads{decisions}
}
