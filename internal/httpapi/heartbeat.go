package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
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
	if err := auth.Of(ctx).MayReportAtAll(api.KindCluster); err != nil {
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
		if errors.Is(err, clusterhealth.ErrNotFound) || r.fleet.Snapshot().Get(key) == nil {
			return nil, r.view.notFound(key) // deleted in between
		}
		return nil, err
	}
	if revision == 0 { // no changes: there is nothing to wait for
		return r.changes.present(ctx, &stored{object: cluster, revision: entry.Revision()}, http.StatusOK), nil
	}
	return r.changes.outcome(ctx, &stored{object: cluster, revision: revision}, wait, http.StatusOK), nil
}

// direct answers heartbeats as they mostly are without what other requests need: the
// search for their route, parameters by reflection, and compression. With 10,000 agents
// nearly all requests are heartbeats, and these took most of their time.
func (r *reports) direct(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, plain := r.plainHeartbeat(req)
		if !plain || !r.relay.takes() {
			next.ServeHTTP(w, req)
			return
		}
		requestOf(req.Context()).route = r.beats.Path
		out, err := r.directly(w, req, name)
		if err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", out.ETag)
		w.WriteHeader(out.Status)
		_ = operation.JSONFormat.Marshal(w, out.Body) // the client went away: there is nobody to tell
	})
}

func (r *reports) directly(w http.ResponseWriter, req *http.Request, name string) (*objectOutput, error) {
	body, err := operation.ReadBody(w, req, r.beats.MaxBodyBytes)
	if err != nil {
		return nil, err
	}
	return r.beat(req.Context(), &heartbeatInput{Target: operation.Target{Name: name}, Payload: operation.Payload{Data: body}})
}

// plainHeartbeat is the cluster of a heartbeat without parameters, which takes any answer
// in JSON.
func (r *reports) plainHeartbeat(req *http.Request) (name string, ok bool) {
	if req.Method != r.beats.Method || req.URL.RawQuery != "" || req.URL.RawPath != "" {
		return "", false
	}
	before, after, _ := strings.Cut(r.beats.Path, "{name}")
	name, isBefore := strings.CutPrefix(req.URL.Path, before)
	name, isAfter := strings.CutSuffix(name, after)
	accept := req.Header.Get("Accept")
	return name, isBefore && isAfter && name != "" && !strings.ContainsAny(name, "/.") &&
		(accept == "" || accept == "*/*" || accept == "application/json")
}

// decodeReport decodes the body of a heartbeat, which may be empty.
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
