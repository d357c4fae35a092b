package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// deploymentSelector selects workloads, for policies that must have a selector.
const deploymentSelector = `"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}]`

// namingSpecs are specs that refer to the object HIDDEN (in namespace VAULT, if there is one) through one field each.
// path is where an editor of shop can write such an object, or "" if only users with access to all namespaces can.
var namingSpecs = map[string]struct{ namespace, path, spec string }{
	"cloud spec.metrics[].name":             {"", "/v1/clouds/x", `{"namespace":"shop","metrics":[{"name":"HIDDEN","namespace":"VAULT"}]}`},
	"cluster spec.metrics[].name":           {"", "/v1/clusters/x", `{"namespace":"shop","metrics":[{"name":"HIDDEN","namespace":"VAULT"}]}`},
	"cluster spec.openstack.cloud":          {"", "/v1/clusters/x", `{"namespace":"shop","openstack":{"cloud":"HIDDEN","region":"r","availability_zone":"z"}}`},
	"cluster_set spec.clusters[]":           {"", "", `{"clusters":["HIDDEN"]}`},
	"magnum_cluster spec.metrics[].name":    {"shop", "/v1/namespaces/shop/magnum-clusters/x", `{"metrics":[{"name":"HIDDEN","namespace":"VAULT"}]}`},
	"openstack_project spec.metrics[].name": {"shop", "/v1/namespaces/shop/openstack-projects/x", `{"metrics":[{"name":"HIDDEN","namespace":"VAULT"}]}`},
	"placement spec.cluster_names[]":        {"shop", "/v1/namespaces/shop/placements/x", `{"cluster_names":["HIDDEN"]}`},
	"placement spec.exclude_clusters[]":     {"shop", "/v1/namespaces/shop/placements/x", `{"exclude_clusters":["HIDDEN"]}`},
	"propagation_policy spec.resource_selectors[].name": {
		"", "", `{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment","name":"HIDDEN","namespace":"VAULT"}]}`,
	},
	"propagation_policy spec.placement.cluster_affinity.cluster_names[]":    policyNaming(`"cluster_affinity":{"cluster_names":["HIDDEN"]}`),
	"propagation_policy spec.placement.cluster_affinity.exclude_clusters[]": policyNaming(`"cluster_affinity":{"exclude_clusters":["HIDDEN"]}`),
	"propagation_policy spec.placement.cluster_affinities[].cluster_names[]": policyNaming(
		`"cluster_affinities":[{"affinity_name":"a","cluster_names":["HIDDEN"]}]`),
	"propagation_policy spec.placement.cluster_affinities[].exclude_clusters[]": policyNaming(
		`"cluster_affinities":[{"affinity_name":"a","exclude_clusters":["HIDDEN"]}]`),
	"propagation_policy spec.placement.cluster_affinities[].overflow_affinities[].cluster_names[]": policyNaming(
		`"replica_scheduling":{"division_preference":"Aggregated"},"cluster_affinities":[{"affinity_name":"a","label_selector":{"match_labels":{"a":"b"}},"overflow_affinities":[{"affinity_name":"b","cluster_names":["HIDDEN"]}]}]`),
	"propagation_policy spec.placement.cluster_affinities[].overflow_affinities[].exclude_clusters[]": policyNaming(
		`"replica_scheduling":{"division_preference":"Aggregated"},"cluster_affinities":[{"affinity_name":"a","label_selector":{"match_labels":{"a":"b"}},"overflow_affinities":[{"affinity_name":"b","exclude_clusters":["HIDDEN"]}]}]`),
	"propagation_policy spec.placement.replica_scheduling.cluster_limits[].affinity.cluster_names[]": policyNaming(
		`"replica_scheduling":{"cluster_limits":[{"max_replicas":1,"affinity":{"cluster_names":["HIDDEN"]}}]}`),
	"propagation_policy spec.placement.replica_scheduling.cluster_limits[].affinity.exclude_clusters[]": policyNaming(
		`"replica_scheduling":{"cluster_limits":[{"max_replicas":1,"affinity":{"exclude_clusters":["HIDDEN"]}}]}`),
	"propagation_policy spec.placement.replica_scheduling.weight_preference.static_weights[].affinity.cluster_names[]": policyNaming(
		`"replica_scheduling":{"weight_preference":{"static_weights":[{"weight":1,"affinity":{"cluster_names":["HIDDEN"]}}]}}`),
	"propagation_policy spec.placement.replica_scheduling.weight_preference.static_weights[].affinity.exclude_clusters[]": policyNaming(
		`"replica_scheduling":{"weight_preference":{"static_weights":[{"weight":1,"affinity":{"exclude_clusters":["HIDDEN"]}}]}}`),
}

