package arktos

import (
	"context"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

type clusterOutput struct {
	Status int
	Body   ClusterAnswer
}

type clustersOutput struct {
	Body ClusterList
}

type createInput struct {
	Payload Payload
	Wait    string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

type byIDInput struct {
	ID string `path:"id" doc:"ID that the server assigned."`
}

type deleteByIDInput struct {
	ID   string `path:"id" doc:"ID that the server assigned."`
	Wait string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

type clusterByNameInput struct {
	Name string `path:"name" doc:"Name of the cluster."`
}

type deleteClusterByNameInput struct {
	Name string `path:"name" doc:"Name of the cluster."`
	Wait string `query:"wait" doc:"How long to wait for the resulting decisions: default 10s, at most 60s, 0s to not wait."`
}

// clusterRoutes adds the routes for registering clusters.
func (h *handler) clusterRoutes() {
	post := h.operation(http.MethodPost, "/clusters", "register-cluster", "Register a cluster", http.StatusCreated, ClusterAnswer{}, http.StatusConflict)
	operation.Register(h.api, post, h.registerCluster)
	h.describeBody(post, `The spec of a Cluster custom resource: {"name", "ipaddress", "geolocation": {"city", "province", "area", "country"}, "region": {"region", "availabilityzone"}, "operator", "flavors": [{"flavorid", "totalcapacity", "vcpus", "ram" (MiB)}], "storage": [{"typeid", "storagecapacity" (GB)}], "eipcapacity", "cpucapacity", "memcapacity" (MiB), "serverprice"}, alone, under "cluster", or with metadata and spec.`)

	list := h.operation(http.MethodGet, "/clusters", "list-clusters", "List the clusters that have a region and one zone", http.StatusOK, ClusterList{})
	operation.Register(h.api, list, h.listSites)

	byID := h.operation(http.MethodGet, "/clusters/id/{id}", "get-cluster-by-id", "Read a cluster", http.StatusOK, ClusterAnswer{}, http.StatusNotFound)
	operation.Register(h.api, byID, func(ctx context.Context, in *byIDInput) (*clusterOutput, error) {
		return h.getSite(ctx, clusterIDIs(in.ID))
	})
	byName := h.operation(http.MethodGet, "/clusters/name/{name}", "get-cluster-by-name", "Read a cluster", http.StatusOK, ClusterAnswer{}, http.StatusNotFound)
	operation.Register(h.api, byName, func(ctx context.Context, in *clusterByNameInput) (*clusterOutput, error) {
		return h.getSite(ctx, clusterNameIs(in.Name))
	})
	deleteByID := h.operation(http.MethodDelete, "/clusters/id/{id}", "unregister-cluster-by-id", "Delete a cluster", http.StatusOK, Result{}, http.StatusNotFound)
	operation.Register(h.api, deleteByID, func(ctx context.Context, in *deleteByIDInput) (*resultOutput, error) {
		return h.deleteSite(ctx, clusterIDIs(in.ID), in.Wait)
	})
	deleteByName := h.operation(http.MethodDelete, "/clusters/name/{name}", "unregister-cluster-by-name", "Delete a cluster", http.StatusOK, Result{}, http.StatusNotFound)
	operation.Register(h.api, deleteByName, func(ctx context.Context, in *deleteClusterByNameInput) (*resultOutput, error) {
		return h.deleteSite(ctx, clusterNameIs(in.Name), in.Wait)
	})
}

// clusterCalled identifies a cluster in a path.
type clusterCalled struct {
	what string
	is   func(meta *api.Metadata) bool
}

func clusterIDIs(id string) clusterCalled {
	return clusterCalled{"id \"" + id + "\"", func(m *api.Metadata) bool { return m.UID == id }}
}

func clusterNameIs(name string) clusterCalled {
	return clusterCalled{"name \"" + name + "\"", func(m *api.Metadata) bool { return m.Name == name }}
}

func (h *handler) registerCluster(ctx context.Context, in *createInput) (*clusterOutput, error) {
	wait, err := operation.ParseWait(in.Wait, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	if err := checkBody(in.Payload.Data); err != nil {
		return nil, err
	}
	cluster, err := parseCluster(in.Payload.Data)
	if err != nil {
		return nil, badRequest(err)
	}
	if err := cluster.Validate().Err(); err != nil {
		return nil, badRequest(err)
	}
	// Of two registrations for one site, the second must see the first.
	if err := h.registering.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	written, revision, err := h.createSite(ctx, cluster)
	if err == nil {
		h.backend.Await(ctx, revision, 0)
	}
	h.registering.Release(1)
	if err != nil {
		return nil, err
	}
	site, ok := h.site(auth.Of(ctx), h.decided(ctx, written, revision, wait))
	if !ok {
		return nil, h.backend.NotFound(api.KeyOf(cluster)) // changed in between
	}
	return &clusterOutput{http.StatusCreated, ClusterAnswer{Cluster: showCluster(site)}}, nil
}

// createSite stores a cluster if no other cluster has its site.
func (h *handler) createSite(ctx context.Context, cluster *api.Cluster) (created api.Object, revision int64, err error) {
	who := auth.Of(ctx)
	if err := who.MayWrite(cluster); err != nil {
		return nil, 0, err
	}
	wanted, _ := siteOf(cluster)
	for entry := range h.fleet.Snapshot().All(api.KindCluster, "") {
		other, ok := entry.Object.(*api.Cluster)
		if !ok {
			continue
		}
		if site, ok := siteOf(other); ok && site.Region == wanted.Region && site.Zone == wanted.Zone && other.Metadata.Name != cluster.Metadata.Name {
			if !who.Reads(api.KindCluster, auth.Owners(other)...) {
				return nil, 0, problem.New(api.ProblemSiteTaken, "site %q has a cluster already", wanted.ID())
			}
			return nil, 0, problem.New(api.ProblemSiteTaken, "site %q has a cluster already: %q", wanted.ID(), other.Metadata.Name)
		}
	}
	return h.backend.Create(ctx, cluster)
}

func (h *handler) listSites(ctx context.Context, _ *struct{}) (*clustersOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadKind(api.KindCluster); err != nil {
		return nil, err
	}
	out := &clustersOutput{ClusterList{Clusters: []RegisteredCluster{}}}
	for entry := range h.fleet.Snapshot().All(api.KindCluster, "") {
		if site, ok := h.site(who, entry.Object); ok {
			out.Body.Clusters = append(out.Body.Clusters, showCluster(site))
		}
	}
	return out, nil
}

// findSite finds the cluster in a path among those that are sites.
func (h *handler) findSite(who auth.Identity, called clusterCalled) (zoneSite, error) {
	for entry := range h.fleet.Snapshot().All(api.KindCluster, "") {
		if !called.is(entry.Object.Meta()) {
			continue
		}
		if site, ok := h.site(who, entry.Object); ok {
			return site, nil
		}
		break
	}
	return zoneSite{}, problem.New(api.ProblemNotFound, "there is no cluster of %s that has a region and one zone", called.what)
}

func (h *handler) getSite(ctx context.Context, called clusterCalled) (*clusterOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadKind(api.KindCluster); err != nil {
		return nil, err
	}
	site, err := h.findSite(who, called)
	if err != nil {
		return nil, err
	}
	return &clusterOutput{http.StatusOK, ClusterAnswer{Cluster: showCluster(site)}}, nil
}

func (h *handler) deleteSite(ctx context.Context, called clusterCalled, waitText string) (*resultOutput, error) {
	wait, err := operation.ParseWait(waitText, operation.DefaultWait)
	if err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	if who.MayDeleteKey(api.Key{Kind: api.KindCluster}) != nil {
		return nil, who.Forbidden("delete clusters")
	}
	site, err := h.findSite(who, called)
	if err != nil {
		return nil, err
	}
	return h.removed(ctx, api.KeyOf(site.Cluster), site.Cluster.Metadata.UID, wait)
}
