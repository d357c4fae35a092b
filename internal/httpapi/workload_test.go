package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

const (
	workloadPath = "/v1/namespaces/shop/workloads/web"
	workloadBody = `{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":3}}`
)

var shopWeb = api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}

// run creates a workload that runs on the clusters, with one replica on the first, two on the second, and so on.
func (s *testServer) run(path string, clusters ...string) *api.Workload {
	s.t.Helper()
	workload := decodeAs[*api.Workload](s.t, s.mustPut(path, workloadBody))
	workload.Status = boundTo(workload, clusters...)
	s.writeStatus(workload)
	return workload
}

// boundTo returns the status of a workload with one replica on the first cluster, two on the second, and so on.
func boundTo(workload *api.Workload, clusters ...string) api.WorkloadStatus {
	status := workload.Status
	status.ObservedGeneration = workload.Metadata.Generation
	status.DecisionRevision++
	status.Policy = "shop/eu"
	status.Clusters = nil
	for i, name := range clusters {
		status.Clusters = append(status.Clusters, api.WorkloadCluster{Name: name, Replicas: int64(i + 1)})
	}
	status.Conditions = []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}}
	return status
}

func TestExplanationAndRescheduleOfEveryKind(t *testing.T) {
	s := startServer(t)
	for _, kind := range api.DecidedKinds {
		t.Run(string(kind), func(t *testing.T) {
			path := samples[kind].path
			for _, missing := range []struct{ method, path string }{{http.MethodGet, path + "/explanation"}, {http.MethodPost, path + "/reschedule"}, {http.MethodPost, strings.Replace(path, "/web", "/W%2fb", 1) + "/reschedule"}} {
				if a := s.do(missing.method, missing.path, ""); a.StatusCode != http.StatusNotFound || !strings.Contains(a.problem(t).Detail, "does not exist") {
					t.Errorf("%s %s: %d %s", missing.method, missing.path, a.StatusCode, a.body)
				}
			}
			tag := s.mustPut(path, samples[kind].body).Header.Get("ETag")
			s.decisions.explain = func(key api.Key) (*api.Explanation, error) {
				return &api.Explanation{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Candidates: []api.Candidate{}}, nil
			}
			if got := decodeAs[api.Explanation](t, s.do(http.MethodGet, path+"/explanation", "")); got.Kind != kind || got.Namespace != "shop" || got.Name != "web" {
				t.Errorf("unexpected explanation %+v", got)
			}
			a := s.do(http.MethodPost, path+"/reschedule", "", "If-Match", tag)
			if got := decodeAs[anyObject](t, a); a.StatusCode != http.StatusOK || got.Metadata.RescheduleRequests != 1 || got.Metadata.Generation != 1 {
				t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
			}
			if a := s.do(http.MethodPost, path+"/reschedule", "", "If-Match", tag); a.StatusCode != http.StatusPreconditionFailed {
				t.Errorf("outdated version: got %d %s, want 412", a.StatusCode, a.body)
			}
		})
	}
}

// reporting makes the fake decisions write health reports to the status, as the reconciler does.
func (s *testServer) reporting() {
	s.decisions.reportHealth = func(_ context.Context, key api.Key, report api.HealthReport) (int64, error) {
		workload := *s.fleet.Snapshot().Get(key).Object.(*api.Workload)
		workload.Status.Health = []api.ClusterHealth{{Cluster: report.Cluster, Status: report.Status, Message: report.Message}}
		return s.writeStatus(&workload), nil
	}
}

