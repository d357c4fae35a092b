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

	workloads, _ := api.LookupKind(api.KindWorkload)
	health := r.api.OfKind(workloads, http.MethodPut, collectionPath(workloads, true)+"/{name}/health", "report-health", "Report how a workload is doing on one of its clusters", r.api.Schema(&api.Workload{}))
	health.MaxBodyBytes = r.api.MaxBody
	operation.Register(r.api, operation.Routine(operation.AtLeader(health)), r.reportHealth)
	r.api.DescribeBody(health, r.api.Schema(api.HealthReport{}), true)
	r.cloudRoutes()
}
