package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// controllers are the two protocols, with the same queries.
var controllers = []struct {
	name string
	ask  func(s *testServer, namespace string, query map[string]any, header ...string) answer
}{
	{"argocd", func(s *testServer, namespace string, query map[string]any, header ...string) answer {
		body, _ := json.Marshal(map[string]any{"applicationSetName": "web", "input": map[string]any{"parameters": query}, "later": 1})
		return s.do(http.MethodPost, "/integrations/argocd/"+namespace+"/api/v1/getparams.execute", string(body), header...)
	}},
	{"flux", func(s *testServer, namespace string, query map[string]any, header ...string) answer {
		values := url.Values{}
		for name, value := range query {
			if labels, ok := value.(map[string]string); ok {
				var parts []string
				for key, text := range labels {
					parts = append(parts, key+"="+text)
				}
				value = strings.Join(parts, ",")
			}
			values.Set(name, fmt.Sprint(value))
		}
		return s.do(http.MethodGet, "/integrations/flux/"+namespace+"/inputs?"+values.Encode(), "", header...)
	}},
}

// toldClusters returns the clusters in an answer.
func toldClusters(t *testing.T, a answer) []api.DecidedCluster {
	t.Helper()
	var body struct {
		Output *struct{ Parameters *[]api.DecidedCluster }
		Inputs *[]api.DecidedCluster
	}
	if err := json.Unmarshal(a.body, &body); err != nil {
		t.Fatalf("%d %s: %v", a.StatusCode, a.body, err)
	}
	switch {
	case body.Output != nil && body.Output.Parameters != nil:
		return *body.Output.Parameters
	case body.Inputs != nil:
		return *body.Inputs
	}
	t.Fatalf("neither output.parameters nor inputs, which the controllers take for an empty list: %d %q", a.StatusCode, a.body)
	return nil
}

// agedStore is a store that was heard of some time ago.
type agedStore struct {
	Store
	age time.Duration
}

func (a *agedStore) Age(revision int64) time.Duration { return a.age + a.Store.Age(revision) }

const web = "/v1/namespaces/shop/placements/web"

// decided stores the decision of a placement.
func (s *testServer) decided(path, spec string, change func(*api.PlacementStatus), clusters ...string) {
	s.t.Helper()
	p := decodeAs[*api.Placement](s.t, s.mustPut(path, `{"metadata":{"labels":{"app":"shop"}},"spec":`+spec+`}`))
	p.Status = api.PlacementStatus{ObservedGeneration: p.Metadata.Generation, Clusters: clusters, DecisionRevision: 7}
	for i, name := range clusters {
		p.Status.Decisions = append(p.Status.Decisions, api.Decision{Cluster: name, Rank: int64(i + 1), Score: 0.5})
	}
	scheduled := api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}
	if len(clusters) == 0 {
		scheduled = api.Condition{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: api.ReasonNoSuitableClusters, Message: "0 of 3 clusters fit: 3 lack label gpu"}
	}
	p.Status.Conditions = []api.Condition{scheduled}
	if change != nil {
		change(&p.Status)
	}
	s.writeStatus(p)
}

// bound stores the binding of a workload that follows the policy shop/all.
func (s *testServer) bound(name string, replicas int64, change func(*api.WorkloadStatus), clusters ...string) {
	s.t.Helper()
	policy := decodeAs[*api.PropagationPolicy](s.t, s.mustPut("/v1/namespaces/shop/propagation-policies/all", `{"spec":{`+deploymentSelector+`}}`))
	w := decodeAs[*api.Workload](s.t, s.mustPut("/v1/namespaces/shop/workloads/"+name, fmt.Sprintf(`{"metadata":{"labels":{"app":"shop"}},"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":%d}}`, replicas)))
	w.Status = boundTo(w, clusters...)
	w.Status.Policy, w.Status.PolicyUID, w.Status.PolicyGeneration = "shop/all", policy.Metadata.UID, policy.Metadata.Generation
	if len(clusters) == 0 && replicas > 0 {
		w.Status.Conditions = []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: api.ReasonNoClusterFit, Message: "no cluster has room"}}
	}
	if change != nil {
		change(&w.Status)
	}
	s.writeStatus(w)
}