func TestHealthReports(t *testing.T) {
	s := startServer(t)
	s.reporting()
	workload := s.run(workloadPath, "eu-1", "eu-2")
	workload.Status.Evictions = []api.Eviction{{Cluster: "us-1", Replicas: 1, Reason: api.EvictedClusterLost, PurgeMode: api.PurgeGracefully}}
	s.writeStatus(workload)
	s.mustPut("/v1/namespaces/shop/workloads/idle", workloadBody)
	path := workloadPath + "/health"
	for _, test := range []struct {
		name, path, body string
		status           int
		fields, detail   string
	}{
		{"healthy", path, `{"cluster":"eu-1","status":"healthy"}`, 200, "", ""},
		{"status in mixed case", path, `{"cluster":"eu-2","status":"Unhealthy","message":"crash loop"}`, 200, "", ""},
		{"cluster with an eviction", path, `{"cluster":"us-1","status":"unknown"}`, 200, "", ""},
		{"cluster without the workload", path, `{"cluster":"us-2","status":"healthy"}`, 422, "cluster", `workload "shop/web" does not run on "us-2": it runs on [eu-1, eu-2, us-1]`},
		{"workload without clusters", "/v1/namespaces/shop/workloads/idle/health", `{"cluster":"eu-1","status":"healthy"}`, 422, "cluster", "it runs nowhere at present"},
		{"unknown workload", "/v1/namespaces/shop/workloads/none/health", `{"cluster":"eu-1","status":"healthy"}`, 404, "", `workload "shop/none" does not exist`},
		{"empty object", path, `{}`, 422, "cluster status", ""},
		{"invalid values", path, `{"cluster":"A_B","status":"fine","message":"` + strings.Repeat("x", 1025) + `"}`, 422, "cluster status message", ""},
		{"wrong types", path, `{"cluster":5,"status":["healthy"]}`, 422, "cluster status", ""},
		{"unknown field", path, `{"cluster":"eu-1","status":"healthy","state":"healthy"}`, 422, "state", ""},
		{"not an object", path, `null`, 422, "", ""},
		{"not JSON", path, `{`, 400, "", ""},
		{"no body", path, ``, 400, "", ""},
		{"bad wait", path + "?wait=-1s", `{"cluster":"eu-1","status":"healthy"}`, 422, "wait", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := s.fleet.Snapshot().Get(shopWeb).Revision()
			a := s.do(http.MethodPut, test.path, test.body)
			if a.StatusCode != test.status {
				t.Fatalf("got %d %s, want %d", a.StatusCode, a.body, test.status)
			}
			if test.status == 200 {
				got := decodeAs[api.Workload](t, a)
				if len(got.Status.Health) != 1 || !strings.Contains(test.body, got.Status.Health[0].Cluster) || len(got.Status.Clusters) != 2 || a.Header.Get("ETag") != `"`+got.Metadata.ResourceVersion+`"` {
					t.Errorf("unexpected workload %s", a.body)
				}
				return
			}
			p := a.problem(t)
			var fields []string
			for _, e := range p.Errors {
				fields = append(fields, e.Field)
			}
			if strings.Join(fields, " ") != test.fields || !strings.Contains(string(a.body), strings.ReplaceAll(test.detail, `"`, `\"`)) {
				t.Errorf("got %s, want fields %q and %q", a.body, test.fields, test.detail)
			}
			if s.fleet.Snapshot().Get(shopWeb).Revision() != before {
				t.Error("the report was recorded")
			}
		})
	}
	if got := decodeAs[api.Workload](t, s.do(http.MethodGet, workloadPath, "")); got.Metadata.Generation != 1 || got.Status.Health[0].Cluster != "us-1" {
		t.Errorf("unexpected workload %+v", got)
	}
}

// The response to a health report comes when the resulting decision is visible.
func TestHealthReportsWaitForTheDecision(t *testing.T) {
	s := startServer(t)
	s.reporting()
	s.run(workloadPath, "eu-1")
	s.decisions.settle = func(ctx context.Context, revision int64) error {
		if workload := *s.fleet.Snapshot().Get(shopWeb).Object.(*api.Workload); len(workload.Status.Health) > 0 && workload.Status.Clusters[0].Name == "eu-1" {
			workload.Status = boundTo(&workload, "us-1")
			s.writeStatus(&workload)
		}
		return nil
	}
	report := `{"cluster":"eu-1","status":"unhealthy"}`
	if got := decodeAs[api.Workload](t, s.do(http.MethodPut, workloadPath+"/health?wait=0s", report)); got.Status.Clusters[0].Name != "eu-1" {
		t.Errorf("waited in spite of wait=0s: %+v", got.Status)
	}
	if got := decodeAs[api.Workload](t, s.do(http.MethodPut, workloadPath+"/health", report)); got.Status.Clusters[0].Name != "us-1" {
		t.Errorf("answered before the decision: %+v", got.Status)
	}
}

// A workload that goes while somebody reports on it is not there.
func TestHealthReportOfAWorkloadThatGoes(t *testing.T) {
	s := startServer(t)
	s.run(workloadPath, "eu-1")
	s.decisions.reportHealth = func(context.Context, api.Key, api.HealthReport) (int64, error) {
		s.do(http.MethodDelete, workloadPath, "")
		return 0, fmt.Errorf("gone")
	}
	if a := s.do(http.MethodPut, workloadPath+"/health", `{"cluster":"eu-1","status":"healthy"}`); a.StatusCode != http.StatusNotFound {
		t.Errorf("got %d %s, want 404", a.StatusCode, a.body)
	}
}

