package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// startEurope is startEndToEnd with two clusters of four CPUs in Europe and a large one in America.
func startEurope(t *testing.T) *testServer {
	t.Helper()
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	for name, cpu := range map[string]string{"eu-1": "4", "eu-2": "4", "us-1": "100"} {
		s.mustPut("/v1/clusters/"+name, fmt.Sprintf(`{"spec":{"region":"%s","allocatable":{"cpu":"%s"}}}`, name[:2], cpu))
	}
	return s
}

func workloadOf(name string, replicas int) string {
	return fmt.Sprintf(`{"kind":"workload","metadata":{"namespace":"shop","name":"%s","labels":{"app":"%s"}},
		"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":%d,"replica_requests":{"cpu":"1"}}}`, name, name, replicas)
}

// europeFirst is a policy that prefers Europe, and moves the whole workload to America if it does not fit.
func europeFirst(more string) string {
	return `{"kind":"propagation_policy","metadata":{"namespace":"shop","name":"eu"},"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],
		"placement":{"cluster_affinities":[
			{"affinity_name":"europe","field_selector":[{"key":"region","operator":"In","values":["eu"]}]},
			{"affinity_name":"america","cluster_names":["us-1"]}],
			"replica_scheduling":{"type":"Divided"}}` + more + `}}`
}

func (s *testServer) replicasOf(path string) map[string]int64 {
	s.t.Helper()
	status := s.statusOf(path)
	return status.ReplicasByCluster()
}

// urlOf returns the path of a workload that a binding names.
func urlOf(workload string) string {
	namespace, name, _ := strings.Cut(workload, "/")
	return api.Key{Kind: api.KindWorkload, Namespace: namespace, Name: name}.URLPath()
}

// A client that writes a workload or a policy gets the bindings with the response.
func TestWorkloadsAreAnsweredWithTheirBindings(t *testing.T) {
	s := startEurope(t)
	a := s.mustPut(workloadPath, workloadOf("web", 4))
	if got := decodeAs[api.Workload](t, a); len(got.Status.Clusters) != 0 || api.FindCondition(got.Status.Conditions, api.ConditionScheduled).Reason != api.ReasonNoPolicyMatched {
		t.Errorf("without a policy: got %s", a.body)
	}
	a = s.mustPut(policyPath, europeFirst(`,"failover":{"application":{"toleration":"0s","purge_mode":"Directly"}}`))
	policy := decodeAs[api.PropagationPolicy](t, a)
	if len(policy.Status.Bindings) != 1 || policy.Status.Bindings[0].Workload != "shop/web" || policy.Status.Bindings[0].ObservedAffinity != "europe" || len(policy.Status.Bindings[0].Clusters) != 2 {
		t.Errorf("unexpected status of the policy in the answer to its write: %+v", policy.Status)
	}
	a = s.mustPut(workloadPath, workloadOf("web", 6))
	got := decodeAs[api.Workload](t, a)
	if !maps.Equal(got.Status.ReplicasByCluster(), map[string]int64{"eu-1": 3, "eu-2": 3}) || got.Status.Policy != "shop/eu" ||
		got.Status.ObservedAffinity != "europe" || got.Status.ObservedGeneration != 2 || got.Status.PolicyUID != policy.Metadata.UID {
		t.Errorf("unexpected workload %s", a.body)
	}
	explanation := decodeAs[api.Explanation](t, s.do(http.MethodGet, workloadPath+"/explanation", ""))
	if explanation.Kind != api.KindWorkload || explanation.Policy != "shop/eu" || explanation.Total != 3 || len(explanation.Candidates) != 3 || len(explanation.Affinities) != 2 {
		t.Errorf("explanation: %+v", explanation)
	}
	if a := s.do(http.MethodPost, workloadPath+"/reschedule", ""); a.StatusCode != 200 || decodeAs[api.Workload](t, a).Status.ObservedRescheduleRequests != 1 {
		t.Errorf("reschedule: %d %s", a.StatusCode, a.body)
	}
	// A workload in another namespace does not fit on either.
	if got := decodeAs[api.Workload](t, s.mustPut("/v1/namespaces/other/workloads/web", strings.ReplaceAll(workloadOf("web", 1), "shop", "other"))); got.Status.Policy != "" {
		t.Errorf("in another namespace: got %+v", got.Status)
	}
	// The replicas of the lost cluster do not fit on the other one.
	s.do(http.MethodDelete, "/v1/clusters/eu-1", "")
	if got := s.replicasOf(workloadPath); !maps.Equal(got, map[string]int64{"us-1": 6}) {
		t.Errorf("replicas %v after the deletion of eu-1", got)
	}
	s.do(http.MethodDelete, policyPath, "")
	if got := s.replicasOf(workloadPath); !maps.Equal(got, map[string]int64{"us-1": 6}) {
		t.Errorf("replicas %v without a policy", got)
	}
	if got := s.statusOf(workloadPath); api.FindCondition(got.Conditions, api.ConditionScheduled).Reason != api.ReasonNoPolicyMatched {
		t.Errorf("status %+v without a policy", got)
	}
}

