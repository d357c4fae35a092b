package httpapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/previewcommit"
)

const previewedWorkloadBody = `{"kind":"workload","metadata":{"namespace":"shop","name":"web"},"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":5}}`

// binding makes every decision bind the workload to these clusters.
func (f *fakeDecisions) binding(clusters ...string) {
	f.bindingBy(func(workload *api.Workload) api.WorkloadStatus { return boundTo(workload, clusters...) })
}

func (f *fakeDecisions) bindingBy(bind func(*api.Workload) api.WorkloadStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bind = bind
}

func TestPreviewOfAWorkload(t *testing.T) {
	s := startServer(t)
	s.decisions.bindingBy(func(workload *api.Workload) api.WorkloadStatus {
		status := boundTo(workload, "eu-1", "eu-2")
		status.ObservedAffinity = "eu"
		status.Evictions = []api.Eviction{{Cluster: "us-1", Replicas: 3, PurgeMode: api.PurgeGracefully}}
		return status
	})
	p := s.mustPreview(previewedWorkloadBody)
	if p.Token != p.ID || p.Kind != api.KindWorkload || p.Namespace != "shop" || p.Name != "web" || p.Summary != "as bound" || !p.Satisfied ||
		p.Policy != "shop/eu" || p.ObservedAffinity != "eu" || p.Evicting["us-1"] != 3 || !maps.Equal(p.Replicas, map[string]int64{"eu-1": 1, "eu-2": 2}) ||
		!slices.Equal(p.Clusters, []string{"eu-1", "eu-2"}) || len(p.Current) != 0 || len(p.CurrentReplicas) != 0 {
		t.Errorf("unexpected preview %+v", p)
	}
	a := s.do(http.MethodGet, "/v1/previews/"+p.ID, "")
	if again := decodeAs[api.Preview](t, a); a.StatusCode != 200 || fmt.Sprint(again) != fmt.Sprint(p) {
		t.Errorf("GET: %d %s, want %+v", a.StatusCode, a.body, p)
	}
	if a := s.do(http.MethodGet, workloadPath, ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("GET of the previewed workload: got %d, want 404", a.StatusCode)
	}
	s.run(workloadPath, "us-1")
	p = s.mustPreview(previewedWorkloadBody)
	if !slices.Equal(p.Current, []string{"us-1"}) || !maps.Equal(p.CurrentReplicas, map[string]int64{"us-1": 1}) || !maps.Equal(p.Replicas, map[string]int64{"eu-1": 1, "eu-2": 2}) {
		t.Errorf("preview of an existing workload: got %+v", p)
	}
	s.decisions.bindingBy(func(workload *api.Workload) api.WorkloadStatus {
		status := boundTo(workload)
		status.Conditions = []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: api.ReasonUnschedulable}}
		return status
	})
	if p = s.mustPreview(previewedWorkloadBody); p.Satisfied || len(p.Replicas) > 0 {
		t.Errorf("preview without room: got %+v", p)
	}
}

func TestPreviewTokenCommitsTheBinding(t *testing.T) {
	s := startServer(t)
	for _, exists := range []bool{false, true} {
		s.do(http.MethodDelete, workloadPath, "")
		if exists {
			s.run(workloadPath, "us-1")
		}
		s.decisions.binding("eu-1", "eu-2")
		p := s.mustPreview(previewedWorkloadBody)
		a := s.do(http.MethodPut, workloadPath, previewedWorkloadBody, "Preview-Token", p.Token)
		got := decodeAs[api.Workload](t, a)
		if a.StatusCode >= 300 || !maps.Equal(got.Status.ReplicasByCluster(), p.Replicas) || got.Status.ObservedGeneration != got.Metadata.Generation {
			t.Fatalf("exists %t: %d %s", exists, a.StatusCode, a.body)
		}
		spec, status, err := s.store.Read(context.Background(), shopWeb)
		if err != nil || status == nil || spec.ModRevision != status.ModRevision {
			t.Errorf("exists %t: spec at %v, status at %v (%v), want one transaction", exists, spec, status, err)
		}
		// Writing the same object again does not use the preview.
		s.decisions.binding("us-9")
		for _, token := range []string{p.Token, "unknown"} {
			if a := s.do(http.MethodPut, workloadPath, previewedWorkloadBody, "Preview-Token", token); a.StatusCode != 200 || decodeAs[api.Workload](t, a).Metadata.Generation != got.Metadata.Generation {
				t.Errorf("unchanged, token %q: %d %s", token, a.StatusCode, a.body)
			}
		}
	}
}

