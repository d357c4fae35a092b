package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// A cluster that belongs to certain namespaces is only for them. Users of other namespaces cannot place workloads on it
// or learn that it exists, whichever way they ask.
func TestClusterOfNamespacesIsUsedOnlyByThem(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, authenticated)
	admin := s.addToken(auth.RoleAdmin)
	s.token = admin
	const vault = `{"metadata":{"labels":{"tier":"gold"}},"spec":{"namespaces":["bank","shop"],"region":"eu","zones":["az1"],"allocatable":{"cpu":"64"}}}`
	s.mustPut("/v1/clusters/vault", vault)
	s.mustPut("/v1/clusters/open", `{"metadata":{"labels":{"tier":"tin"}},"spec":{"region":"eu","zones":["az2"],"allocatable":{"cpu":"4"}}}`)
	s.mustPut("/v1/cluster-sets/all", `{"spec":{"clusters":["vault","open"]}}`)
	s.mustPut("/v1/cluster-sets/gold", `{"spec":{"selector":{"match_labels":{"tier":"gold"}}}}`)
	tokens := map[string]string{
		"bank": s.addToken(auth.RoleEditor, "bank"), "shop": s.addToken(auth.RoleEditor, "shop"), "both": s.addToken(auth.RoleEditor, "bank", "shop"),
		"thief": s.addToken(auth.RoleEditor, "thief"), "both agent": s.addToken(auth.RoleAgent, "bank", "shop"), "bank agent": s.addToken(auth.RoleAgent, "bank"),
	}

	// The owners can see and use it.
	for _, owner := range []string{"bank", "shop"} {
		s.token = tokens[owner]
		if got := decodeAs[api.Cluster](t, s.expect(200, http.MethodGet, "/v1/clusters/vault", "")); !slices.Equal(got.Spec.Namespaces, []string{"bank", "shop"}) {
			t.Errorf("%s: got owners %+v", owner, got.Spec)
		}
		a := s.mustPut("/v1/namespaces/"+owner+"/placements/web", `{"spec":{"number_of_clusters":1,"label_constraints":["tier is gold"]}}`)
		if got := decodeAs[api.Placement](t, a); !slices.Equal(got.Status.Clusters, []string{"vault"}) {
			t.Errorf("%s: got clusters %v", owner, got.Status.Clusters)
		}
	}
	// Changes that affect all owners require access to all of them.
	for who, status := range map[string]int{"bank": 403, "shop": 403, "thief": 403, "both": 200} {
		s.token = tokens[who]
		s.expect(status, http.MethodPut, "/v1/clusters/vault", vault)
	}
	s.token = tokens["bank"]
	for _, body := range []string{
		`{"spec":{"namespaces":["bank"]}}`, `{"spec":{"namespace":"bank"}}`, `{"spec":{"namespaces":["bank","thief"]}}`, `{"spec":{}}`,
	} {
		s.expect(403, http.MethodPut, "/v1/clusters/vault", body)
	}
	s.expect(403, http.MethodPut, "/v1/clusters/new", `{"spec":{"namespaces":["bank","shop"]}}`)
	s.expect(403, http.MethodDelete, "/v1/clusters/vault", "")
	for who, status := range map[string]int{"bank agent": 403, "both agent": 200} {
		s.token = tokens[who]
		if a := s.do(http.MethodPost, "/v1/clusters/vault/heartbeat", ""); a.StatusCode/100 != status/100 {
			t.Errorf("%s: heartbeat: %d %s", who, a.StatusCode, a.body)
		}
	}

	// Other users must not see it: no response may reveal its name, labels, owners or size.
	s.token = tokens["thief"]
	silent := func(a answer) {
		t.Helper()
		for _, secret := range []string{"vault", "bank", "shop", `"64"`, `"gold"`, "another namespace"} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%d %s reveals %q", a.StatusCode, a.body, secret)
			}
		}
	}
	for _, path := range []string{
		"/v1/clusters", "/v1/clusters?label_selector=tier%3Dgold", "/v1/placement-scores", "/v1/placements", "/globalscheduler/v1/clusters",
	} {
		silent(s.expect(200, http.MethodGet, path, ""))
	}
	if a := s.expect(403, http.MethodGet, "/v1/clusters/vault", ""); strings.Contains(string(a.body), "bank") || strings.Contains(string(a.body), "64") {
		t.Errorf("the answer reveals the cluster's owner or capacity: %s", a.body)
	}
	if a := s.expect(403, http.MethodPut, "/v1/clusters/vault", `{"spec":{"namespace":"thief"}}`); strings.Contains(string(a.body), "bank") {
		t.Errorf("the answer reveals the cluster's owner: %s", a.body)
	}
	for name, spec := range map[string]string{
		"all": `{}`, "label": `{"label_constraints":["tier is gold"]}`,
		"set": `{"cluster_sets":["gold"]}`, "cel": `{"predicates":[{"cel":["managedCluster.metadata.labels['tier'] == 'gold'"]}]}`,
		"size": `{"resource_requests":{"cpu":"32"}}`,
	} {
		path := "/v1/namespaces/thief/placements/" + name
		a := s.mustPut(path, `{"spec":`+spec+`}`)
		placed := decodeAs[api.Placement](t, a)
		if slices.Contains(placed.Status.Clusters, "vault") || strings.Contains(string(a.body), "another namespace") || strings.Contains(string(a.body), "vault") {
			t.Errorf("%s: the placement reveals the cluster: %s", name, a.body)
		}
		explained := s.expect(200, http.MethodGet, path+"/explanation", "")
		x := decodeAs[api.Explanation](t, explained)
		if x.Total != 1 || len(x.Candidates) != 1 || strings.Contains(string(explained.body), "vault") || strings.Contains(string(explained.body), "namespace\",\"on") ||
			x.NearestMiss != nil && x.NearestMiss.Filter == api.OwnershipFilter || strings.Contains(x.Summary, "of 2") {
			t.Errorf("%s: the explanation reveals the cluster: %s", name, explained.body)
		}
		preview := s.do(http.MethodPost, "/v1/previews", `{"metadata":{"namespace":"thief","name":"new"},"spec":`+spec+`}`)
		if preview.StatusCode >= 300 || strings.Contains(string(preview.body), "vault") || strings.Contains(string(preview.body), "of 2") {
			t.Errorf("%s: the preview reveals the cluster: %s", name, preview.body)
		}
	}
	// Other users cannot name it in a policy. If an administrator does, their workloads are still not placed on it.
	const policy = `{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],"placement":{"cluster_affinity":{"cluster_names":["vault"]}}}}`
	s.expect(403, http.MethodPut, "/v1/namespaces/thief/propagation-policies/p", policy)
	s.token = admin
	s.mustPut("/v1/namespaces/thief/propagation-policies/p", policy)
	s.token = tokens["thief"]
	if w := decodeAs[api.Workload](t, s.mustPut("/v1/namespaces/thief/workloads/w", `{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":1}}`)); len(w.Status.Clusters) > 0 {
		t.Errorf("status %+v, want no clusters", w.Status)
	}

	// Simulations do not reveal it: neither when it is given another owner, nor when the namespaces of its owners are
	// simulated.
	for _, body := range []string{
		`{"objects":[{"kind":"cluster","metadata":{"name":"vault"},"spec":{"namespace":"thief"}}]}`,
		`{"objects":[{"kind":"cluster","metadata":{"name":"vault"},"spec":{}}]}`,
		`{"objects":[{"kind":"placement_score","metadata":{"name":"s","cluster":"vault"},"spec":{"scores":{"cpu":1}}}]}`,
		`{"objects":[{"kind":"placement","metadata":{"namespace":"bank","name":"web"},"spec":{}}]}`,
		`{"objects":[{"kind":"placement","metadata":{"namespace":"bank","name":"other"},"spec":{}}]}`,
		`{"objects":[{"kind":"placement","metadata":{"namespace":"thief","name":"sim"},"spec":{}}]}`,
		`{"delete":[{"kind":"cluster","name":"vault"}]}`,
	} {
		a := s.do(http.MethodPost, "/v1/simulations", body)
		var shown string
		if a.StatusCode < 300 {
			shown = string(a.body)
		}
		for _, secret := range []string{"vault", `"64"`, "bank", "of 2 "} {
			if strings.Contains(shown, secret) {
				t.Errorf("%s: %s reveals %q", body, shown, secret)
			}
		}
	}
	// The response says that the site is taken, but not by which cluster.
	a := s.do(http.MethodPost, "/globalscheduler/v1/clusters", `{"name":"mine","namespace":"thief","ipaddress":"10.0.0.1","region":{"region":"eu","availabilityzone":"az1"}}`)
	if a.StatusCode != http.StatusConflict || strings.Contains(string(a.body), "vault") {
		t.Errorf("got %d %s, want 409 without the cluster's name", a.StatusCode, a.body)
	}

	// When a namespace is removed from the owners, the cluster disappears for it at once.
	s.token = admin
	s.mustPut("/v1/clusters/vault", strings.Replace(vault, `["bank","shop"]`, `["bank"]`, 1))
	if got := decodeAs[api.Placement](t, s.expect(200, http.MethodGet, "/v1/namespaces/shop/placements/web", "")); len(got.Status.Clusters) > 0 {
		t.Errorf("clusters of shop %v, want none", got.Status.Clusters)
	}
	if got := decodeAs[api.Placement](t, s.expect(200, http.MethodGet, "/v1/namespaces/bank/placements/web", "")); !slices.Equal(got.Status.Clusters, []string{"vault"}) {
		t.Errorf("clusters of bank %v, want vault", got.Status.Clusters)
	}
}