// The response to a health report contains the new binding that it causes.
func TestHealthReportsAreAnsweredWithTheBinding(t *testing.T) {
	s := startEurope(t)
	s.mustPut(policyPath, europeFirst(`,"failover":{"application":{"toleration":"0s"}}`))
	s.mustPut(workloadPath, workloadOf("web", 4))
	a := s.do(http.MethodPut, workloadPath+"/health", `{"cluster":"eu-1","status":"healthy"}`)
	if got := decodeAs[api.Workload](t, a); a.StatusCode != 200 || got.Status.HealthOn("eu-1") == nil || got.Status.HealthOn("eu-1").Status != api.Healthy || got.Metadata.Generation != 1 {
		t.Fatalf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	a = s.do(http.MethodPut, workloadPath+"/health", `{"cluster":"eu-1","status":"unhealthy","message":"crash loop"}`)
	got := decodeAs[api.Workload](t, a)
	if a.StatusCode != 200 || !maps.Equal(got.Status.ReplicasByCluster(), map[string]int64{"eu-2": 4}) || got.Status.Evicting()["eu-1"] != 2 ||
		got.Status.Evictions[0].Reason != api.EvictedApplicationUnhealthy {
		t.Fatalf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	// Reports about a cluster that is being evicted still count. The eviction ends when the new binding is healthy.
	if a := s.do(http.MethodPut, workloadPath+"/health", `{"cluster":"eu-1","status":"unknown"}`); a.StatusCode != 200 {
		t.Errorf("got %d %s, want 200", a.StatusCode, a.body)
	}
	a = s.do(http.MethodPut, workloadPath+"/health", `{"cluster":"eu-2","status":"healthy"}`)
	if got := decodeAs[api.Workload](t, a); a.StatusCode != 200 || len(got.Status.Evictions) != 0 {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodPut, workloadPath+"/health", `{"cluster":"us-1","status":"healthy"}`); a.StatusCode != 422 {
		t.Errorf("got %d %s, want 422", a.StatusCode, a.body)
	}
}

// A write with a preview's token commits exactly the previewed bindings of a workload or policy, and later decisions
// keep them.
func TestPreviewsOfBindingsAreKept(t *testing.T) {
	s := startEurope(t)
	commit := func(path, body string, workloads ...string) api.Preview {
		t.Helper()
		p := s.mustPreview(body)
		if !p.Satisfied {
			t.Fatalf("%s: preview %+v is not satisfied", path, p)
		}
		s.mustPut(path, body, "Preview-Token", p.Token)
		return p
	}
	check := func(when, path string, want map[string]int64) {
		t.Helper()
		if got := s.replicasOf(path); !maps.Equal(got, want) {
			t.Errorf("%s: %s has %v, previewed %v", when, path, got, want)
		}
	}
	commit(policyPath, europeFirst(""))
	for round := range 3 {
		path := fmt.Sprintf("/v1/namespaces/shop/workloads/w%d", round)
		for n := 1; n <= 2; n++ {
			p := commit(path, workloadOf(fmt.Sprintf("w%d", round), n))
			if p.Policy != "shop/eu" || p.ObservedAffinity != "europe" {
				t.Errorf("preview %+v, want policy shop/eu and group europe", p)
			}
			check("when it is committed", path, p.Replicas)
			s.mustPut("/v1/clusters/us-1", fmt.Sprintf(`{"metadata":{"labels":{"round":"%d-%d"}},"spec":{"region":"us","allocatable":{"cpu":"100"}}}`, round, n))
			check("later", path, p.Replicas)
		}
	}
	// Reordering the groups moves workloads only if requested; another set of groups always does.
	american := strings.Replace(europeFirst(""), `"values":["eu"]`, `"values":["us"]`, 1)
	p := commit(policyPath, american)
	if len(p.Bindings) != 3 {
		t.Fatalf("preview %+v, want three bindings", p)
	}
	for _, b := range p.Bindings {
		path := urlOf(b.Workload)
		if !b.Claimed || b.Replicas["us-1"] != 2 {
			t.Errorf("binding %+v, want it claimed, with 2 replicas on us-1", b)
		}
		check("when the policy is committed", path, b.Replicas)
		if status := s.statusOf(path); status.PolicyGeneration != 2 {
			t.Errorf("%s: policy generation %d, want 2", path, status.PolicyGeneration)
		}
	}
	s.mustPut("/v1/clusters/eu-3", `{"spec":{"region":"eu"}}`)
	for _, b := range p.Bindings {
		check("later", urlOf(b.Workload), b.Replicas)
	}
}

// If the fleet has changed so that the decision would be different, the write fails and nothing is written.
func TestOutdatedPreviewsOfBindingsAreRefused(t *testing.T) {
	s := startEurope(t)
	s.mustPut(workloadPath, workloadOf("web", 4))
	policy := s.mustPreview(europeFirst(""))
	if len(policy.Bindings) != 1 || !maps.Equal(policy.Bindings[0].Replicas, map[string]int64{"eu-1": 2, "eu-2": 2}) {
		t.Fatalf("preview %+v, want one binding with 2 replicas on each cluster", policy)
	}
	s.mustPut("/v1/clusters/eu-3", `{"spec":{"region":"eu","allocatable":{"cpu":"4"}}}`)
	a := s.do(http.MethodPut, policyPath, europeFirst(""), "Preview-Token", policy.Token)
	if a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.problem(t).Detail, `workload "shop/web" on [eu-1: 2, eu-2: 2]`) {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodGet, policyPath, ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("the policy was written: %d", a.StatusCode)
	}
	s.mustPut(policyPath, europeFirst(""))
	workload := s.mustPreview(workloadOf("web", 9))
	s.mustPut("/v1/namespaces/shop/workloads/big", workloadOf("big", 6))
	a = s.do(http.MethodPut, workloadPath, workloadOf("web", 9), "Preview-Token", workload.Token)
	if a.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("got %d %s, want 412; previewed %v", a.StatusCode, a.body, workload.Replicas)
	}
	if got := decodeAs[api.Workload](t, s.do(http.MethodGet, workloadPath, "")); *got.Spec.Replicas != 4 {
		t.Errorf("the workload was written: %+v", got.Spec)
	}
}