func TestPreviewTokenOfAWorkloadIsRefused(t *testing.T) {
	s := startServer(t)
	with := func(change func(*api.WorkloadStatus)) func(*api.Workload) api.WorkloadStatus {
		return func(workload *api.Workload) api.WorkloadStatus {
			status := boundTo(workload, "eu-1", "eu-2")
			change(&status)
			return status
		}
	}
	labelled := strings.Replace(previewedWorkloadBody, `"name":"web"`, `"name":"web","labels":{"a":"b"}`, 1)
	for _, test := range []struct {
		name       string
		now        func(*api.WorkloadStatus)
		path, body string
		want       string // part of the detail; "" = accepted
	}{
		{name: "kept"},
		{name: "other order", now: func(status *api.WorkloadStatus) { slices.Reverse(status.Clusters) }},
		{name: "other conditions", now: func(status *api.WorkloadStatus) { status.Conditions = nil }},
		{name: "other labels", body: labelled},
		{name: "other labels that another policy selects", body: labelled, now: func(status *api.WorkloadStatus) { status.Policy = "labelled" },
			want: `it showed [eu-1: 1, eu-2: 2] under policy "shop/eu", and the decision would now be [eu-1: 1, eu-2: 2] under policy "labelled"`},
		{name: "other replicas", now: func(status *api.WorkloadStatus) { status.Clusters[1].Replicas = 4 },
			want: `the fleet changed since the preview: plan again: it showed [eu-1: 1, eu-2: 2] under policy "shop/eu", and the decision would now be [eu-1: 1, eu-2: 4] under policy "shop/eu"`},
		{name: "other flavor", now: func(status *api.WorkloadStatus) { status.Clusters[1].Flavor = "m1.large" },
			want: "would now be [eu-1: 1, eu-2: 2] with flavors [eu-2: m1.large] under"},
		{name: "other cluster", now: func(status *api.WorkloadStatus) { status.Clusters[1].Name = "eu-3" }, want: "would now be [eu-1: 1, eu-3: 2]"},
		{name: "no clusters", now: func(status *api.WorkloadStatus) { status.Clusters = nil }, want: "would now be [] under"},
		{name: "no policy", now: func(status *api.WorkloadStatus) { status.Policy = "" }, want: "would now be [eu-1: 1, eu-2: 2] under no policy"},
		{name: "other group", now: func(status *api.WorkloadStatus) { status.ObservedAffinity = "us" }, want: `of affinity group "us"`},
		{name: "eviction", now: func(status *api.WorkloadStatus) {
			status.Evictions = []api.Eviction{{Cluster: "us-1", Replicas: 2, PurgeMode: api.PurgeGracefully}}
		}, want: "would now be [eu-1: 1, eu-2: 2], leaving [us-1: 2], under"},
		{name: "other spec", body: strings.Replace(previewedWorkloadBody, "5", "6", 1), want: `the preview was made for another spec of workload "shop/web": plan again`},
		{name: "other name", path: "/v1/namespaces/shop/workloads/web2", body: strings.Replace(previewedWorkloadBody, `"web"`, `"web2"`, 1),
			want: `the preview was made for workload "shop/web", not for workload "shop/web2": plan again`},
		{name: "other kind", path: webPath, body: `{"spec":{}}`, want: `the preview was made for workload "shop/web", not for placement "shop/web": plan again`},
		{name: "policy", path: policyPath, body: policyBody, want: `the preview was made for workload "shop/web", not for propagation_policy "shop/eu": plan again`},
	} {
		for _, exists := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, exists: %t", test.name, exists), func(t *testing.T) {
				s.do(http.MethodDelete, workloadPath, "")
				if exists {
					s.run(workloadPath, "us-1")
				}
				s.decisions.binding("eu-1", "eu-2")
				p := s.mustPreview(previewedWorkloadBody)
				if test.now != nil {
					s.decisions.bindingBy(with(test.now))
				}
				path, body := workloadPath, previewedWorkloadBody
				if test.path != "" {
					path = test.path
				}
				if test.body != "" {
					body = test.body
				}
				a := s.do(http.MethodPut, path, body, "Preview-Token", p.Token)
				if test.want == "" {
					if got := decodeAs[api.Workload](t, a); a.StatusCode >= 300 || !maps.Equal(got.Status.ReplicasByCluster(), p.Replicas) {
						t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
					}
					return
				}
				if a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.problem(t).Detail, test.want) {
					t.Errorf("got %d %s, want 412 with %q", a.StatusCode, a.body, test.want)
				}
				if a := s.do(http.MethodGet, workloadPath, ""); !exists && a.StatusCode != http.StatusNotFound || exists && *decodeAs[api.Workload](t, a).Spec.Replicas != 3 {
					t.Errorf("the workload was written: %d %s", a.StatusCode, a.body)
				}
			})
		}
	}
}

