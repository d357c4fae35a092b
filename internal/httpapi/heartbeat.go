package httpapi

import (
	"bytes"
	"context"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

type heartbeatInput struct {
	Target  operation.Target
	Payload operation.Payload
	Wait    string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

func (r *reports) heartbeat(ctx context.Context, in *heartbeatInput) (*objectOutput, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	if err := auth.Of(ctx).MayReportAtAll(); err != nil {
		return nil, err
	}
	key := in.Target.Key(api.KindCluster)
	entry := r.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, r.view.notFound(key)
	}
	cluster, ok := entry.Object.(*api.Cluster)
	if !ok {
		return nil, r.view.notFound(key)
	}
	if err := auth.Of(ctx).MayReport(cluster); err != nil {
		return nil, err
	}
	revision, err := r.relay.heartbeat(ctx, key.Name, bytes.TrimSpace(in.Payload.Data))
	if err != nil {
		if r.fleet.Snapshot().Get(key) == nil {
			return nil, r.view.notFound(key) // deleted in between
		}
		return nil, err
	}
	if revision == 0 { // it says nothing new: there is nothing to wait for
		return r.changes.present(ctx, &stored{object: cluster, revision: entry.Revision()}, http.StatusOK), nil
	}
	return r.changes.outcome(ctx, &stored{object: cluster, revision: revision}, wait, http.StatusOK), nil
}

// decodeReport reads the body of a heartbeat, which may have none.
func decodeReport(body []byte) (api.Heartbeat, error) {
	var report api.Heartbeat
	if len(body) == 0 {
		return report, nil
	}
	if err := operation.Decode(body, &report); err != nil {
		return report, err
	}
	return report, report.Validate().Err()
}
