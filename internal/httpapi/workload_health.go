package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/previewcommit"
)

type reportHealthInput struct {
	Target  operation.Target
	Payload operation.Payload
	Wait    string `query:"wait" doc:"How long to wait for the resulting decision: default 10s, at most 60s, 0s to not wait."`
}

func (r *reports) reportHealth(ctx context.Context, in *reportHealthInput) (*objectOutput, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	key := in.Target.Key(api.KindWorkload)
	who := auth.Of(ctx)
	if err := who.MayReportOn(key); err != nil {
		return nil, err
	}
	report, err := decodeHealth(in.Payload.Data)
	if err != nil {
		return nil, err
	}
	if err := r.rights.MayReportFrom(who, key, report.Cluster); err != nil {
		return nil, err
	}
	entry := r.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, r.view.notFound(key)
	}
	workload, ok := entry.Object.(*api.Workload)
	if !ok {
		return nil, r.view.notFound(key)
	}
	if err := checkRunsOn(who, workload, report.Cluster); err != nil {
		return nil, err
	}
	revision, err := r.decisions.ReportHealth(ctx, key, *report)
	if err != nil {
		if r.fleet.Snapshot().Get(key) == nil {
			return nil, r.view.notFound(key) // deleted in between
		}
		return nil, err
	}
	return r.changes.outcome(ctx, &stored{object: workload, revision: revision}, wait, http.StatusOK), nil
}

func decodeHealth(data []byte) (*api.HealthReport, error) {
	report := &api.HealthReport{}
	var unread api.FieldErrors
	if err := operation.Decode(data, report); err != nil && !errors.As(err, &unread) {
		return nil, err
	}
	report.SetDefaults()
	return report, unread.And(report.Validate()).Err()
}

// checkRunsOn rejects a report about a cluster that the workload does not run on. Where it runs is
// only disclosed to those who may read it.
func checkRunsOn(who auth.Identity, workload *api.Workload, cluster string) error {
	names := workload.Status.Names()
	for _, eviction := range workload.Status.Evictions {
		names = append(names, eviction.Cluster)
	}
	switch {
	case slices.Contains(names, cluster):
		return nil
	case who.MayRead(workload) != nil:
		return problem.Invalid("cluster", "%s does not run on %q", api.KeyOf(workload), cluster)
	case len(names) == 0:
		return problem.Invalid("cluster", "%s does not run on %q: it runs nowhere at present", api.KeyOf(workload), cluster)
	}
	return problem.Invalid("cluster", "%s does not run on %q: it runs on %s", api.KeyOf(workload), cluster, previewcommit.Names(names))
}
