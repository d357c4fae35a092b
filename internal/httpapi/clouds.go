package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/openstack"
)

type reportCloudInput struct {
	Target  operation.Target
	Payload operation.Payload
	Wait    string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

type liveInput struct {
	Target  operation.Target
	Tags    []string `query:"tags" doc:"Tags that a project must all have, separated by commas."`
	Enabled bool     `query:"enabled" default:"true" doc:"false: list disabled projects instead of enabled ones."`
}

type liveOutput struct{ Body *api.LiveOpenStack }

// cloudRoutes adds the routes of clouds.
func (r *reports) cloudRoutes() {
	clouds, _ := api.LookupKind(api.KindCloud)
	path := collectionPath(clouds, false) + "/{name}"
	report := r.api.OfKind(clouds, http.MethodPut, path+"/resources", "report", "Push the capacity of a cloud's zones", r.api.Schema(&api.Cloud{}))
	report.Description = "For collectors of clouds for which the server has no credentials. A report contains the changes since the last one. 409 means that it is out of sequence, and that the next one must be full. A report without regions that repeats the last number asks whether the server still has the previous ones. A report that is too large for one request is sent in parts, of which all but the last set more. They take effect with the last part."
	report.Responses["204"] = &huma.Response{Description: "The report contains nothing new"}
	report.MaxBodyBytes = r.api.MaxBody
	operation.Register(r.api, operation.Routine(operation.AtLeader(report)), r.reportCloud)
	r.api.DescribeBody(report, r.api.Schema(api.CloudReport{}), true)

	live := r.api.OfKind(clouds, http.MethodGet, path+"/openstack-projects", "list-openstack-projects-of", "List the projects and cluster templates that currently exist in the OpenStack of a cloud", r.api.Schema(api.LiveOpenStack{}))
	live.Errors = append(live.Errors, http.StatusConflict, http.StatusBadGateway)
	operation.Register(r.api, operation.AtLeader(live), r.liveOpenStack)
}

// cloud returns the cloud in a path.
func (r *reports) cloud(key api.Key) (*api.Cloud, error) {
	entry := r.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil, r.view.notFound(key)
	}
	cloud, ok := entry.Object.(*api.Cloud)
	if !ok {
		return nil, r.view.notFound(key)
	}
	return cloud, nil
}

func (r *reports) reportCloud(ctx context.Context, in *reportCloudInput) (*objectOutput, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	if err := who.MayReportAtAll(api.KindCloud); err != nil {
		return nil, err
	}
	key := in.Target.Key(api.KindCloud)
	cloud, err := r.cloud(key)
	if err != nil {
		return nil, err
	}
	if err := who.MayReport(cloud); err != nil {
		return nil, err
	}
	var report api.CloudReport
	if err := operation.Decode(in.Payload.Data, &report); err != nil {
		return nil, err
	}
	if err := report.Validate().Err(); err != nil {
		return nil, err
	}
	revision, changed, err := r.signals.ReportCloud(ctx, key.Name, report)
	wrong, outOfOrder := errors.AsType[*openstack.SequenceError](err)
	switch {
	case errors.Is(err, openstack.ErrNotFound):
		return nil, r.view.notFound(key) // deleted in between
	case errors.Is(err, openstack.ErrCollected):
		return nil, problem.New(api.ProblemInvalid, "%s: %s; remove the credentials to push its capacity", key, openstack.ErrCollected)
	case outOfOrder:
		return nil, problem.New(api.ProblemReportOutOfOrder, "%s: %s", key, wrong)
	case err != nil:
		return nil, err
	case !changed:
		return &objectOutput{Status: http.StatusNoContent}, nil
	}
	return r.changes.outcome(ctx, &stored{object: cloud, revision: revision}, wait, http.StatusOK), nil
}

func (r *reports) liveOpenStack(ctx context.Context, in *liveInput) (*liveOutput, error) {
	key := in.Target.Key(api.KindCloud)
	who := auth.Of(ctx)
	if err := r.rights.MayReadKey(who, key); err != nil {
		return nil, err
	}
	cloud, err := r.cloud(key)
	if err != nil {
		return nil, err
	}
	// The projects of a cloud belong to all of its users, not only to the namespaces that may see
	// the cloud.
	if err := who.MayRead(cloud); err != nil || !who.ReadsEvery(api.KindCloud) && len(auth.Owners(cloud)) == 0 {
		return nil, who.Forbidden("list the projects of " + key.String())
	}
	for _, tag := range in.Tags {
		if strings.TrimSpace(tag) == "" {
			return nil, problem.Invalid("tags", "a tag must not be empty")
		}
	}
	live, err := r.signals.LiveOpenStack(ctx, key.Name, api.LiveOptions{Tags: in.Tags, Disabled: !in.Enabled})
	failure, refused := errors.AsType[*openstack.Failure](err)
	switch {
	case errors.Is(err, openstack.ErrNotFound):
		return nil, r.view.notFound(key)
	case errors.Is(err, openstack.ErrNoCredentials):
		return nil, problem.New(api.ProblemNoCredentials, "%s has no credentials: set spec.openstack, so that the server can query its OpenStack", key)
	case refused:
		return nil, problem.New(api.ProblemCloudUnreachable, "%s: %s", key, failure)
	case err != nil:
		return nil, err
	}
	return &liveOutput{Body: live}, nil
}