// Only kinds with a decision have previews, and the document must name its kind.
func TestPreviewRejectsOtherKinds(t *testing.T) {
	s := startServer(t)
	for body, want := range map[string]string{
		`{"kind":"cluster","metadata":{"name":"a"},"spec":{}}`:                              "kind",
		`{"kind":"pod","metadata":{"name":"a"},"spec":{}}`:                                  "kind",
		`{"kind":7,"metadata":{"name":"a"},"spec":{}}`:                                      "kind",
		`{"kind":"workload","metadata":{"name":"a"},"spec":{"number_of_clusters":1}}`:       "spec.number_of_clusters",
		`{"kind":"workload","metadata":{"name":"a"},"spec":{"kind":"Deployment"}}`:          "spec.api_version",
		`{"kind":"propagation_policy","metadata":{"name":"a"},"spec":{}}`:                   "spec.resource_selectors",
		`{"kind":"propagation_policy","spec":{"resource_selectors":[{"kind":"D"}]}}`:        "metadata.name",
		`{"kind":"propagation_policy","metadata":{"name":"a","namespace":"B"},"spec":null}`: "metadata.namespace",
	} {
		a := s.do(http.MethodPost, "/v1/previews", body)
		var fields []string
		for _, e := range a.problem(t).Errors {
			fields = append(fields, e.Field)
		}
		if a.StatusCode != 422 || !slices.Contains(fields, want) {
			t.Errorf("%s: got %d %s, want field %s", body, a.StatusCode, a.body, want)
		}
	}
}

// propagating makes the decisions of a policy bind every workload in its namespace, or in all namespaces, with a
// function. If it returns nil, the workload stays unchanged.
func (s *testServer) propagating(bind func(policy *api.PropagationPolicy, workload *api.Workload) (status *api.WorkloadStatus, claimed bool)) {
	s.decisions.mu.Lock()
	defer s.decisions.mu.Unlock()
	s.decisions.propagate = func(policy *api.PropagationPolicy) map[api.Key]api.PreviewedWorkload {
		workloads := map[api.Key]api.PreviewedWorkload{}
		for entry := range s.fleet.Snapshot().All(api.KindWorkload, policy.Metadata.Namespace) {
			workload := *entry.Object.(*api.Workload)
			w := api.PreviewedWorkload{Current: workload.Status, Summary: "as propagated"}
			status, claimed := bind(policy, &workload)
			if status != nil {
				workload.Status = *status
			}
			w.Object, w.Claimed = &workload, claimed
			workloads[api.KeyOf(&workload)] = w
		}
		return workloads
	}
}

// propagatingTo makes the decisions of a policy bind all workloads to these clusters.
func (s *testServer) propagatingTo(clusters ...string) {
	s.propagating(func(policy *api.PropagationPolicy, workload *api.Workload) (*api.WorkloadStatus, bool) {
		status := boundTo(workload, clusters...)
		status.Policy, status.PolicyUID, status.PolicyGeneration = policy.Path(), policy.Metadata.UID, policy.Metadata.Generation
		return &status, true
	})
}

func (s *testServer) statusOf(path string) api.WorkloadStatus {
	s.t.Helper()
	return decodeAs[api.Workload](s.t, s.do(http.MethodGet, path, "")).Status
}

