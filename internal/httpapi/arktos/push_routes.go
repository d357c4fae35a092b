package arktos

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

type pushInput struct {
	Payload Payload
	Wait    string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

type pushRegionInput struct {
	Region  string `path:"region" doc:"Name of the region."`
	Payload Payload
	Wait    string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

type pushOutput struct {
	Status int
	Body   *PushResult
}

// pushRoutes adds the routes of collectors.
func (h *handler) pushRoutes() {
	// The specification has PATCH, but existing collectors send POST.
	for _, verb := range []struct{ method, id string }{{http.MethodPatch, "patch"}, {http.MethodPost, "post"}} {
		region := h.pushOperation(verb.method, "/regionresources/{region}", verb.id+"-region", "Push what is available in the zones of a region")
		operation.Register(h.api, region, func(ctx context.Context, in *pushRegionInput) (*pushOutput, error) {
			return h.push(ctx, in.Payload.Data, in.Wait, func(data []byte) ([]pushedFigures, error) { return parseRegion(in.Region, data) })
		})
		h.describeBody(region, `{"CPUMemResources": [{"AvailabilityZone", "CpuCapacity", "MemCapacity" (MiB), "EipCapacity"}], "VolumeResources": [{"TypeId", "StorageCapacity" (GB)}]}: all of it optional, in any case, alone or under "siteresource" or "regionresource".`)

		regions := h.pushOperation(verb.method, "/regionresources", verb.id+"-regions", "Push what is available in several regions")
		operation.Register(h.api, regions, func(ctx context.Context, in *pushInput) (*pushOutput, error) {
			return h.push(ctx, in.Payload.Data, in.Wait, parseRegions)
		})
		h.describeBody(regions, `{"regionresources": [{"regionname", …}]}, each as for one region.`)

		sites := h.pushOperation(verb.method, "/siteresources/update", verb.id+"-sites", "Push what is available at sites")
		operation.Register(h.api, sites, func(ctx context.Context, in *pushInput) (*pushOutput, error) {
			return h.push(ctx, in.Payload.Data, in.Wait, parseSites)
		})
		h.describeBody(sites, `{"SiteResources": [{"SiteID" (<region>--<zone>), "CPUCapacity", "MemCapacity" (MiB), "EipCapacity", "Storage": [{"TypeID", "StorageCapacity" (GB)}]}]}`)
	}
}

func (h *handler) pushOperation(method, path, id, summary string) huma.Operation {
	op := operation.Declare(auth.AccessReport, h.operation(method, path, id, summary, http.StatusOK, PushResult{}, http.StatusNotFound, http.StatusConflict))
	op.Responses["204"] = &huma.Response{Description: "Nothing differs from what the server already has"}
	return operation.Routine(op)
}

// reportsAtOnce limits how many sites of one push are stored concurrently.
const reportsAtOnce = 64

// push accepts amounts available at sites. Nothing is applied unless all regions and zones in it
// are known.
func (h *handler) push(ctx context.Context, data []byte, waitText string, parse func(data []byte) ([]pushedFigures, error)) (*pushOutput, error) {
	wait, err := operation.ParseWait(waitText, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	if err := who.MayReportAtAll(api.KindCluster); err != nil {
		return nil, err
	}
	if err := checkBody(data); err != nil {
		return nil, err
	}
	figures, err := parse(data)
	if err != nil {
		return nil, badRequest(err)
	}
	reports, err := h.resolve(who, figures)
	if err != nil {
		return nil, err
	}
	changed := make([]PushedAmount, len(reports))
	revisions := make([]int64, len(reports))
	group, gathered := errgroup.WithContext(ctx)
	group.SetLimit(reportsAtOnce)
	for i := range reports {
		group.Go(func() error {
			return h.faults.Component("http").Do("", func() (err error) {
				changed[i], revisions[i], err = h.report(gathered, &reports[i])
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := &pushOutput{Status: http.StatusOK, Body: &PushResult{Result: resultOK}}
	latest := int64(0)
	for i := range changed {
		if len(changed[i].Available) > 0 {
			out.Body.Sites = append(out.Body.Sites, changed[i])
			latest = max(latest, revisions[i])
		}
	}
	if latest == 0 {
		return &pushOutput{Status: http.StatusNoContent}, nil
	}
	h.backend.Await(ctx, latest, wait)
	return out, nil
}

// resolve finds the sites of a push, and checks that all of them may be reported. For a whole
// region, sites of others are left out.
func (h *handler) resolve(who auth.Identity, figures []pushedFigures) ([]siteReport, error) {
	var mine, others []zoneSite
	for entry := range h.fleet.Snapshot().All(api.KindCluster, "") {
		cluster, ok := entry.Object.(*api.Cluster)
		if !ok {
			continue
		}
		site, ok := siteOf(cluster)
		switch {
		case !ok:
		case who.MayReport(cluster) == nil:
			mine = append(mine, site)
		default:
			others = append(others, site)
		}
	}
	reports, err := resolveSites(figures, mine)
	if _, unknown := errors.AsType[*unknownError](err); unknown && len(others) > 0 {
		// It may exist but belong to others.
		if theirs, err := resolveSites(figures, append(mine, others...)); err == nil {
			for _, r := range theirs {
				if who.MayReport(r.Site.Cluster) != nil {
					return nil, who.Forbidden("report for site \"" + r.Site.ID() + "\"")
				}
			}
		}
	}
	if err == nil {
		return reports, nil
	}
	if unknown, ok := errors.AsType[*unknownError](err); ok {
		return nil, problem.New(api.ProblemNotFound, "%s", unknown)
	}
	if _, wrong := errors.AsType[api.FieldErrors](err); wrong {
		return nil, badRequest(err)
	}
	return nil, problem.New(api.ProblemConflict, "%s", err)
}

// report stores the amounts of one site that differ from the stored ones.
func (h *handler) report(ctx context.Context, r *siteReport) (PushedAmount, int64, error) {
	key := api.KeyOf(r.Site.Cluster)
	current, err := h.backend.Load(ctx, key)
	if err != nil {
		return PushedAmount{}, 0, err
	}
	if current == nil {
		return PushedAmount{}, 0, h.backend.NotFound(key)
	}
	cluster, ok := current.(*api.Cluster)
	if !ok {
		return PushedAmount{}, 0, h.backend.NotFound(key)
	}
	pushed := PushedAmount{SiteID: r.Site.ID(), Cluster: key.Name, Available: changedFigures(cluster, r.Available)}
	if len(pushed.Available) == 0 {
		return pushed, 0, nil
	}
	amounts := clusterhealth.Amounts{Allocatable: r.Available, Allocated: api.Quantities{}, Complete: completed(r.Available, pushed.Available)}
	for name := range r.Available {
		amounts.Allocated[name] = "0"
	}
	revision, err := h.backend.Report(ctx, key.Name, amounts)
	if err != nil && (errors.Is(err, clusterhealth.ErrNotFound) || h.fleet.Snapshot().Get(key) == nil) {
		return PushedAmount{}, 0, h.backend.NotFound(key) // deleted in between
	}
	return pushed, revision, err
}