func leaving(clusters ...string) func(*api.WorkloadStatus) {
	return func(status *api.WorkloadStatus) {
		for _, name := range clusters {
			status.Evictions = append(status.Evictions, api.Eviction{Cluster: name, Replicas: 2, Reason: api.EvictedClusterLost, PurgeMode: api.PurgeGracefully})
		}
	}
}

func held(kind string) func(*api.PlacementStatus) {
	return func(status *api.PlacementStatus) {
		status.Conditions = append(status.Conditions, api.Condition{Type: kind, Status: api.ConditionTrue, Message: "for now"})
	}
}

// TestControllersAreNeverToldToDeleteByMistake tries every situation of a decision.
func TestControllersAreNeverToldToDeleteByMistake(t *testing.T) {
	t.Parallel()
	type query = map[string]any
	placement, workload, policy := query{"name": "web"}, query{"kind": "workload", "name": "web"}, query{"kind": "policy", "name": "all"}
	with := func(q query, name string, value any) query {
		more := query{name: value}
		for k, v := range q {
			more[k] = v
		}
		return more
	}
	groups := `{"decision_strategy":{"decision_groups":[{"name":"canary","label_selector":{"match_labels":{"tier":"canary"}}},{"name":"empty","label_selector":{"match_labels":{"tier":"none"}}}]}}`
	grouped := func(status *api.PlacementStatus) { status.Decisions[0].Group = "canary" }
	for _, test := range []struct {
		name  string
		given func(s *testServer, aged *agedStore)
		query query
		want  string // the clusters by ID with their states, or "" for none
		// status and detail are of the problem; 0 = there is an answer.
		status int
		detail string
	}{
		{"decided", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, nil, "rome", "paris") }, placement, "web.paris serving, web.rome serving", 0, ""},
		{"some fit", func(s *testServer, _ *agedStore) { s.decided(web, `{"number_of_clusters":3}`, nil, "paris") }, placement, "web.paris serving", 0, ""},
		{"none wanted", func(s *testServer, _ *agedStore) { s.decided(web, `{"number_of_clusters":0}`, nil) }, placement, "", 0, ""},
		{"none wanted, not decided yet", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.mustPut(web, `{"spec":{"number_of_clusters":0}}`)
		}, with(placement, "allow_empty", true), "", 503, "has not been decided yet"},
		{"none fits", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, nil) }, placement, "", 503, "3 lack label gpu"},
		{"none fits, and that is allowed", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, nil) }, with(placement, "allow_empty", true), "", 0, ""},
		{"none fits, and it is faulted", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, held(api.ConditionFaulted)) }, with(placement, "allow_empty", true), "", 503, "not updated for now"},
		{"new", func(s *testServer, _ *agedStore) { s.mustPut(web, `{"spec":{}}`) }, with(placement, "allow_empty", true), "", 503, "has not been decided yet"},
		{"changed", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.mustPut(web, `{"spec":{"number_of_clusters":1}}`)
		}, placement, "", 503, "has not been decided yet"},
		{"deleted", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.do(http.MethodDelete, web, "")
		}, with(placement, "allow_empty", true), "", 404, "does not exist"},
		{"unknown", func(*testServer, *agedStore) {}, placement, "", 404, `placement "shop/web" does not exist`},
		{"held", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, held(api.ConditionMoveHeld), "paris") }, placement, "web.paris serving", 0, ""},
		{"nowhere, and it refers to something unknown", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, held(api.ConditionMisconfigured)) }, with(placement, "allow_empty", true), "", 503, "not updated for now"},
		{"nowhere, and a metric is unread", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, held(api.ConditionMetricsUnread)) }, with(placement, "allow_empty", true), "", 503, "not updated for now"},
		{"nowhere, and expressions are pending", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, held(api.ConditionExpressionsPending)) }, with(placement, "allow_empty", true), "", 503, "not updated for now"},
		{"held nowhere", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, held(api.ConditionMoveHeld)) }, with(placement, "allow_empty", true), "", 503, "not updated for now: for now"},
		{"on a paused cluster", func(s *testServer, _ *agedStore) {
			s.mustPut("/v1/clusters/paris", `{"spec":{"paused":true}}`)
			s.decided(web, `{}`, nil, "paris")
		}, placement, "web.paris serving", 0, ""},
		{"on a cluster that is gone", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, nil, "paris", "atlantis") }, placement, "", 503, `cluster "atlantis", which does not exist any more`},
		{"the store is away", func(s *testServer, aged *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			aged.age = time.Minute
		}, placement, "", 503, "has not heard of its store for 1m"},
		{"the store is away, none wanted", func(s *testServer, aged *agedStore) {
			s.decided(web, `{"number_of_clusters":0}`, nil)
			aged.age = time.Minute
		}, with(placement, "allow_empty", true), "", 503, "has not heard of its store"},
		{"damaged", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.damage(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"})
		}, with(placement, "allow_empty", true), "", 500, "is damaged in the store"},
		{"a damaged cluster, of which an earlier version is known", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.damage(api.Key{Kind: api.KindCluster, Name: "paris"})
		}, placement, "web.paris serving", 0, ""},

		{"decision group", func(s *testServer, _ *agedStore) { s.decided(web, groups, grouped, "rome", "paris") }, with(placement, "decision_group", "canary"), "web.rome serving", 0, ""},
		{"empty decision group", func(s *testServer, _ *agedStore) { s.decided(web, groups, grouped, "rome", "paris") }, with(placement, "decision_group", "empty"), "", 503, `none of its 2 clusters is in decision group "empty"`},
		{"empty decision group, and that is allowed", func(s *testServer, _ *agedStore) { s.decided(web, groups, grouped, "rome", "paris") },
			with(with(placement, "decision_group", "empty"), "allow_empty", true), "", 0, ""},
		{"unknown decision group", func(s *testServer, _ *agedStore) { s.decided(web, groups, grouped, "rome") }, with(placement, "decision_group", "canari"), "", 404, `no decision group "canari"`},

		{"workload", func(s *testServer, _ *agedStore) { s.bound("web", 3, nil, "paris", "rome") }, workload, "web.paris serving, web.rome serving", 0, ""},
		{"workload that is leaving a cluster", func(s *testServer, _ *agedStore) { s.bound("web", 3, leaving("oslo"), "rome") }, workload, "web.oslo evicting, web.rome serving", 0, ""},
		{"workload that is leaving a cluster, without it", func(s *testServer, _ *agedStore) { s.bound("web", 3, leaving("oslo"), "rome") }, with(workload, "include_evicting", false), "web.rome serving", 0, ""},
		{"workload that is leaving its only cluster", func(s *testServer, _ *agedStore) { s.bound("web", 3, leaving("oslo")) }, workload, "web.oslo evicting", 0, ""},
		{"workload that is leaving its only cluster, without it", func(s *testServer, _ *agedStore) { s.bound("web", 3, leaving("oslo")) }, with(workload, "include_evicting", false), "", 503, "include_evicting is false"},
		{"workload that was purged directly", func(s *testServer, _ *agedStore) {
			s.bound("web", 3, func(status *api.WorkloadStatus) {
				status.Evictions = []api.Eviction{{Cluster: "oslo", Reason: api.EvictedApplicationUnhealthy, PurgeMode: api.PurgeDirectly}}
			})
		}, workload, "", 503, "no cluster has room"},
		{"workload without replicas", func(s *testServer, _ *agedStore) { s.bound("web", 0, nil) }, workload, "", 0, ""},
		{"workload without replicas that keeps its clusters", func(s *testServer, _ *agedStore) {
			s.bound("web", 0, func(status *api.WorkloadStatus) { status.Clusters[0].Replicas = 0 }, "paris")
		}, workload, "web.paris serving", 0, ""},
		{"workload that fits nowhere", func(s *testServer, _ *agedStore) { s.bound("web", 3, nil) }, workload, "", 503, "no cluster has room"},
		{"workload whose policy has changed", func(s *testServer, _ *agedStore) {
			s.bound("web", 3, nil, "paris")
			s.mustPut("/v1/namespaces/shop/propagation-policies/all", `{"metadata":{"labels":{"v":"2"}},"spec":{`+deploymentSelector+`}}`)
		}, workload, "", 503, "was written or deleted"},
		{"workload whose policy is gone", func(s *testServer, _ *agedStore) {
			s.bound("web", 3, nil, "paris")
			s.do(http.MethodDelete, "/v1/namespaces/shop/propagation-policies/all", "")
		}, workload, "", 503, "was written or deleted"},

		{"policy", func(s *testServer, _ *agedStore) {
			s.bound("web", 3, nil, "paris")
			s.bound("db", 3, nil, "rome")
		}, policy, "db.rome serving, web.paris serving", 0, ""},
		{"policy, one workload fits nowhere", func(s *testServer, _ *agedStore) {
			s.bound("web", 3, nil, "paris")
			s.bound("db", 3, nil)
		}, policy, "", 503, `workload "shop/db" has no clusters`},
		{"policy that no workload follows", func(s *testServer, _ *agedStore) {
			s.mustPut("/v1/namespaces/shop/propagation-policies/all", `{"spec":{`+deploymentSelector+`}}`)
		}, policy, "", 503, "no workload"},
		{"policy that no workload follows, and that is allowed", func(s *testServer, _ *agedStore) {
			s.mustPut("/v1/namespaces/shop/propagation-policies/all", `{"spec":{`+deploymentSelector+`}}`)
		}, with(policy, "allow_empty", true), "", 0, ""},
		{"unknown policy", func(*testServer, *agedStore) {}, policy, "", 404, "does not exist"},

		{"selector", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.decided("/v1/namespaces/shop/placements/db", `{}`, nil, "paris", "rome")
			s.decided("/v1/namespaces/other/placements/db", `{}`, nil, "oslo")
		}, query{"selector": map[string]string{"app": "shop"}}, "db.paris serving, db.rome serving, web.paris serving", 0, ""},
		{"selector, one is not decided", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.mustPut("/v1/namespaces/shop/placements/db", `{"metadata":{"labels":{"app":"shop"}},"spec":{}}`)
		}, query{"selector": map[string]string{"app": "shop"}}, "", 503, `placement "shop/db" has not been decided yet`},
		{"selector, one of another namespace is not decided", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.mustPut("/v1/namespaces/other/placements/db", `{"metadata":{"labels":{"app":"shop"}},"spec":{}}`)
		}, query{"selector": map[string]string{"app": "shop"}}, "web.paris serving", 0, ""},
		{"selector that selects nothing", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, nil, "paris") },
			query{"selector": map[string]string{"app": "shopp"}, "allow_empty": true}, "", 404, "with the labels app=shopp"},
		{"selector, an object is damaged", func(s *testServer, _ *agedStore) {
			s.decided(web, `{}`, nil, "paris")
			s.damage(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "lost"})
		}, query{"selector": map[string]string{"app": "shop"}}, "", 500, "is damaged"},

		{"neither name nor selector", func(*testServer, *agedStore) {}, query{}, "", 422, "invalid field"},
		{"both", func(*testServer, *agedStore) {}, query{"name": "web", "selector": map[string]string{"a": "b"}}, "", 422, "invalid field"},
		{"unknown kind", func(*testServer, *agedStore) {}, query{"kind": "cluster", "name": "web"}, "", 422, ""},
		{"decision group of a workload", func(*testServer, *agedStore) {}, query{"kind": "workload", "name": "web", "decision_group": "canary"}, "", 422, "invalid field"},
		{"name that is none", func(*testServer, *agedStore) {}, query{"name": "../web"}, "", 422, "invalid field"},
		{"server from something else", func(*testServer, *agedStore) {}, query{"name": "web", "server_from": "kubeconfig"}, "", 422, "invalid field"},
		{"server from a claim", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, nil, "rome") }, with(placement, "server_from", "claims.server"), "web.rome serving", 0, ""},
		{"server from a claim that a cluster lacks", func(s *testServer, _ *agedStore) { s.decided(web, `{}`, nil, "rome", "paris") }, with(placement, "server_from", "claims.server"), "",
			503, `cluster "paris" has no claims.server`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			aged := &agedStore{}
			s := startServer(t, func(o *Options) { aged.Store = o.Store; o.Store = aged })
			for _, name := range []string{"paris", "oslo"} {
				s.mustPut("/v1/clusters/"+name, `{"spec":{}}`)
			}
			s.mustPut("/v1/clusters/rome", `{"spec":{"claims":{"server":"https://rome:6443"}}}`)
			test.given(s, aged)
			for _, c := range controllers {
				a := c.ask(s, "shop", test.query)
				if test.status != 0 {
					p := a.problem(t)
					if a.StatusCode != test.status || !strings.Contains(p.Detail, test.detail) {
						t.Errorf("%s: got %d %s, want %d %q", c.name, a.StatusCode, a.body, test.status, test.detail)
					}
					if p.Message == "" || !strings.Contains(p.Message, p.Detail) || p.Title == "" {
						t.Errorf("%s: Argo CD would show %q: %s", c.name, p.Message, a.body)
					}
					continue
				}
				if a.StatusCode != http.StatusOK {
					t.Errorf("%s: got %d %s", c.name, a.StatusCode, a.body)
					continue
				}
				var got []string
				for _, row := range toldClusters(t, a) {
					got = append(got, row.ID+" "+string(row.State))
				}
				if text := strings.Join(got, ", "); text != test.want {
					t.Errorf("%s: got %q, want %q", c.name, text, test.want)
				}
			}
		})
	}
}