func TestPreviewOfAPolicy(t *testing.T) {
	s := startServer(t, authenticated)
	admin, viewer := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "shop")
	s.token = admin
	s.run("/v1/namespaces/shop/workloads/a", "eu-1")
	s.run("/v1/namespaces/shop/workloads/b", "us-1")
	s.run("/v1/namespaces/shop/workloads/c", "us-1")
	s.run("/v1/namespaces/other/workloads/d", "us-1")
	s.propagating(func(_ *api.PropagationPolicy, workload *api.Workload) (*api.WorkloadStatus, bool) {
		status := boundTo(workload, "eu-1")
		switch workload.Metadata.Name {
		case "c":
			return nil, false
		case "d":
			status.Conditions = nil
		}
		return &status, true
	})
	want := []api.PreviewedBinding{
		{Workload: "other/d", CurrentReplicas: map[string]int64{"us-1": 1}, Replicas: map[string]int64{"eu-1": 1}, Claimed: true, Summary: "as propagated"},
		{Workload: "shop/a", CurrentReplicas: map[string]int64{"eu-1": 1}, Replicas: map[string]int64{"eu-1": 1}, Claimed: true, Summary: "as propagated"},
		{Workload: "shop/b", CurrentReplicas: map[string]int64{"us-1": 1}, Replicas: map[string]int64{"eu-1": 1}, Claimed: true, Summary: "as propagated"},
		{Workload: "shop/c", CurrentReplicas: map[string]int64{"us-1": 1}, Replicas: map[string]int64{"us-1": 1}, Summary: "as propagated"},
	}
	p := s.mustPreview(globalBody)
	if p.Kind != api.KindPropagationPolicy || p.Namespace != "" || p.Name != "all" || p.Satisfied || fmt.Sprint(p.Bindings) != fmt.Sprint(want) ||
		p.Summary != "3 workloads would follow the policy, 2 of them on other clusters or with other replicas than now; 1 would no longer follow it" {
		t.Errorf("unexpected preview %+v", p)
	}
	// A user of one namespace learns nothing about others, neither from their own previews nor from those of others.
	s.token = viewer
	own := s.mustPreview(globalBody)
	theirs := decodeAs[api.Preview](t, s.do(http.MethodGet, "/v1/previews/"+p.ID, ""))
	for _, seen := range []api.Preview{own, theirs} {
		if fmt.Sprint(seen.Bindings) != fmt.Sprint(want[1:]) || !seen.Satisfied ||
			seen.Summary != "2 workloads would follow the policy, 1 of them on other clusters or with other replicas than now; 1 would no longer follow it" {
			t.Errorf("unexpected preview %+v", seen)
		}
	}
	s.token = admin
	if again := decodeAs[api.Preview](t, s.do(http.MethodGet, "/v1/previews/"+p.ID, "")); fmt.Sprint(again) != fmt.Sprint(p) {
		t.Errorf("GET: %+v, want %+v", again, p)
	}
	if a := s.do(http.MethodGet, globalPath, ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("GET of the previewed policy: got %d, want 404", a.StatusCode)
	}
	if status := s.statusOf("/v1/namespaces/shop/workloads/b"); status.Clusters[0].Name != "us-1" {
		t.Errorf("the preview moved a workload: %+v", status)
	}
}

// The policy and the previewed bindings are written in one transaction: watchers never see one without the other.
func TestPreviewTokenCommitsThePolicyWithItsBindings(t *testing.T) {
	s := startServer(t)
	s.run("/v1/namespaces/shop/workloads/a", "us-1")
	s.run("/v1/namespaces/shop/workloads/b", "us-1")
	s.run("/v1/namespaces/other/workloads/a", "us-1")
	s.propagatingTo("eu-1", "eu-2")
	for i, body := range []string{policyBody, strings.Replace(policyBody, `"spec":{`, `"spec":{"priority":1,`, 1)} {
		p := s.mustPreview(body)
		if i > 0 {
			s.mustPut(policyPath, body, "Preview-Token", p.Token)
		} else if a := s.do(http.MethodPut, policyPath, body, "Preview-Token", p.Token); a.StatusCode != http.StatusCreated {
			t.Fatalf("got %d %s, want 201", a.StatusCode, a.body)
		}
		policy := decodeAs[api.PropagationPolicy](t, s.do(http.MethodGet, policyPath, ""))
		spec, _, err := s.store.Read(context.Background(), api.KeyOf(&policy))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			status := s.statusOf("/v1/namespaces/shop/workloads/" + name)
			if !maps.Equal(status.ReplicasByCluster(), map[string]int64{"eu-1": 1, "eu-2": 2}) ||
				status.Policy != "shop/eu" || status.PolicyUID != policy.Metadata.UID || status.PolicyGeneration != int64(i+1) {
				t.Errorf("workload %s: %+v", name, status)
			}
			_, record, err := s.store.Read(context.Background(), api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: name})
			if err != nil || record.ModRevision != spec.ModRevision {
				t.Errorf("workload %s: status at %+v, policy at %d (%v), want one transaction", name, record, spec.ModRevision, err)
			}
		}
		if status := s.statusOf("/v1/namespaces/other/workloads/a"); status.Clusters[0].Name != "us-1" {
			t.Errorf("in another namespace: got %+v", status)
		}
		// Writing the same object again does not use the preview.
		s.propagatingTo("eu-1")
		for _, token := range []string{p.Token, "unknown"} {
			if a := s.do(http.MethodPut, policyPath, body, "Preview-Token", token); a.StatusCode != 200 {
				t.Errorf("unchanged, token %q: %d %s", token, a.StatusCode, a.body)
			}
		}
		s.propagatingTo("eu-1", "eu-2")
	}
}

