package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/declare"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

type demandAnswer struct{ api.DemandList }

func (l *demandAnswer) names() (names []string) {
	for _, c := range l.Items {
		names = append(names, c.Name+" "+string(c.State))
	}
	return names
}

// demanded returns what is demanded.
func (s *testServer) demanded(query string) []string {
	s.t.Helper()
	list := decodeAs[demandAnswer](s.t, s.do(http.MethodGet, "/v1/demand"+query, ""))
	return list.names()
}

// declaring runs what declares clusters, until the test ends or stop is called.
func (s *testServer) declaring() (stop func()) {
	s.t.Helper()
	r := declare.New(declare.Options{
		Fleet: s.fleet, Decisions: s.options.Decisions, Store: s.store, Codec: s.codec, Logger: slog.New(slog.NewTextHandler(s.logs, nil)), Now: time.Now,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			s.t.Errorf("run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	s.t.Cleanup(stop)
	return stop
}

// A placement says what it lacks, and the list of demands keeps a cluster that was made for it.
func TestDemandIsListed(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	web := "/v1/namespaces/shop/placements/web"
	spec := `{"spec":{"number_of_clusters":1,"label_constraints":["location in (DE, FR)"],"resource_requests":{"cpu":"4"}}}`
	demand := decodeAs[api.Placement](t, s.mustPut(web, spec)).Status.Demand
	if demand == nil || demand.Clusters != 1 || demand.Labels["location"] != "DE" || demand.Resources["cpu"] != "4" || len(demand.Choices) != 1 || len(demand.Choices[0].Values) != 2 {
		t.Fatalf("demand %+v", demand)
	}
	x := decodeAs[api.Explanation](t, s.do(http.MethodGet, web+"/explanation", ""))
	if !x.Demand.Equal(demand) {
		t.Errorf("explained as %+v", x.Demand)
	}
	preview := decodeAs[api.Preview](t, s.do(http.MethodPost, "/v1/previews", `{"kind":"placement","metadata":{"namespace":"shop","name":"new"},`+spec[1:]))
	if preview.Demand == nil || preview.Demand.Clusters != 1 {
		t.Errorf("previewed as %+v", preview.Demand)
	}
	s.mustPut("/v1/namespaces/ads/placements/ad", `{"spec":{"cluster_names":["nowhere"]}}`)
	list := decodeAs[demandAnswer](t, s.do(http.MethodGet, "/v1/demand?namespace=shop", ""))
	if fmt.Sprint(list.names()) != "[web open]" {
		t.Fatalf("demanded %v", list.names())
	}
	c := list.Items[0]
	const made = `{"metadata":{"labels":{"location":"DE"}},"spec":{"allocatable":{"cpu":"8"},"demand":{"kind":"placement","namespace":"shop","name":"web","labels":{"location":"DE"},"resources":{"cpu":"4"}}}}`
	s.mustPut("/v1/clusters/"+c.Cluster, made)
	after := decodeAs[api.Placement](t, s.do(http.MethodGet, web, ""))
	if after.Status.Demand != nil || len(after.Status.Clusters) != 1 {
		t.Errorf("status %+v", after.Status)
	}
	list = decodeAs[demandAnswer](t, s.do(http.MethodGet, "/v1/demand?namespace=shop", ""))
	if fmt.Sprint(list.names()) != "[web made]" || list.Items[0].Cluster != c.Cluster || list.Items[0].Resources["cpu"] != "4" {
		t.Errorf("demanded %+v", list.Items)
	}
	// Who reads one namespace sees nothing of others.
	s.token = s.addToken(auth.RoleViewer, "ads")
	if got := s.demanded(""); fmt.Sprint(got) != "[ad open]" {
		t.Errorf("a viewer of ads sees %v", got)
	}
	if a := s.do(http.MethodGet, "/v1/demand?namespace=shop", ""); a.StatusCode != http.StatusForbidden {
		t.Errorf("another namespace: %d", a.StatusCode)
	}
}

// The server declares a cluster for a placement, once, binds it to a cloud, and removes it when nothing demands it.
func TestClustersAreDeclared(t *testing.T) {
	s := withClouds(t)
	web := "/v1/namespaces/shop/placements/web"
	spec := func(wanted int) string {
		return fmt.Sprintf(`{"spec":{"number_of_clusters":%d,"label_constraints":["tier is edge"],"auto_cluster":{"template":{"labels":{"team":"shop"}},"label_constraints":["location is IT"]}}}`, wanted)
	}
	declared := func() (list []*api.Cluster) {
		for entry := range s.fleet.Snapshot().All(api.KindCluster, "") {
			if c, ok := entry.Object.(*api.Cluster); ok && c.Metadata.Declared {
				list = append(list, c)
			}
		}
		return list
	}
	s.mustPut(web, spec(1))
	stop := s.declaring()
	eventually.True(t, "clusters are declared", func() bool { list := declared(); return len(list) == 1 && list[0].Status.Cloud == "south" })
	c := declared()[0]
	if c.Metadata.Labels["tier"] != "edge" || c.Metadata.Labels["team"] != "shop" || c.Spec.Namespace != "shop" {
		t.Errorf("cluster %+v", c)
	}
	if got := decodeAs[api.Placement](t, s.do(http.MethodGet, web, "")).Status.Clusters; len(got) > 0 {
		t.Errorf("it is on %v before that is real", got)
	}
	// Another leader declares nothing again.
	stop()
	s.declaring()
	s.mustPut("/v1/namespaces/shop/placements/db", `{"spec":{"number_of_clusters":1,"label_constraints":["tier is edge"],"auto_cluster":{}}}`)
	s.mustPut("/v1/namespaces/shop/placements/ai", `{"spec":{"number_of_clusters":1,"label_constraints":["tier is gpu"],"auto_cluster":{}}}`)
	eventually.True(t, "clusters are declared", func() bool { return len(declared()) > 1 })
	if list := declared(); len(list) != 2 {
		t.Errorf("%d clusters are declared, want one for web and db, and one for ai", len(list))
	}
	// What nothing demands any more goes, and what a user has written stays.
	s.mustPut("/v1/clusters/"+c.Metadata.Name, `{"metadata":{"labels":{"tier":"edge"}},"spec":{"allocatable":{"cpu":"4"}}}`, "If-None-Match", "*")
	if got := decodeAs[api.Placement](t, s.do(http.MethodGet, web, "")).Status.Clusters; len(got) != 1 || got[0] != c.Metadata.Name {
		t.Errorf("web is on %v, want the adopted cluster", got)
	}
	s.do(http.MethodDelete, "/v1/namespaces/shop/placements/ai", "")
	s.do(http.MethodDelete, web, "")
	eventually.True(t, "clusters are declared", func() bool { return len(declared()) == 0 })
	if s.fleet.Snapshot().Get(api.Key{Kind: api.KindCluster, Name: c.Metadata.Name}) == nil {
		t.Error("the adopted cluster is gone")
	}
}

// Whoever has the server declare clusters must be allowed to write such clusters.
func TestDeclaringNeedsTheRightToWriteClusters(t *testing.T) {
	role := narrow{verb: auth.VerbWrite, kind: api.KindPlacement}
	s := startServer(t, authenticated, func(o *Options) { o.Roles = auth.NewRoles([]auth.RoleDefinition{role.definition()}) })
	const declares, plain = `{"spec":{"auto_cluster":{}}}`, `{"spec":{}}`
	for _, test := range []struct {
		name       string
		role       auth.Role
		namespaces []string
		body       string
		want       int
	}{
		{"writes placements alone", role.definition().Name, nil, declares, http.StatusForbidden},
		{"declares nothing", role.definition().Name, nil, plain, http.StatusCreated},
		{"edits the namespace", auth.RoleEditor, []string{"shop"}, declares, http.StatusOK},
	} {
		s.token = s.addToken(test.role, test.namespaces...)
		if a := s.do(http.MethodPut, "/v1/namespaces/shop/placements/web?wait=0s", test.body); a.StatusCode != test.want {
			t.Errorf("%s: %d %s, want %d", test.name, a.StatusCode, a.body, test.want)
		}
	}
	s.token = s.addToken(auth.RoleEditor, "shop")
	if a := s.do(http.MethodPut, "/v1/propagation-policies/all?wait=0s", `{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],"auto_cluster":{}}}`); a.StatusCode != http.StatusForbidden {
		t.Errorf("a global policy of an editor of one namespace: %d, want 403", a.StatusCode)
	}
}