// damage replaces a stored spec with one that cannot be read.
func (s *testServer) damage(key api.Key) {
	s.t.Helper()
	s.commitPast(key, []byte("{"))
	eventually.True(s.t, key.String()+" is damaged", func() bool { return s.fleet.Snapshot().Damaged(key) != nil })
}

// Without a token, with a wrong one and with one for other namespaces, nothing is said, and everything stays.
func TestControllersNeedTheirRights(t *testing.T) {
	t.Parallel()
	s := startServer(t, authenticated)
	s.token = s.addToken(auth.RoleAdmin)
	s.mustPut("/v1/clusters/paris", `{"spec":{}}`)
	s.mustPut("/v1/clusters/vault", `{"spec":{"namespace":"other"}}`)
	s.decided(web, `{}`, nil, "paris")
	s.decided("/v1/namespaces/shop/placements/mixed", `{}`, nil, "paris", "vault")
	viewer, other, agent := s.addToken(auth.RoleViewer, "shop"), s.addToken(auth.RoleViewer, "other"), s.addToken(auth.RoleAgent)
	for _, test := range []struct {
		name, token, placement string
		argocd, flux           int
		detail                 string
	}{
		{"viewer of the namespace", viewer, "web", 200, 200, ""},
		{"viewer of another namespace", other, "web", 403, 403, `must not read what belongs to namespace "shop"`},
		{"viewer of another namespace, unknown name", other, "none", 403, 403, "must not read"},
		{"agent", agent, "web", 403, 403, "must not read"},
		{"wrong token", "wrong", "web", 403, 401, "unknown, revoked or expired"},
		{"no token", "", "web", 403, 401, "a token is required"},
		{"a cluster of another namespace", viewer, "mixed", 403, 403, "must not read"},
	} {
		s.token = test.token
		for i, c := range controllers {
			want := []int{test.argocd, test.flux}[i]
			a := c.ask(s, "shop", map[string]any{"name": test.placement})
			if a.StatusCode != want {
				t.Errorf("%s, %s: got %d %s, want %d", test.name, c.name, a.StatusCode, a.body, want)
			}
			if want == 200 {
				continue
			}
			if p := a.problem(t); !strings.Contains(p.Message, test.detail) {
				t.Errorf("%s, %s: the message %q does not say %q", test.name, c.name, p.Message, test.detail)
			}
		}
	}
	s.token = viewer
	for _, c := range controllers {
		if a := c.ask(s, "other", map[string]any{"name": "web"}); a.StatusCode != 403 {
			t.Errorf("%s: another namespace in the path: %d %s", c.name, a.StatusCode, a.body)
		}
	}
	if a := controllers[0].ask(s, "shop", map[string]any{"name": "web", "namespace": "other"}); a.StatusCode != 422 || !strings.Contains(a.problem(t).Message, "input.parameters.namespace") {
		t.Errorf("another namespace in the input: %d %s", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodGet, "/integrations/argocd/shop/api/v2/getparams.execute", ""); a.StatusCode != 404 || a.problem(t).Message == "" {
		t.Errorf("an unknown path: %d %s", a.StatusCode, a.body)
	}
}

// Templates get what a cluster inherits from its cloud, and no score that contains a metric that the token may not read.
func TestControllersSeeWhatTheirTokenSees(t *testing.T) {
	t.Parallel()
	s, admin, _, viewer := startVault(t)
	s.mustPut("/v1/clouds/north", `{"metadata":{"labels":{"location":"NO"}}}`)
	for _, room := range []string{"", `"allocatable":{"cpu":"8"},`} { // first it is created on the cloud, then it exists
		s.mustPut("/v1/clusters/edge", `{"metadata":{"labels":{"own":"1"}},"spec":{`+room+`"inherit_labels":true,"cloud_constraints":{"label_constraints":["location is NO"]},"metrics":[{"name":"hidden","namespace":"vault"}]}}`)
	}
	s.mustPut("/v1/namespaces/shop/placements/edge", `{"spec":{"cluster_names":["edge"]}}`)
	for _, c := range controllers {
		for token, scored := range map[string]bool{admin: true, viewer: false} {
			s.token = token
			rows := toldClusters(t, c.ask(s, "shop", map[string]any{"name": "edge"}))
			if len(rows) != 1 || (rows[0].Score != nil) != scored || rows[0].Labels["location"] != "NO" || rows[0].Labels["own"] != "1" {
				t.Errorf("%s, scored %t: %+v", c.name, scored, rows)
			}
		}
	}
}

// Requests that are not those of the controllers get a problem with a message as well.
func TestControllersRequestsThatAreWrong(t *testing.T) {
	s := startServer(t)
	const path = "/integrations/argocd/shop/api/v1/getparams.execute"
	for _, test := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"POST", path, `{`, 400, "not a request of a plugin generator"},
		{"POST", path, `[]`, 400, "not a request of a plugin generator"},
		{"POST", path, `{}`, 422, "input.parameters.name: is required"},
		{"POST", path, `{"input":{"parameters":null}}`, 422, "input.parameters.name: is required"},
		{"POST", path, `{"input":{"parameters":{"name":"web","alow_empty":true}}}`, 422, "alow_empty"},
		{"POST", path, `{"input":{"parameters":{"name":7}}}`, 422, "input.parameters.name"},
		{"POST", path, `{"input":{"parameters":{"name":"web","selector":{"":"x"}}}}`, 422, "selector"},
		{"GET", path, "", 405, "POST"},
		{"GET", "/integrations/flux/shop/inputs", "", 422, "name: is required"},
		{"GET", "/integrations/flux/shop/inputs?selector=web", "", 422, "app=web,tier=front"},
		{"GET", "/integrations/flux/shop/inputs?name=web&allow_empty=perhaps", "", 422, "allow_empty"},
		{"GET", "/integrations/flux/shop/inputs?name=web&limit=0", "", 422, "limit"},
		{"GET", "/integrations/flux/..%2fother/inputs?name=web", "", 404, "does not exist"},
	} {
		a := s.do(test.method, test.path, test.body)
		if p := a.problem(t); a.StatusCode != test.status || !strings.Contains(p.Message, test.message) {
			t.Errorf("%s %s %s: got %d %s, want %d %q", test.method, test.path, test.body, a.StatusCode, a.body, test.status, test.message)
		}
	}
}