// An agent may not read, so errors do not tell it where a workload runs.
func TestAgentErrorsDoNotRevealBindings(t *testing.T) {
	s := startServer(t, authenticated)
	s.token = s.addToken(auth.RoleAdmin)
	s.run(workloadPath, "secret-1")
	s.token = s.addToken(auth.RoleAgent)
	a := s.do(http.MethodPut, workloadPath+"/health", `{"cluster":"eu-1","status":"healthy"}`)
	if p := a.problem(t); a.StatusCode != 422 || len(p.Errors) != 1 || p.Errors[0].Field != "cluster" || strings.Contains(string(a.body), "secret-1") {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
}

const (
	policyPath = "/v1/namespaces/shop/propagation-policies/eu"
	policyBody = `{"kind":"propagation_policy","metadata":{"namespace":"shop","name":"eu"},"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}]}}`
	globalPath = "/v1/propagation-policies/all"
	globalBody = `{"kind":"propagation_policy","metadata":{"name":"all"},"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}]}}`
)

func bindingsOf(p api.PropagationPolicy) string {
	var names []string
	for _, b := range p.Status.Bindings {
		names = append(names, b.Workload)
	}
	return strings.Join(names, " ")
}

func TestPoliciesShowTheirBindings(t *testing.T) {
	s := startServer(t, authenticated)
	s.decisions.bindings = []api.Binding{{Workload: "other/web", Clusters: []api.WorkloadCluster{}}, {Workload: "shop/web", Clusters: []api.WorkloadCluster{{Name: "eu-1", Replicas: 3}}}}
	admin, viewer := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "shop")
	s.token = admin
	all := s.watch("/v1/watch?kinds=propagation_policy").started()
	s.token = viewer
	own := s.watch("/v1/watch?kinds=propagation_policy").started()

	s.token = admin
	a := s.mustPut(globalPath, globalBody)
	if got := bindingsOf(decodeAs[api.PropagationPolicy](t, a)); got != "other/web shop/web" {
		t.Errorf("PUT: got bindings %q", got)
	}
	for token, want := range map[string]string{admin: "other/web shop/web", viewer: "shop/web"} {
		s.token = token
		if got := bindingsOf(decodeAs[api.PropagationPolicy](t, s.do(http.MethodGet, globalPath, ""))); got != want {
			t.Errorf("GET shows %q, want %q", got, want)
		}
		for _, path := range []string{"/v1/propagation-policies", "/v1/propagation-policies?limit=1"} {
			list := decodeAs[struct{ Items []api.PropagationPolicy }](t, s.do(http.MethodGet, path, ""))
			if len(list.Items) != 1 || bindingsOf(list.Items[0]) != want {
				t.Errorf("%s: got %+v, want bindings %q", path, list.Items, want)
			}
		}
	}
	for watch, want := range map[*watchReader]int{all: 2, own: 1} {
		if bindings, _ := watch.expect("put all")[0].data.Object.Status["bindings"].([]any); len(bindings) != want {
			t.Errorf("a watch shows %v, want %d bindings", bindings, want)
		}
	}
	s.decisions.simulate = func(context.Context, api.Simulation) (*api.SimulationResult, error) {
		return &api.SimulationResult{Objects: []api.Object{&api.PropagationPolicy{Metadata: api.Metadata{Name: "all"}, Status: api.PropagationPolicyStatus{Bindings: s.decisions.bindings}}}}, nil
	}
	for token, want := range map[string]string{admin: "other/web shop/web", viewer: "shop/web"} {
		s.token = token
		result := decodeAs[struct{ Objects []api.PropagationPolicy }](t, s.do(http.MethodPost, "/v1/simulations", "{}"))
		if len(result.Objects) != 1 || bindingsOf(result.Objects[0]) != want {
			t.Errorf("a simulation shows %+v, want %q", result.Objects, want)
		}
	}
}

