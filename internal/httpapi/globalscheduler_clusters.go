package httpapi

import (
	"context"
	"net/http"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	gs "github.com/scheduler/terraform-provider-scheduler/internal/httpapi/globalscheduler"
)

type globalClusterOutput struct {
	Status int
	Body   gs.ClusterAnswer
}

type globalClustersOutput struct {
	Body gs.ClusterList
}

type globalCreateInput struct {
	Payload GlobalPayload
	Wait    string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
}

type globalByID struct {
	ID string `path:"id" doc:"As the server gave it."`
}

type globalDeleteByID struct {
	ID   string `path:"id" doc:"As the server gave it."`
	Wait string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
}

type globalCluster struct {
	Name string `path:"name" doc:"Name of the cluster."`
}

type globalDeleteCluster struct {
	Name string `path:"name" doc:"Name of the cluster."`
	Wait string `query:"wait" doc:"How long to wait for the decisions that follow: 10s when absent, at most 60s, 0s not at all."`
}

// globalClusterRoutes adds the registration of clusters.
func (s *Server) globalClusterRoutes() {
	post := s.globalOperation(http.MethodPost, "/clusters", "register-cluster", "Register a cluster", http.StatusCreated, gs.ClusterAnswer{}, http.StatusConflict)
	register(s, post, s.registerCluster)
	s.describeGlobalBody(post, `The spec of a Cluster custom resource: {"name", "ipaddress", "geolocation": {"city", "province", "area", "country"}, "region": {"region", "availabilityzone"}, "operator", "flavors": [{"flavorid", "totalcapacity", "vcpus", "ram" (MiB)}], "storage": [{"typeid", "storagecapacity" (GB)}], "eipcapacity", "cpucapacity", "memcapacity" (MiB), "serverprice"}, alone, under "cluster", or with metadata and spec.`)

	list := s.globalOperation(http.MethodGet, "/clusters", "list-clusters", "List the clusters that have a region and one zone", http.StatusOK, gs.ClusterList{})
	register(s, list, s.listSites)

	byID := s.globalOperation(http.MethodGet, "/clusters/id/{id}", "get-cluster-by-id", "Read a cluster", http.StatusOK, gs.ClusterAnswer{}, http.StatusNotFound)
	register(s, byID, func(ctx context.Context, in *globalByID) (*globalClusterOutput, error) {
		return s.getSite(ctx, clusterIDIs(in.ID))
	})
	byName := s.globalOperation(http.MethodGet, "/clusters/name/{name}", "get-cluster-by-name", "Read a cluster", http.StatusOK, gs.ClusterAnswer{}, http.StatusNotFound)
	register(s, byName, func(ctx context.Context, in *globalCluster) (*globalClusterOutput, error) {
		return s.getSite(ctx, clusterNameIs(in.Name))
	})
	deleteByID := s.globalOperation(http.MethodDelete, "/clusters/id/{id}", "unregister-cluster-by-id", "Delete a cluster", http.StatusOK, gs.Result{}, http.StatusNotFound)
	register(s, deleteByID, func(ctx context.Context, in *globalDeleteByID) (*resultOutput, error) {
		return s.deleteSite(ctx, clusterIDIs(in.ID), in.Wait)
	})
	deleteByName := s.globalOperation(http.MethodDelete, "/clusters/name/{name}", "unregister-cluster-by-name", "Delete a cluster", http.StatusOK, gs.Result{}, http.StatusNotFound)
	register(s, deleteByName, func(ctx context.Context, in *globalDeleteCluster) (*resultOutput, error) {
		return s.deleteSite(ctx, clusterNameIs(in.Name), in.Wait)
	})
}

// clusterCalled says which cluster a path means.
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

