package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

// reports accepts the reports of agents and collectors.
type reports struct {
	api       *operation.API
	fleet     *fleet.Fleet
	rights    auth.Rights
	decisions Decisions
	signals   Signals
	relay     *relay
	view      *view
	changes   *changes

	// beats is the operation of heartbeats, and beat what it does.
	beats huma.Operation
	beat  func(context.Context, *heartbeatInput) (*objectOutput, error)
}

// routes adds the routes of agents.
func (r *reports) routes() {
	clusters, _ := api.LookupKind(api.KindCluster)
	heartbeat := r.api.OfKind(clusters, http.MethodPost, collectionPath(clusters, false)+"/{name}/heartbeat", "report", "Report that a cluster is alive, and its amounts", r.api.Schema(&api.Cluster{}))
	heartbeat.MaxBodyBytes = r.api.MaxBody
	r.beats, r.beat = heartbeat, operation.Register(r.api, operation.Routine(operation.AtLeader(heartbeat)), r.heartbeat)
	r.api.DescribeBody(heartbeat, r.api.Schema(api.Heartbeat{}), false)

	for _, kind := range api.StagedKinds {
		info, _ := api.LookupKind(kind)
		path := collectionPath(info, true) + "/{name}"
		health := r.api.OfKind(info, http.MethodPut, path+"/health", "report-health", "Report how a "+string(kind)+" is doing on one of its clusters", r.api.Schema(info.New()))
		health.MaxBodyBytes = r.api.MaxBody
		operation.Register(r.api, operation.Routine(operation.AtLeader(health)), func(ctx context.Context, in *reportHealthInput) (*objectOutput, error) {
			return r.reportHealth(ctx, info, in)
		})
		r.api.DescribeBody(health, r.api.Schema(api.HealthReport{}), true)

		approve := r.api.OfKind(info, http.MethodPost, path+"/approve", "approve", "Approve steps of the rollout of a "+string(kind)+", or try one again", r.api.Schema(info.New()))
		approve.MaxBodyBytes = r.api.MaxBody
		operation.Register(r.api, operation.AtLeader(approve), func(ctx context.Context, in *approveInput) (*objectOutput, error) {
			return r.approve(ctx, info, in)
		})
		r.api.DescribeBody(approve, r.api.Schema(api.RolloutApproval{}), true)
	}
	r.cloudRoutes()
}