func policyNaming(placement string) struct{ namespace, path, spec string } {
	return struct{ namespace, path, spec string }{
		"shop", "/v1/namespaces/shop/propagation-policies/x", `{` + deploymentSelector + `,"placement":{` + placement + `}}`,
	}
}

// hideable reports whether a field can refer to an object that the writer may not read. Users may read their own
// namespace, and objects of some kinds belong to no namespace.
func hideable(f api.ReferenceField) bool {
	to, _ := api.LookupKind(f.To)
	_, owned := to.New().(interface{ Owners() []string })
	return !f.Kind.AccessControl() && f.In != api.InOwn && (owned || to.Scope != api.Global)
}

// startVault starts a server with objects in a namespace that shop may not read, each of them called hidden, and with
// tokens of shop.
func startVault(t *testing.T) (s *testServer, admin, editor, viewer string) {
	t.Helper()
	s = startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, authenticated)
	admin, editor, viewer = s.addToken(auth.RoleAdmin), s.addToken(auth.RoleEditor, "shop"), s.addToken(auth.RoleViewer, "shop")
	s.token = admin
	s.mustPut("/v1/namespaces/vault/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"x":0.424242}}}}`)
	s.mustPut("/v1/namespaces/vault/metrics/hidden", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"table","metric":"x"}}}`)
	s.mustPut("/v1/clusters/hidden", `{"metadata":{"labels":{"secret":"label"}},"spec":{"namespace":"vault","allocatable":{"cpu":"64"}}}`)
	s.mustPut("/v1/clouds/hidden", `{"metadata":{"labels":{"secret":"label"}},"spec":{"namespace":"vault"}}`)
	s.mustPut("/v1/namespaces/vault/workloads/hidden", workloadBody)
	return s, admin, editor, viewer
}

// document returns an object in the form that previews and simulations accept.
func document(kind api.Kind, namespace, name, parts string) string {
	if namespace != "" {
		namespace = `,"namespace":"` + namespace + `"`
	}
	return fmt.Sprintf(`{"kind":%q,"metadata":{"name":%q%s},%s}`, string(kind), name, namespace, parts)
}

// TestReferencesRequireReadAccess tries every field of every kind in writes, previews and simulations, whether the
// object exists or not.
func TestReferencesRequireReadAccess(t *testing.T) {
	s, admin, editor, viewer := startVault(t)
	for _, f := range api.ReferenceFields() {
		name := string(f.Kind) + " " + f.Field
		if strings.HasPrefix(f.Field, "status.") || !hideable(f) {
			continue
		}
		naming, ok := namingSpecs[name]
		if !ok {
			t.Errorf("%s: add an example to namingSpecs", name)
			continue
		}
		field := strings.ReplaceAll(f.Field, "[]", "[0]")
		to, _ := api.LookupKind(f.To)
		refuse := func(prefix, method, path, body string) {
			t.Helper()
			texts := map[string]bool{}
			for _, target := range []string{"hidden", "missing"} {
				if target == "missing" && to.Scope == api.Global {
					continue // does not exist yet
				}
				key := api.Key{Kind: f.To, Name: target}
				if to.Scope != api.Global {
					key.Namespace = "vault"
				}
				a := s.expect(http.StatusForbidden, method, path, strings.NewReplacer("HIDDEN", target, "VAULT", "vault").Replace(body))
				p := a.problem(t)
				if len(p.Errors) != 1 || p.Errors[0].Field != prefix+field || !strings.Contains(p.Errors[0].Message, key.String()) || !strings.Contains(p.Detail, key.String()) {
					t.Errorf("%s: %s %s: got %s, want the field %s and %s", name, method, path, a.body, prefix+field, key)
				}
				texts[strings.ReplaceAll(string(a.body), target, "NAME")] = true
			}
			if len(texts) != 1 {
				t.Errorf("%s: the answers reveal whether the object exists: %v", name, texts)
			}
		}
		object := document(f.Kind, naming.namespace, "x", `"spec":`+naming.spec)
		for _, token := range []string{editor, viewer} {
			s.token = token
			refuse("objects[0].", http.MethodPost, "/v1/simulations", `{"objects":[`+object+`]}`)
			refuse("objects[0].", http.MethodPost, "/v1/simulations", `{"base":"empty","objects":[`+object+`]}`)
			if slices.Contains(previewedKinds, f.Kind) {
				refuse("", http.MethodPost, "/v1/previews", object)
			}
		}
		if naming.path == "" {
			continue
		}
		s.token = editor
		body := `{"spec":` + naming.spec + `}`
		refuse("", http.MethodPut, naming.path, body)

		// A reference that was written by a user with access stays when others change other fields.
		s.token = admin
		body = strings.NewReplacer("HIDDEN", "hidden", "VAULT", "vault").Replace(body)
		s.mustPut(naming.path, body)
		s.token = editor
		s.mustPut(naming.path, strings.Replace(body, `{"spec"`, `{"metadata":{"labels":{"changed":"yes"}},"spec"`, 1))
		if f.Kind == api.KindCluster || f.Kind == api.KindPropagationPolicy {
			more := strings.Replace(body, "hidden", "other", 1)
			s.token = admin
			s.mustPut("/v1/clusters/other", `{"spec":{"namespace":"vault"}}`)
			s.mustPut("/v1/clouds/other", `{"spec":{"namespace":"vault"}}`)
			s.token = editor
			s.expect(http.StatusForbidden, http.MethodPut, naming.path, more)
		}
		s.token = admin
		s.expect(http.StatusNoContent, http.MethodDelete, naming.path, "")
	}
}

// TestSimulationStatusesHideWhatMayNotBeRead checks the statuses in a simulation request: they say where an object is,
// and decisions start from them.
func TestSimulationStatusesHideWhatMayNotBeRead(t *testing.T) {
	s, _, _, viewer := startVault(t)
	s.mustPut("/v1/clusters/mine", `{"spec":{"namespace":"shop"}}`)
	s.mustPut("/v1/namespaces/shop/workloads/mine", workloadBody)
	s.token = viewer
	for field, object := range map[string]string{
		"status.cloud":                   document(api.KindCluster, "", "x", `"spec":{"namespace":"shop","inherit_labels":true},"status":{"cloud":"hidden"}`),
		"status.observed_zone.cloud":     document(api.KindCluster, "", "x", `"spec":{"namespace":"shop"},"status":{"observed_zone":{"cloud":"hidden"}}`),
		"status.clusters[0]":             document(api.KindPlacement, "shop", "x", `"spec":{},"status":{"clusters":["hidden"]}`),
		"status.decisions[0].cluster":    document(api.KindPlacement, "shop", "x", `"spec":{},"status":{"decisions":[{"cluster":"hidden"}]}`),
		"status.clusters[0].name":        document(api.KindWorkload, "shop", "x", workloadBody[1:len(workloadBody)-1]+`,"status":{"clusters":[{"name":"hidden","replicas":1}]}`),
		"status.evictions[0].cluster":    document(api.KindWorkload, "shop", "x", workloadBody[1:len(workloadBody)-1]+`,"status":{"evictions":[{"cluster":"hidden","replicas":1}]}`),
		"status.health[0].cluster":       document(api.KindWorkload, "shop", "x", workloadBody[1:len(workloadBody)-1]+`,"status":{"health":[{"cluster":"hidden","status":"healthy"}]}`),
		"status.policy":                  document(api.KindWorkload, "shop", "x", workloadBody[1:len(workloadBody)-1]+`,"status":{"policy":"vault/p"}`),
		"status.preemptions[0].workload": document(api.KindWorkload, "shop", "x", workloadBody[1:len(workloadBody)-1]+`,"status":{"preemptions":[{"workload":"vault/hidden"}]}`),
	} {
		a := s.expect(http.StatusForbidden, http.MethodPost, "/v1/simulations", `{"objects":[`+object+`]}`)
		if p := a.problem(t); len(p.Errors) != 1 || p.Errors[0].Field != "objects[0]."+field {
			t.Errorf("%s: unexpected problem %s", field, a.body)
		}
	}
	// A reader may include in a simulation what the API has returned to it.
	for _, path := range []string{"/v1/clusters/mine", "/v1/namespaces/shop/workloads/mine"} {
		shown := s.expect(http.StatusOK, http.MethodGet, path, "")
		s.expect(http.StatusOK, http.MethodPost, "/v1/simulations", `{"objects":[`+string(shown.body)+`]}`)
	}
}

// TestSimulationOfUnreadableObjectsIsForbidden checks that objects in other namespaces are rejected, whether they exist
// or not.
func TestSimulationOfUnreadableObjectsIsForbidden(t *testing.T) {
	s, _, _, viewer := startVault(t)
	s.token = viewer
	for _, name := range []string{"hidden", "missing"} {
		for _, body := range []string{
			`{"objects":[` + document(api.KindWorkload, "vault", name, workloadBody[1:len(workloadBody)-1]) + `]}`,
			`{"objects":[` + document(api.KindMetric, "vault", name, `"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"m"}}`) + `]}`,
			`{"delete":[{"kind":"workload","namespace":"vault","name":"` + name + `"}]}`,
			`{"base":"empty","objects":[` + document(api.KindPlacement, "vault", name, `"spec":{}`) + `]}`,
			`{"objects":[` + document(api.KindCluster, "", name, `"spec":{"namespace":"vault"}`) + `]}`,
		} {
			s.expect(http.StatusForbidden, http.MethodPost, "/v1/simulations", body)
		}
	}
	// A cluster and its scores may be in the same request.
	s.expect(http.StatusOK, http.MethodPost, "/v1/simulations", `{"objects":[`+document(api.KindCluster, "", "new", `"spec":{}`)+
		`,{"kind":"placement_score","metadata":{"name":"s","cluster":"new"},"spec":{"scores":{"cpu":1}}}]}`)
}

// TestValuesOfMetricsStayInTheirNamespace checks that the values of a metric appear nowhere outside its namespace, even
// if a global cluster is scored by it.
func TestValuesOfMetricsStayInTheirNamespace(t *testing.T) {
	s, admin, editor, viewer := startVault(t)
	shared := `{"spec":{"metrics":[{"name":"hidden","namespace":"vault"}],"inherit_metrics":true}}`
	s.mustPut("/v1/clusters/shared", shared)
	s.mustPut("/v1/clouds/shops", `{"spec":{"namespace":"shop","metrics":[{"name":"hidden","namespace":"vault"}]}}`)
	s.mustPut("/v1/clusters/guest", `{"spec":{"namespace":"shop","inherit_metrics":true}}`)
	s.mustPut("/v1/namespaces/shop/openstack-projects/p", `{"spec":{"metrics":[{"name":"hidden","namespace":"vault"}]}}`)
	s.mustPut("/v1/namespaces/shop/magnum-clusters/m", `{"spec":{"metric_constraints":["hidden > 0.9"]}}`)
	s.mustPut("/v1/namespaces/shop/magnum-clusters/n", `{"spec":{}}`)
	s.mustPut("/v1/namespaces/shop/placements/metrics", `{"spec":{}}`)
	s.mustPut("/v1/namespaces/shop/placements/constraint", `{"spec":{"metric_constraints":["hidden > 0.9"]}}`)
	s.mustPut("/v1/namespaces/shop/placements/prioritizer",
		`{"spec":{"strategy":"prioritizers","prioritizer_policy":{"mode":"exact","configurations":[{"type":"metric","name":"hidden"}]}}}`)
	simulation := func(kind api.Kind, namespace, name, spec string) string {
		return `{"objects":[` + document(kind, namespace, name, spec) + `]}`
	}
	asks := []struct {
		method, path, body string
		names              bool // names the metric, which needs the right to read it
	}{
		{"GET", "/v1/clusters/shared", "", false},
		{"GET", "/v1/clusters/guest", "", false},
		{"GET", "/v1/clusters", "", false},
		{"GET", "/v1/clusters?limit=1", "", false},
		{"GET", "/v1/clouds/shops", "", false},
		{"GET", "/v1/namespaces/shop/openstack-projects/p", "", false},
		{"GET", "/v1/namespaces/shop/magnum-clusters/n", "", false},
		{"GET", "/v1/namespaces/shop/magnum-clusters/m/explanation", "", false},
		{"GET", "/v1/namespaces/shop/magnum-clusters/n/explanation", "", false},
		{"GET", "/v1/clusters/guest/explanation", "", false},
		{"GET", "/v1/namespaces/shop/placements/metrics/explanation", "", false},
		{"GET", "/v1/namespaces/shop/placements/constraint/explanation", "", false},
		{"GET", "/v1/namespaces/shop/placements/prioritizer/explanation", "", false},
		{"POST", "/v1/simulations", simulation(api.KindCluster, "", "shared", `"spec":{"region":"eu","metrics":[{"name":"hidden","namespace":"vault"}]}`), false},
		{"POST", "/v1/simulations", simulation(api.KindPlacement, "shop", "constraint", `"spec":{"metric_constraints":["hidden > 0.8"]}`), true},
		{"POST", "/v1/simulations", simulation(api.KindOpenStackProject, "shop", "p", `"spec":{"metrics":[{"name":"hidden","namespace":"vault","weight":3}]}`), false},
		{"POST", "/v1/previews", document(api.KindPlacement, "shop", "constraint", `"spec":{"metric_constraints":["hidden > 0.1"]}`), true},
		{"GET", "/v1/namespaces/shop/placements/metrics", "", false},
		{"GET", "/v1/placements", "", false},
		{"POST", "/v1/previews", document(api.KindPlacement, "shop", "metrics", `"spec":{}`), false},
	}
	tells := func(a answer) bool {
		return strings.Contains(string(a.body), "0.424242") || strings.Contains(string(a.body), "-15.1516")
	}
	for _, ask := range asks {
		s.token = admin
		if a := s.do(ask.method, ask.path, ask.body); a.StatusCode >= 300 || !tells(a) {
			t.Errorf("an administrator: %s %s: %d %s", ask.method, ask.path, a.StatusCode, a.body)
		}
		for _, token := range []string{editor, viewer} {
			s.token = token
			if a := s.do(ask.method, ask.path, ask.body); (a.StatusCode == http.StatusForbidden) != ask.names || !ask.names && a.StatusCode >= 300 || tells(a) {
				t.Errorf("shop: %s %s: %d %s", ask.method, ask.path, a.StatusCode, a.body)
			}
		}
	}
	// A simulation of a decision without its scores has those of now.
	s.token = viewer
	shown := s.expect(http.StatusOK, http.MethodGet, "/v1/namespaces/shop/placements/metrics", "")
	s.token = admin
	a := s.expect(http.StatusOK, http.MethodPost, "/v1/simulations", `{"objects":[`+string(shown.body)+`]}`)
	if text := string(a.body); !strings.Contains(string(shown.body), `"withheld":true`) || !strings.Contains(text, `"score":0.47658`) || strings.Contains(text, "withheld") {
		t.Errorf("got %s for %s, want the scores", text, shown.body)
	}
	s.token = viewer
	watch := s.watch("/v1/watch?kinds=cluster").started()
	s.token = admin
	s.mustPut("/v1/clusters/shared", strings.Replace(shared, `{"metrics"`, `{"region":"eu","metrics"`, 1))
	event, more := watch.next()
	if text := string(operation.EncodeJSON(event.data)); !more || !strings.Contains(text, `"reason":"Withheld"`) || strings.Contains(text, "0.424242") {
		t.Errorf("watch: got %s", text)
	}
}

// TestReferenceWrittenAheadRevealsNothing checks references to objects that do not exist yet. If such an object is
// created in another namespace, the response reveals nothing about it.
func TestReferenceWrittenAheadRevealsNothing(t *testing.T) {
	s, admin, editor, viewer := startVault(t)
	s.token = editor
	s.mustPut("/v1/clusters/ahead", `{"spec":{"namespace":"shop","inherit_labels":true,"inherit_metrics":true,"openstack":{"cloud":"later","region":"r","availability_zone":"z"}}}`)
	s.mustPut("/v1/namespaces/shop/propagation-policies/ahead", `{"spec":{`+deploymentSelector+`,"placement":{"cluster_affinity":{"cluster_names":["later"]}}}}`)
	s.mustPut("/v1/namespaces/shop/workloads/ahead", workloadBody)
	s.token = admin
	s.mustPut("/v1/clouds/later", `{"metadata":{"labels":{"secret":"label"}},"spec":{"namespace":"vault","metrics":[{"name":"hidden","namespace":"vault"}]}}`)
	s.mustPut("/v1/clusters/later", `{"spec":{"namespace":"vault"}}`)
	s.expect(http.StatusOK, http.MethodPut, "/v1/clouds/later/resources",
		`{"collector":"c","sequence":1,"full":true,"regions":[{"name":"r","full":true,"zones":[{"name":"z","hosts":1,"allocatable":{"cpu":"471108154"},"available":{"cpu":"471108154"}}]}]}`)
	s.token = viewer
	for _, path := range []string{"/v1/clusters/ahead", "/v1/namespaces/shop/workloads/ahead", "/v1/namespaces/shop/workloads/ahead/explanation"} {
		a := s.expect(http.StatusOK, http.MethodGet, path, "")
		for _, secret := range []string{"471108154", `"secret"`, "vault", `"name":"later"`, `"cluster":"later"`} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%s reveals %q: %s", path, secret, a.body)
			}
		}
	}
	// When it becomes global, the reference works.
	s.token = admin
	s.mustPut("/v1/clouds/later", `{"metadata":{"labels":{"open":"label"}},"spec":{}}`)
	s.token = viewer
	if a := s.expect(http.StatusOK, http.MethodGet, "/v1/clusters/ahead", ""); !strings.Contains(string(a.body), "471108154") || !strings.Contains(string(a.body), `"open":"label"`) {
		t.Errorf("got %s, want the cluster with the labels of its cloud", a.body)
	}
}