// Lists, watches and simulations include workloads and policies like all other kinds.
func TestWorkloadsAreListedWatchedAndSimulated(t *testing.T) {
	s := startEurope(t)
	watch := s.watch("/v1/watch?kinds=workload").started()
	s.mustPut(policyPath, europeFirst(""))
	s.mustPut(workloadPath, workloadOf("web", 4))
	events := watch.expect("put shop/web", "put shop/web")
	if clusters, _ := events[1].data.Object.Status["clusters"].([]any); len(clusters) != 2 {
		t.Errorf("the watch shows %+v", events[1].data.Object)
	}
	for path, want := range map[string]string{
		"/v1/workloads": "shop/web", "/v1/workloads?label_selector=app%3Dweb": "shop/web", "/v1/workloads?label_selector=app%3Dother": "",
		"/v1/propagation-policies": "", "/v1/propagation-policies?all=true": "shop/eu", "/v1/namespaces/shop/propagation-policies": "shop/eu",
	} {
		if got := strings.Join(decodeAs[objectList](t, s.do(http.MethodGet, path, "")).paths(), " "); got != want {
			t.Errorf("%s shows %q, want %q", path, got, want)
		}
	}
	a := s.do(http.MethodPost, "/v1/simulations", `{"delete":[{"kind":"cluster","name":"eu-1"},{"kind":"cluster","name":"eu-2"}]}`)
	result := decodeAs[struct{ Changes []api.Change }](t, a)
	if len(result.Changes) != 1 || result.Changes[0].Key != shopWeb || !slices.Equal(result.Changes[0].To, []string{"us-1"}) || result.Changes[0].FromReplicas["eu-1"] != 2 || result.Changes[0].ToReplicas["us-1"] != 4 {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
}
