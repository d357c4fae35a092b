package httpapi

import (
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// TestCausesShowOnlyWhatMayBeRead reads decisions that changed because of an object that the reader may or may not see.
func TestCausesShowOnlyWhatMayBeRead(t *testing.T) {
	s := startServer(t, authenticated)
	admin, viewer := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "shop")
	s.token = admin
	s.mustPut("/v1/clusters/shared", `{"spec":{}}`)
	s.mustPut("/v1/clusters/hidden", `{"spec":{"namespace":"vault"}}`)
	s.mustPut("/v1/namespaces/vault/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"x":0.4}}}}`)
	s.mustPut("/v1/namespaces/vault/metrics/hidden", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"table","metric":"x"}}}`)
	s.mustPut("/v1/namespaces/shop/metrics/own", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"table","metric":"x"}}}`)
	s.mustPut("/v1/namespaces/vault/workloads/important", workloadBody)
	s.mustPut("/v1/namespaces/shop/workloads/web", workloadBody)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	for name, c := range map[string]struct {
		object api.Key
		shown  bool
	}{
		"shared cluster":                 {api.Key{Kind: api.KindCluster, Name: "shared"}, true},
		"cluster of another namespace":   {api.Key{Kind: api.KindCluster, Name: "hidden"}, false},
		"deleted cluster":                {api.Key{Kind: api.KindCluster, Name: "gone"}, false},
		"own metric":                     {api.Key{Kind: api.KindMetric, Namespace: "shop", Name: "own"}, true},
		"own metric, deleted":            {api.Key{Kind: api.KindMetric, Namespace: "shop", Name: "gone"}, true},
		"metric of another namespace":    {api.Key{Kind: api.KindMetric, Namespace: "vault", Name: "hidden"}, false},
		"its metric, deleted":            {api.Key{Kind: api.KindMetric, Namespace: "vault", Name: "gone"}, false},
		"workload of another namespace":  {api.Key{Kind: api.KindWorkload, Namespace: "vault", Name: "important"}, false},
		"score of a cluster that it has": {api.Key{Kind: api.KindPlacementScore, Namespace: "hidden", Name: "agent"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cause := &api.Cause{Type: api.CauseMetric, Object: &c.object, Field: "status.value", Old: "0.4", New: "0.7"}
			placement := &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}, Status: api.PlacementStatus{Cause: cause, DecisionRevision: 1}}
			workload := &api.Workload{Metadata: api.Metadata{Namespace: "shop", Name: "web"}, Status: api.WorkloadStatus{Cause: cause, DecisionRevision: 1}}
			s.writeStatus(placement)
			s.writeStatus(workload)
			for token, shown := range map[string]bool{admin: true, viewer: c.shown} {
				s.token = token
				causes := []*api.Cause{
					decodeAs[api.Placement](t, s.do(http.MethodGet, "/v1/namespaces/shop/placements/web", "")).Status.Cause,
					decodeAs[api.Workload](t, s.do(http.MethodGet, "/v1/namespaces/shop/workloads/web", "")).Status.Cause,
				}
				for _, row := range decodeAs[decisionsAnswer](t, s.do(http.MethodGet, "/v1/decisions?namespace=shop", "")).Items {
					causes = append(causes, row.Cause)
				}
				if len(causes) != 4 {
					t.Fatalf("%d causes, want 4", len(causes))
				}
				for i, got := range causes {
					switch {
					case got == nil || got.Type != api.CauseMetric:
						t.Errorf("cause %d: %+v, want its type", i, got)
					case shown && (got.Object == nil || *got.Object != c.object || got.Old != "0.4" || got.New != "0.7" || got.Field == ""):
						t.Errorf("cause %d: %+v, want all of it", i, got)
					case !shown && *got != (api.Cause{Type: api.CauseMetric}):
						t.Errorf("cause %d: %+v, want its type alone", i, got)
					}
				}
			}
		})
	}
}

// TestPreviewsCommitTheirCause commits previews: the cause is the write.
func TestPreviewsCommitTheirCause(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	s.mustPut("/v1/clusters/a", `{"spec":{}}`)
	s.mustPut("/v1/clusters/b", `{"spec":{}}`)
	web := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	for _, step := range []struct {
		spec string
		want api.Cause
	}{
		{`{"number_of_clusters":1}`, api.Cause{Type: api.CauseSpec}},
		{`{"number_of_clusters":2}`, api.Cause{Type: api.CauseSpec, Field: "spec.number_of_clusters", Old: "1", New: "2"}},
	} {
		body := document(api.KindPlacement, "shop", "web", `"spec":`+step.spec)
		token := s.mustPreview(body).Token
		got := decodeAs[api.Placement](t, s.mustPut(webPath, body, "Preview-Token", token)).Status.Cause
		if got == nil || got.Object == nil || *got.Object != web || got.Type != step.want.Type || got.Field != step.want.Field || got.Old != step.want.Old || got.New != step.want.New {
			t.Errorf("%s: the cause is %+v, want %+v", step.spec, got, step.want)
		}
	}
}

// TestMarginsShowOnlyWhatMayBeRead reads the scores by which a decision moved, of clusters that the reader may or may not
// see, and with metrics that it may not read.
func TestMarginsShowOnlyWhatMayBeRead(t *testing.T) {
	s := startServer(t, authenticated)
	admin, viewer := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "shop")
	s.token = admin
	s.mustPut("/v1/namespaces/vault/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"x":0.4}}}}`)
	s.mustPut("/v1/namespaces/vault/metrics/load", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"table","metric":"x"}}}`)
	s.mustPut("/v1/clusters/one", `{"spec":{}}`)
	s.mustPut("/v1/clusters/two", `{"spec":{}}`)
	s.mustPut("/v1/clusters/rated", `{"spec":{"metrics":[{"name":"load","namespace":"vault"}]}}`)
	s.mustPut("/v1/clusters/hidden", `{"spec":{"namespace":"vault"}}`)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	for name, c := range map[string]struct {
		from, to string
		shown    bool
	}{
		"both":             {"one", "two", true},
		"from a metric":    {"rated", "two", false},
		"to a metric":      {"one", "rated", false},
		"from another one": {"hidden", "two", false},
		"to another one":   {"one", "hidden", false},
		"from a gone one":  {"gone", "two", false},
		"to a gone one":    {"one", "gone", false},
	} {
		t.Run(name, func(t *testing.T) {
			margin := api.DecisionMargin{From: c.from, To: c.to, Old: 1, New: 3, Needed: 2}
			s.writeStatus(&api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}, Status: api.PlacementStatus{Margin: &margin, DecisionRevision: 1}})
			for token, shown := range map[string]bool{admin: true, viewer: c.shown} {
				s.token = token
				got := decodeAs[api.Placement](t, s.do(http.MethodGet, "/v1/namespaces/shop/placements/web", "")).Status.Margin
				if (got != nil) != shown || shown && *got != margin {
					t.Errorf("margin %+v, want it: %t", got, shown)
				}
			}
		})
	}
}