func (s *Server) registerCluster(ctx context.Context, in *globalCreateInput) (*globalClusterOutput, error) {
	wait, err := parseWait(in.Wait, defaultWait)
	if err != nil {
		return nil, err
	}
	if err := checkGlobalBody(in.Payload.data); err != nil {
		return nil, err
	}
	cluster, err := gs.ParseCluster(in.Payload.data)
	if err != nil {
		return nil, badRequest(err)
	}
	if err := cluster.Validate().Err(); err != nil {
		return nil, badRequest(err)
	}
	// Of two registrations for one site, the second has to see the first.
	if err := s.registering.take(ctx); err != nil {
		return nil, err
	}
	written, err := s.createSite(ctx, cluster)
	if err == nil {
		s.settle(ctx, written.revision, 0)
	}
	s.registering.give()
	if err != nil {
		return nil, err
	}
	site, ok := s.site(auth.Of(ctx), s.settledObject(ctx, written, wait))
	if !ok {
		return nil, s.notFound(api.KeyOf(cluster)) // changed in between
	}
	return &globalClusterOutput{http.StatusCreated, gs.ClusterAnswer{Cluster: gs.ShowCluster(site)}}, nil
}

// createSite stores a cluster if its site is that of no other.
func (s *Server) createSite(ctx context.Context, cluster *api.Cluster) (*stored, error) {
	who := auth.Of(ctx)
	if err := who.MayWrite(cluster); err != nil {
		return nil, err
	}
	wanted, _ := gs.SiteOf(cluster)
	for entry := range s.fleet.Snapshot().All(api.KindCluster, "") {
		other, ok := entry.Object.(*api.Cluster)
		if !ok {
			continue
		}
		if site, ok := gs.SiteOf(other); ok && site.Region == wanted.Region && site.Zone == wanted.Zone && other.Metadata.Name != cluster.Metadata.Name {
			if !who.Sees(auth.Owners(other)...) {
				return nil, newProblem(api.ProblemSiteTaken, "site %q has a cluster already", wanted.ID())
			}
			return nil, newProblem(api.ProblemSiteTaken, "site %q has a cluster already: %q", wanted.ID(), other.Metadata.Name)
		}
	}
	return s.createOnly(ctx, cluster)
}

func (s *Server) listSites(ctx context.Context, _ *struct{}) (*globalClustersOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadNamespace(""); err != nil {
		return nil, err
	}
	out := &globalClustersOutput{gs.ClusterList{Clusters: []gs.RegisteredCluster{}}}
	for entry := range s.fleet.Snapshot().All(api.KindCluster, "") {
		if site, ok := s.site(who, entry.Object); ok {
			out.Body.Clusters = append(out.Body.Clusters, gs.ShowCluster(site))
		}
	}
	return out, nil
}

// findSite finds the cluster that a path means, among those that are sites.
func (s *Server) findSite(who auth.Identity, called clusterCalled) (gs.Site, error) {
	for entry := range s.fleet.Snapshot().All(api.KindCluster, "") {
		if !called.is(entry.Object.Meta()) {
			continue
		}
		if site, ok := s.site(who, entry.Object); ok {
			return site, nil
		}
		break
	}
	return gs.Site{}, newProblem(api.ProblemNotFound, "there is no cluster of %s that has a region and one zone", called.what)
}

func (s *Server) getSite(ctx context.Context, called clusterCalled) (*globalClusterOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadNamespace(""); err != nil {
		return nil, err
	}
	site, err := s.findSite(who, called)
	if err != nil {
		return nil, err
	}
	return &globalClusterOutput{http.StatusOK, gs.ClusterAnswer{Cluster: gs.ShowCluster(site)}}, nil
}

func (s *Server) deleteSite(ctx context.Context, called clusterCalled, waitText string) (*resultOutput, error) {
	wait, err := parseWait(waitText, defaultWait)
	if err != nil {
		return nil, err
	}
	who := auth.Of(ctx)
	if who.MayWriteKey(api.Key{Kind: api.KindCluster}) != nil {
		return nil, who.Forbidden("delete clusters")
	}
	site, err := s.findSite(who, called)
	if err != nil {
		return nil, err
	}
	return s.removed(ctx, api.KeyOf(site.Cluster), site.Cluster.Metadata.UID, wait)
}
