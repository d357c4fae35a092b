package httpapi

import (
	"bytes"
	"context"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

type heartbeatInput struct {
	Target  Target
	Payload Payload
	Wait    string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
}

func (s *Server) heartbeat(ctx context.Context, in *heartbeatInput) (*objectOutput, error) {
	wait, err := parseWait(in.Wait, defaultWait)
	if err != nil {
		return nil, err
	}
	if err := auth.Of(ctx).MayReportAtAll(); err != nil {
		return nil, err
	}
	key := in.Target.key(api.KindCluster)
	entry := s.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, s.notFound(key)
	}
	cluster, ok := entry.Object.(*api.Cluster)
	if !ok {
		return nil, s.notFound(key)
	}
	if err := auth.Of(ctx).MayReport(cluster); err != nil {
		return nil, err
	}
	var report api.Heartbeat
	if len(bytes.TrimSpace(in.Payload.data)) > 0 {
		if err := decodeBody(in.Payload.data, &report); err != nil {
			return nil, err
		}
		if err := report.Validate().Err(); err != nil {
			return nil, err
		}
	}
	revision, err := s.signals.Heartbeat(ctx, key.Name, report)
	if err != nil {
		if s.fleet.Snapshot().Get(key) == nil {
			return nil, s.notFound(key) // deleted in between
		}
		return nil, err
	}
	return s.settled(ctx, &stored{object: cluster, revision: revision}, wait, http.StatusOK), nil
}
