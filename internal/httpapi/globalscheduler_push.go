package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	gs "github.com/scheduler/terraform-provider-scheduler/internal/httpapi/globalscheduler"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

type pushInput struct {
	Payload GlobalPayload
	Wait    string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
}

type pushRegionInput struct {
	Region  string `path:"region" doc:"Name of the region."`
	Payload GlobalPayload
	Wait    string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
}

type pushOutput struct {
	Status int
	Body   *gs.PushResult
}

// globalPushRoutes adds the ways in which collectors push figures.
func (s *Server) globalPushRoutes() {
	// The document has PATCH; collectors were written that send POST.
	for _, verb := range []struct{ method, id string }{{http.MethodPatch, "patch"}, {http.MethodPost, "post"}} {
		region := s.pushOperation(verb.method, "/regionresources/{region}", verb.id+"-region", "Push what is available in the zones of a region")
		register(s, region, func(ctx context.Context, in *pushRegionInput) (*pushOutput, error) {
			return s.push(ctx, in.Payload.data, in.Wait, func(data []byte) ([]gs.Figures, error) { return gs.ParseRegion(in.Region, data) })
		})
		s.describeGlobalBody(region, `{"CPUMemResources": [{"AvailabilityZone", "CpuCapacity", "MemCapacity" (MiB), "EipCapacity"}], "VolumeResources": [{"TypeId", "StorageCapacity" (GB)}]}: all of it optional, in any case, alone or under "siteresource" or "regionresource".`)

		regions := s.pushOperation(verb.method, "/regionresources", verb.id+"-regions", "Push what is available in several regions")
		register(s, regions, func(ctx context.Context, in *pushInput) (*pushOutput, error) {
			return s.push(ctx, in.Payload.data, in.Wait, gs.ParseRegions)
		})
		s.describeGlobalBody(regions, `{"regionresources": [{"regionname", …}]}, each as for one region.`)

		sites := s.pushOperation(verb.method, "/siteresources/update", verb.id+"-sites", "Push what is available at sites")
		register(s, sites, func(ctx context.Context, in *pushInput) (*pushOutput, error) {
			return s.push(ctx, in.Payload.data, in.Wait, gs.ParseSites)
		})
		s.describeGlobalBody(sites, `{"SiteResources": [{"SiteID" (<region>--<zone>), "CPUCapacity", "MemCapacity" (MiB), "EipCapacity", "Storage": [{"TypeID", "StorageCapacity" (GB)}]}]}`)
	}
}

func (s *Server) pushOperation(method, path, id, summary string) huma.Operation {
	op := accessReport.declares(s.globalOperation(method, path, id, summary, http.StatusOK, gs.PushResult{}, http.StatusNotFound, http.StatusConflict))
	op.Responses["204"] = &huma.Response{Description: "Nothing in it differs from what is known"}
	return op
}

// reportsAtOnce bounds how many sites of one push are stored at the same time.
const reportsAtOnce = 64

// push takes in what is available at sites. Nothing of a push is applied unless
// all that it is about is known.
func (s *Server) push(ctx context.Context, data []byte, waitText string, parse func(data []byte) ([]gs.Figures, error)) (*pushOutput, error) {
	wait, err := parseWait(waitText, defaultWait)
	if err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	if err := who.MayReportAtAll(); err != nil {
		return nil, err
	}
	if err := checkGlobalBody(data); err != nil {
		return nil, err
	}
	figures, err := parse(data)
	if err != nil {
		return nil, badRequest(err)
	}
	reports, err := s.resolve(who, figures)
	if err != nil {
		return nil, err
	}
	changed := make([]gs.PushedAmount, len(reports))
	revisions := make([]int64, len(reports))
	group, gathered := errgroup.WithContext(ctx)
	group.SetLimit(reportsAtOnce)
	for i := range reports {
		group.Go(func() error {
			return s.options.Faults.Component("http").Do("", func() (err error) {
				changed[i], revisions[i], err = s.report(gathered, &reports[i])
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := &pushOutput{Status: http.StatusOK, Body: &gs.PushResult{Result: gs.ResultOK}}
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
	s.settle(ctx, latest, wait)
	return out, nil
}

// resolve finds the sites that figures are about, and checks that all of them may
// be reported for. Those of others are left out of what concerns a whole region.
func (s *Server) resolve(who auth.Identity, figures []gs.Figures) ([]gs.Report, error) {
	var mine, others []gs.Site
	for entry := range s.fleet.Snapshot().All(api.KindCluster, "") {
		cluster, ok := entry.Object.(*api.Cluster)
		if !ok {
			continue
		}
		site, ok := gs.SiteOf(cluster)
		switch {
		case !ok:
		case who.MayReport(cluster) == nil:
			mine = append(mine, site)
		default:
			others = append(others, site)
		}
	}
	reports, err := gs.Resolve(figures, mine)
	if _, unknown := errors.AsType[*gs.UnknownError](err); unknown && len(others) > 0 {
		// It may be known, but not be theirs.
		if theirs, err := gs.Resolve(figures, append(mine, others...)); err == nil {
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
	if unknown, ok := errors.AsType[*gs.UnknownError](err); ok {
		return nil, newProblem(api.ProblemNotFound, "%s", unknown)
	}
	if _, wrong := errors.AsType[api.FieldErrors](err); wrong {
		return nil, badRequest(err)
	}
	return nil, newProblem(api.ProblemConflict, "%s", err)
}

// report stores what a push says about one site, as far as it differs from what
// the store has.
func (s *Server) report(ctx context.Context, r *gs.Report) (gs.PushedAmount, int64, error) {
	key := api.KeyOf(r.Site.Cluster)
	current, err := s.load(ctx, key)
	if err != nil {
		return gs.PushedAmount{}, 0, err
	}
	if current == nil {
		return gs.PushedAmount{}, 0, s.notFound(key)
	}
	cluster, ok := current.object.(*api.Cluster)
	if !ok {
		return gs.PushedAmount{}, 0, s.notFound(key)
	}
	pushed := gs.PushedAmount{SiteID: r.Site.ID(), Cluster: key.Name, Available: gs.Changed(cluster, r.Available)}
	if len(pushed.Available) == 0 {
		return pushed, 0, nil
	}
	amounts := clusterhealth.Amounts{Allocatable: r.Available, Allocated: api.Quantities{}, Complete: gs.Complete(r.Available, pushed.Available)}
	for name := range r.Available {
		amounts.Allocated[name] = "0"
	}
	revision, err := s.signals.Report(ctx, key.Name, amounts)
	if err != nil && s.fleet.Snapshot().Get(key) == nil {
		return gs.PushedAmount{}, 0, s.notFound(key) // deleted in between
	}
	return pushed, revision, err
}