// An answer that flux-operator would not read to its end, or of which it would ignore a part, says what would be right.
func TestFluxAnswerTooLarge(t *testing.T) {
	s := startServer(t)
	var names []string
	labels := map[string]string{}
	for i := range 60 {
		labels[fmt.Sprintf("label-%d", i)] = strings.Repeat("x", 60)
	}
	text, _ := json.Marshal(labels)
	for i := range 250 {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	for _, name := range names {
		s.mustPut("/v1/clusters/"+name+"?wait=0s", `{"metadata":{"labels":`+string(text)+`},"spec":{}}`)
	}
	s.decided(web, `{}`, nil, names...)
	ask := func(limit int) answer {
		return controllers[1].ask(s, "shop", map[string]any{"name": "web", "limit": limit})
	}
	if a := ask(100); a.StatusCode != 413 || !strings.Contains(a.problem(t).Detail, "set both spec.filter.limit and the parameter limit in spec.url to at least 250") {
		t.Errorf("beyond the limit: %d %s", a.StatusCode, a.body)
	}
	if a := ask(1000); a.StatusCode != 413 || !strings.Contains(a.problem(t).Detail, "reads at most 921600") {
		t.Errorf("too large: %d %.300s", a.StatusCode, a.body)
	}
	if a := controllers[0].ask(s, "shop", map[string]any{"name": "web"}); a.StatusCode != 200 || len(toldClusters(t, a)) != 250 {
		t.Errorf("argocd: %d %.300s", a.StatusCode, a.body)
	}
	s.decided(web, `{}`, nil, names[:180]...)
	if a := ask(180); a.StatusCode != 200 || len(toldClusters(t, a)) != 180 {
		t.Errorf("within both: %d %.300s", a.StatusCode, a.body)
	}
}

// The bodies are what the guides and the templates of users rely on.
func TestControllersAnswersGolden(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/paris", `{"metadata":{"labels":{"env":"prod","argocd/name":"paris-1"}},"spec":{"region":"eu-west","zones":["a","b"],"cloud_provider":"aws","claims":{"server":"https://paris:6443"}}}`)
	s.mustPut("/v1/clusters/rome", `{"metadata":{"labels":{"argocd/name":"rome-1"}},"spec":{"claims":{"server":"https://rome:6443"}}}`)
	zero := int64(0)
	s.decided(web, `{}`, func(status *api.PlacementStatus) {
		status.Decisions[0].Group, status.Decisions[0].GroupIndex = "canary", &zero
	}, "rome", "paris")
	s.bound("web", 5, func(status *api.WorkloadStatus) {
		two, one := int64(2), int64(1)
		status.Clusters[0].Replicas, status.Clusters[0].OnDemand, status.Clusters[0].Spot = 3, &one, &two
		leaving("rome")(status)
	}, "paris")
	for _, c := range controllers {
		for _, kind := range []string{"placement", "workload"} {
			query := map[string]any{"kind": kind, "name": "web", "server_from": "claims.server"}
			if c.name == "argocd" {
				query["argocd_name_from"] = "labels.argocd/name"
			}
			a := c.ask(s, "shop", query, "Accept", "application/json")
			if a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%s %s: %d %s", c.name, kind, a.StatusCode, a.body)
			}
			var indented strings.Builder
			encoder := json.NewEncoder(&indented)
			encoder.SetIndent("", "  ")
			var document any
			_ = json.Unmarshal(a.body, &document)
			_ = encoder.Encode(document)
			file := filepath.Join("testdata", "gitops", c.name+"-"+kind+".json")
			if *updateTable {
				if err := os.WriteFile(file, []byte(indented.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if indented.String() != string(want) {
				t.Errorf("%s differs:\n%s", file, indented.String())
			}
			again := c.ask(s, "shop", query)
			if !slices.Equal(again.body, a.body) {
				t.Errorf("%s %s: the second answer differs: %s", c.name, kind, again.body)
			}
		}
	}
}