// TestPreemptorIsShownOnlyToItsReaders covers a workload that preempts another one on a shared cluster.
func TestPreemptorIsShownOnlyToItsReaders(t *testing.T) {
	s, admin, _, viewer := startVault(t)
	s.mustPut("/v1/clusters/shared", `{"spec":{"allocatable":{"cpu":"2"}}}`)
	s.mustPut("/v1/propagation-policies/all", `{"spec":{"workload_preemption":"LowerPriority",`+deploymentSelector+`,"placement":{"cluster_affinity":{"cluster_names":["shared"]},"replica_scheduling":{}}}}`)
	body := `{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":2,"replica_requests":{"cpu":"1"},"priority":%d}}`
	s.mustPut("/v1/namespaces/shop/workloads/web", fmt.Sprintf(body, 0))
	s.mustPut("/v1/namespaces/vault/workloads/urgent", fmt.Sprintf(body, 471108154))
	told := func(token string) string {
		s.token = token
		return string(s.expect(http.StatusOK, http.MethodGet, "/v1/namespaces/shop/workloads/web", "").body)
	}
	if text := told(admin); !strings.Contains(text, `"workload":"vault/urgent","priority":471108154`) {
		t.Fatalf("administrator: got %s", text)
	}
	if text := told(viewer); !strings.Contains(text, `"preemptions":[{"cluster":"shared","replicas":2,"at"`) || strings.Contains(text, "vault") || strings.Contains(text, "471108154") {
		t.Errorf("shop: got %s", text)
	}
	a := s.expect(http.StatusOK, http.MethodPost, "/v1/simulations", `{"objects":[`+document(api.KindWorkload, "shop", "web", fmt.Sprintf(body, 1)[1:len(fmt.Sprintf(body, 1))-1])+`]}`)
	if strings.Contains(string(a.body), "vault") || strings.Contains(string(a.body), "471108154") {
		t.Errorf("simulation: got %s", a.body)
	}
}

// TestSimulationHidesClustersOfOtherNamespaces checks that a simulation does not say that a hidden cluster moves to
// another cloud.
func TestSimulationHidesClustersOfOtherNamespaces(t *testing.T) {
	s, admin, _, viewer := startVault(t)
	s.mustPut("/v1/clouds/open", `{"metadata":{"labels":{"tier":"gold"}},"spec":{}}`)
	s.mustPut("/v1/clusters/waiting", `{"spec":{"namespace":"vault","cloud_constraints":{"label_constraints":["tier is tin"]}}}`)
	body := `{"objects":[` + document(api.KindCloud, "", "new", `"spec":{}`) + `]}`
	body = strings.Replace(body, `"name":"new"`, `"name":"new","labels":{"tier":"tin"}`, 1)
	for token, want := range map[string]bool{admin: true, viewer: false} {
		s.token = token
		a := s.expect(http.StatusOK, http.MethodPost, "/v1/simulations", body)
		if strings.Contains(string(a.body), "waiting") != want {
			t.Errorf("cluster named: %t, want %t: %s", !want, want, a.body)
		}
	}
}