func TestPreviewTokenOfAPolicyIsRefused(t *testing.T) {
	s := startServer(t)
	for _, test := range []struct {
		name   string
		change func()
		body   string
		want   string // part of the detail; "" = accepted
	}{
		{name: "unchanged", change: func() {}},
		{name: "other replicas", change: func() { s.propagatingTo("eu-1", "eu-2", "eu-3") },
			want: `the fleet changed since the preview: plan again: it showed workload "shop/a" on [eu-1: 1, eu-2: 2], and the decision would now be workload "shop/a" on [eu-1: 1, eu-2: 2, eu-3: 3]`},
		{name: "one workload more", change: func() { s.run("/v1/namespaces/shop/workloads/c", "us-1") },
			want: `it showed workload "shop/c" not under the policy, and the decision would now be workload "shop/c" on [eu-1: 1, eu-2: 2]`},
		{name: "one workload less", change: func() { s.do(http.MethodDelete, "/v1/namespaces/shop/workloads/b", "") },
			want: `it showed workload "shop/b" on [eu-1: 1, eu-2: 2], and the decision would now be workload "shop/b" not under the policy`},
		{name: "lost claim", change: func() {
			s.propagating(func(_ *api.PropagationPolicy, workload *api.Workload) (*api.WorkloadStatus, bool) {
				status := boundTo(workload, "eu-1", "eu-2")
				return &status, workload.Metadata.Name == "a"
			})
		}, want: `the decision would now be workload "shop/b" no longer under the policy, on [eu-1: 1, eu-2: 2]`},
		{name: "other spec", change: func() {}, body: strings.Replace(policyBody, `"spec":{`, `"spec":{"priority":9,`, 1),
			want: `the preview was made for another spec of propagation_policy "shop/eu": plan again`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.do(http.MethodDelete, policyPath, "")
			s.do(http.MethodDelete, "/v1/namespaces/shop/workloads/c", "")
			s.run("/v1/namespaces/shop/workloads/a", "us-1")
			s.run("/v1/namespaces/shop/workloads/b", "us-1")
			s.propagatingTo("eu-1", "eu-2")
			p := s.mustPreview(policyBody)
			test.change()
			body := policyBody
			if test.body != "" {
				body = test.body
			}
			a := s.do(http.MethodPut, policyPath, body, "Preview-Token", p.Token)
			if test.want == "" {
				if a.StatusCode != http.StatusCreated {
					t.Errorf("got %d %s, want 201", a.StatusCode, a.body)
				}
				return
			}
			if a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.problem(t).Detail, test.want) {
				t.Errorf("got %d %s, want 412 with %q", a.StatusCode, a.body, test.want)
			}
			if a := s.do(http.MethodGet, policyPath, ""); a.StatusCode != http.StatusNotFound {
				t.Errorf("the policy was written: %d", a.StatusCode)
			}
			if status := s.statusOf("/v1/namespaces/shop/workloads/a"); status.Clusters[0].Name != "us-1" {
				t.Errorf("a binding was written: %+v", status)
			}
		})
	}
}

