package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/supply"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

type demandInput struct {
	Namespace string `query:"namespace" doc:"Only what is demanded in this namespace."`
}

type demandOutput struct {
	Body *api.DemandList
}

// demands lists the clusters that placements and workloads lack.
type demands struct {
	api    *operation.API
	fleet  *fleet.Fleet
	rights auth.Rights
}

func (d *demands) routes() {
	operation.Register(d.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "list-demand", Method: http.MethodGet, Path: "/v1/demand", Tags: []string{"decision"},
		Summary:     "List the clusters that would satisfy what is open",
		Description: "One entry for each cluster that a placement or workload lacks, with a name that stays the same. A cluster that was made for a demand, which its spec.demand says, stays in the list while the object uses it or still lacks it, so that whoever follows the list does not remove it.",
		Errors:      []int{http.StatusUnprocessableEntity},
	}), d.list)
}

func (d *demands) list(ctx context.Context, in *demandInput) (*demandOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadSomething(); err != nil {
		return nil, err
	}
	var kinds []api.Kind
	var refused error
	for _, kind := range summarizedKinds {
		if err := d.rights.MayReadKey(who, api.Key{Kind: kind, Namespace: in.Namespace}); err != nil {
			refused = err
		} else {
			kinds = append(kinds, kind)
		}
	}
	if in.Namespace != "" && len(kinds) == 0 {
		return nil, refused
	}
	snapshot := d.fleet.Snapshot()
	get := func(key api.Key) api.Object {
		if entry := snapshot.Get(key); entry != nil {
			return entry.Object
		}
		return nil
	}
	made := map[api.Key]bool{}
	var clusters []*api.Cluster
	for entry := range snapshot.All(api.KindCluster, "") {
		if c, ok := entry.Object.(*api.Cluster); ok && supply.MadeFor(c) {
			clusters = append(clusters, c)
			made[c.Spec.Demand.Of()] = true
		}
	}
	var open []supply.Open
	for _, kind := range kinds {
		for entry := range snapshot.All(kind, in.Namespace) {
			if !d.rights.Reads(who, entry.Object) || snapshot.Damaged(api.KeyOf(entry.Object)) != nil {
				continue
			}
			if o, ok := supply.OpenOf(entry.Object, get); ok && (o.Demand != nil || made[o.Key]) {
				open = append(open, o)
			}
		}
	}
	list := &api.DemandList{ResourceVersion: strconv.FormatInt(snapshot.Revision(), 10)}
	list.Items, list.Obstructed = supply.List(open, clusters, func(name string) bool {
		return get(api.Key{Kind: api.KindCluster, Name: name}) != nil
	})
	if list.Items == nil {
		list.Items = []api.DemandedCluster{}
	}
	return &demandOutput{list}, nil
}