// Bindings come and go without a write to the policy, so no ETag promises them:
// not even to a reader who has seen the policy without any.
func TestAPolicyIsNeverNotModified(t *testing.T) {
	s := startServer(t)
	s.decisions.bindings = []api.Binding{{Workload: "shop/web", Clusters: []api.WorkloadCluster{}}}
	tag := s.mustPut(policyPath, policyBody).Header.Get("ETag")
	for _, bindings := range [][]api.Binding{nil, s.decisions.bindings} {
		s.decisions.mu.Lock()
		s.decisions.bindings = bindings
		s.decisions.mu.Unlock()
		a := s.do(http.MethodGet, policyPath, "", "If-None-Match", tag)
		if a.StatusCode != http.StatusOK || a.Header.Get("ETag") != tag || len(decodeAs[api.PropagationPolicy](t, a).Status.Bindings) != len(bindings) {
			t.Errorf("got %d with ETag %s: %s", a.StatusCode, a.Header.Get("ETag"), a.body)
		}
	}
	// A workload is returned as it is stored.
	tag = s.mustPut(workloadPath, workloadBody).Header.Get("ETag")
	if a := s.do(http.MethodGet, workloadPath, "", "If-None-Match", tag); a.StatusCode != http.StatusNotModified {
		t.Errorf("workload: got %d, want 304", a.StatusCode)
	}
}

// The fields of an affinity group are inlined in the document, and so are the paths in its errors.
func TestPolicyFieldPaths(t *testing.T) {
	s := startServer(t)
	for body, want := range map[string]string{
		`{"affinity_name":"eu","cluster_name":["a"]}`:                                                                "spec.placement.cluster_affinities[0].cluster_name",
		`{"affinity_name":"eu","ClusterAffinity":{}}`:                                                                "spec.placement.cluster_affinities[0].ClusterAffinity",
		`{"affinity_name":"eu","cluster_names":"a"}`:                                                                 "spec.placement.cluster_affinities[0].cluster_names",
		`{"affinity_name":"eu","cluster_names":["A_"]}`:                                                              "spec.placement.cluster_affinities[0].cluster_names[0]",
		`{"affinity_name":"eu","field_selector":[{"key":"city","operator":"In","values":["a"]}]}`:                    "spec.placement.cluster_affinities[0].field_selector[0].key",
		`{"affinity_name":"eu","cluster_names":["a"],"overflow_affinities":[{"affinity_name":"us","zones":["a"]}]}`:  "spec.placement.cluster_affinities[0].overflow_affinities[0].zones",
		`{"affinity_name":"eu","label_selector":{"match_expressions":[{"key":"a","operator":"Like"}]}}`:              "spec.placement.cluster_affinities[0].label_selector.match_expressions[0].operator",
		`{"affinity_name":"eu","cluster_names":["a"],"overflow_affinities":[{"affinity_name":"eu"}]}`:                "spec.placement.cluster_affinities[0].overflow_affinities[0].affinity_name",
		`{"affinity_name":"eu","cluster_names":["a"],"overflow_affinities":[{"affinity_name":"us","a":{"b":"c"}}]} `: "spec.placement.cluster_affinities[0].overflow_affinities[0].a",
	} {
		a := s.do(http.MethodPut, policyPath, `{"spec":{"resource_selectors":[{"api_version":"v1","kind":"Pod"}],"placement":{"cluster_affinities":[`+body+`]}}}`)
		var fields []string
		if a.StatusCode == 422 {
			for _, e := range a.problem(t).Errors {
				fields = append(fields, e.Field)
			}
		}
		if !slices.Contains(fields, want) {
			t.Errorf("%s: %d %v, want %s", body, a.StatusCode, fields, want)
		}
	}
	s.mustPut(policyPath, `{"spec":{"resource_selectors":[{"api_version":"v1","kind":"Pod"}],"placement":{"cluster_affinities":[{"affinity_name":"eu","cluster_names":["a"]}]}}}`)
	if a := s.do(http.MethodGet, policyPath, ""); !strings.Contains(string(a.body), `"cluster_affinities":[{"affinity_name":"eu","cluster_names":["a"]}]`) {
		t.Errorf("unexpected policy %s", a.body)
	}
}

// A blocking GET of a workload returns when its binding changes.
func TestBlockingGetOfAWorkload(t *testing.T) {
	s := startServer(t)
	workload := s.run(workloadPath, "eu-1")
	version := decodeAs[api.Workload](t, s.do(http.MethodGet, workloadPath, "")).Metadata.ResourceVersion
	answers := make(chan answer, 1)
	go func() {
		a, err := s.try(context.Background(), http.MethodGet, workloadPath+"?wait=30s&resource_version="+version, "")
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	workload.Status = boundTo(workload, "eu-2")
	s.writeStatus(workload)
	select {
	case a := <-answers:
		if got := decodeAs[api.Workload](t, a); got.Status.Clusters[0].Name != "eu-2" {
			t.Errorf("got %s, want the workload on eu-2", a.body)
		}
	case <-time.After(eventually.Limit):
		t.Error("no answer")
	}
}