// Changed bindings are written with the policy as long as they fit into one transaction. Further workloads are decided
// afterwards. Unchanged bindings do not count.
func TestBindingsAreWrittenWhileTheyFit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		changed, unchanged int
		long               bool // statuses of many kilobytes
		written            bool
	}{
		{previewcommit.MaxBindings, 20, false, true},
		{previewcommit.MaxBindings + 1, 0, false, false},
		{0, 3, false, true},
		{40, 0, true, false},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			s := startServer(t)
			for i := range test.changed + test.unchanged {
				s.mustPut(fmt.Sprintf("/v1/namespaces/shop/workloads/w%02d?wait=0s", i), workloadBody)
			}
			s.propagating(func(_ *api.PropagationPolicy, workload *api.Workload) (*api.WorkloadStatus, bool) {
				if workload.Metadata.Name >= fmt.Sprintf("w%02d", test.changed) {
					return nil, true
				}
				status := boundTo(workload, "eu-1")
				if test.long {
					// Incompressible, so that it stays large.
					for i := range 1500 {
						message := fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(workload.Metadata.Name, i))))
						status.Health = append(status.Health, api.ClusterHealth{Cluster: "eu-1", Status: api.Unhealthy, Message: message})
					}
				}
				return &status, true
			})
			p := s.mustPreview(policyBody)
			a := s.do(http.MethodPut, policyPath, policyBody, "Preview-Token", p.Token)
			if a.StatusCode != http.StatusCreated {
				t.Fatalf("got %d %.500s, want 201", a.StatusCode, a.body)
			}
			n := 0
			for entry := range s.fleet.Snapshot().All(api.KindWorkload, "shop") {
				if entry.StatusRevision > 0 {
					n++
				}
			}
			if want := map[bool]int{true: test.changed}[test.written]; n != want {
				t.Errorf("%d bindings written, want %d", n, want)
			}
		})
	}
}

func TestPreviewTooLargeToKeep(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.mustPut(workloadPath, workloadBody)
	s.propagating(func(_ *api.PropagationPolicy, workload *api.Workload) (*api.WorkloadStatus, bool) {
		status := boundTo(workload)
		for i := range 60_000 {
			status.Clusters = append(status.Clusters, api.WorkloadCluster{Name: fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(i))))})
		}
		return &status, true
	})
	a := s.do(http.MethodPost, "/v1/previews", policyBody)
	if a.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(a.problem(t).Detail, `the preview of propagation_policy "shop/eu" has `) {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
}

// If a workload changes between the decision and the commit, in its spec or status, the check is repeated.
func TestBindingsAreCheckedAgainstWhatTheyReplace(t *testing.T) {
	for name, change := range map[string]func(s *testServer){
		"its status": func(s *testServer) { s.run(workloadPath, "us-2") },
		"its spec":   func(s *testServer) { s.mustPut(workloadPath, previewedWorkloadBody) },
		"all of it":  func(s *testServer) { s.do(http.MethodDelete, workloadPath, "") },
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t)
			s.run(workloadPath, "us-1")
			s.propagatingTo("eu-1")
			p := s.mustPreview(policyBody)
			s.beforeNextCommit(func() {
				change(s)
				s.propagatingTo("eu-1", "eu-2")
			})
			a := s.do(http.MethodPut, policyPath, policyBody, "Preview-Token", p.Token)
			if a.StatusCode != http.StatusPreconditionFailed {
				t.Errorf("got %d %s, want 412", a.StatusCode, a.body)
			}
			if a := s.do(http.MethodGet, policyPath, ""); a.StatusCode != http.StatusNotFound {
				t.Errorf("the policy was written: %d", a.StatusCode)
			}
		})
	}
}

// If a workload changes while its bindings are decided, they are decided again, so that no concurrent update is lost.
func TestBindingsAreMadeFromWhatTheyReplace(t *testing.T) {
	s := startServer(t)
	s.run(workloadPath, "us-1")
	s.decisions.mu.Lock()
	asked := 0
	s.decisions.propagate = func(*api.PropagationPolicy) map[api.Key]api.PreviewedWorkload {
		asked++
		workload := *s.fleet.Snapshot().Get(shopWeb).Object.(*api.Workload)
		if asked == 2 { // called by the PUT
			reported := workload
			reported.Status.Health = []api.ClusterHealth{{Cluster: "us-1", Status: api.Unhealthy}}
			s.writeStatus(&reported)
		}
		w := api.PreviewedWorkload{Object: &workload, Current: workload.Status, Claimed: true}
		workload.Status = boundTo(&workload, "eu-1")
		return map[api.Key]api.PreviewedWorkload{shopWeb: w}
	}
	s.decisions.mu.Unlock()
	p := s.mustPreview(policyBody)
	a := s.do(http.MethodPut, policyPath, policyBody, "Preview-Token", p.Token)
	if status := s.statusOf(workloadPath); a.StatusCode != http.StatusCreated || status.Clusters[0].Name != "eu-1" || status.HealthOn("us-1") == nil || asked != 3 {
		t.Errorf("got %d %s, %d calls: %+v", a.StatusCode, a.body, asked, status)
	}
}
