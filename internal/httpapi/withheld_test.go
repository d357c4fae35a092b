package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// volatile matches what differs between two answers about the same facts.
var volatile = regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[^"]*"|"(id|uid|token|resource_version)":"[^"]*"|"decision_revision":[0-9]+|"revision":"[0-9]+"`)

// allAnswers returns everything that the present token can read, by request: all operations that read, for every object
// that there is, and some previews and simulations.
func (s *testServer) allAnswers(objects []api.Key, posts [][2]string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	keep := func(name string, a answer) {
		text := volatile.ReplaceAllString(string(a.body), "0")
		out[name] = fmt.Sprint(a.StatusCode, " ", text)
	}
	for _, op := range s.operations() {
		if op.method != http.MethodGet || slices.Contains([]string{"watch", "backup", "get-openapi", "metrics"}, op.id) || op.path == "/v1/server" {
			continue
		}
		paths := map[string]bool{}
		for _, key := range objects {
			parts := strings.NewReplacer("{name}", key.Name, "{namespace}", key.Namespace, "{cluster}", key.Namespace)
			if key.Namespace == "" && strings.Contains(op.path, "{namespace}") {
				continue
			}
			paths[parts.Replace(op.path)] = true
		}
		for path := range paths {
			if !strings.Contains(path, "{") {
				keep("GET "+path, s.do(http.MethodGet, path, ""))
			}
		}
	}
	for _, post := range posts {
		keep("POST "+post[0]+" "+post[1], s.do(http.MethodPost, post[0], post[1]))
	}
	return out
}

// TestAnswersDoNotFollowWhatMayNotBeRead changes numbers that a viewer may not read, without changing the order of the
// clusters: no answer to the viewer changes.
func TestAnswersDoNotFollowWhatMayNotBeRead(t *testing.T) {
	s, admin, _, viewer := startVault(t)
	list := `"metrics":[{"name":"hidden","namespace":"vault"},{"name":"open","weight":2}]`
	write := func(value, cpu string) {
		s.token = admin
		s.mustPut("/v1/namespaces/vault/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"x":`+value+`}}}}`)
		s.mustPut("/v1/clusters/hidden", `{"spec":{"namespace":"vault","allocatable":{"cpu":"`+cpu+`"}}}`)
		s.mustPut("/v1/clusters/hidden/placement-scores/agent", `{"spec":{"scores":{"gpu":`+cpu+`}}}`)
	}
	write("0.424242", "64")
	s.mustPut("/v1/metrics-providers/open", `{"spec":{"type":"static","static":{"metrics":{"x":0.5}}}}`)
	s.mustPut("/v1/metrics/open", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"open","metric":"x"}}}`)
	s.mustPut("/v1/clusters/shared", `{"spec":{`+list+`,"allocatable":{"cpu":"8"}}}`)
	s.mustPut("/v1/clusters/plain", `{"spec":{"metrics":[{"name":"open"}],"allocatable":{"cpu":"8"}}}`)
	s.mustPut("/v1/clouds/shops", `{"spec":{"namespace":"shop",`+list+`}}`)
	s.mustPut("/v1/clusters/guest", `{"spec":{"namespace":"shop","cloud_constraints":{"metric_constraints":["hidden > 0.1"]}}}`)
	s.mustPut("/v1/namespaces/shop/openstack-projects/p", `{"spec":{`+list+`}}`)
	s.mustPut("/v1/namespaces/shop/magnum-clusters/m", `{"spec":{"metric_constraints":["hidden > 0.1"]}}`)
	s.mustPut("/v1/namespaces/shop/workloads/web", workloadBody)
	weighed := `"strategy":"prioritizers","prioritizer_policy":{"mode":"exact","configurations":[{"type":"metric","name":"hidden"},{"type":"metric","name":"open"}]}`
	placements := map[string]string{
		"metrics":     `{}`,
		"sticky":      `{"metrics":{"stickiness":1},"number_of_clusters":1}`,
		"constraint":  `{"metric_constraints":["hidden > 0.1","open < 1"]}`,
		"rejected":    `{"metric_constraints":["hidden > 0.9"]}`,
		"prioritizer": `{` + weighed + `}`,
		"expression":  `{"predicates":[{"cel":["cluster.metric('hidden') > 0.1"]}]}`,
		"refused":     `{"predicates":[{"cel":["cluster.metric('hidden') > 0.9"]}]}`,
	}
	for name, spec := range placements {
		s.mustPut("/v1/namespaces/shop/placements/"+name, `{"spec":`+spec+`}`)
	}
	objects := []api.Key{
		{Name: "shared"}, {Name: "plain"}, {Name: "shops"}, {Name: "guest"}, {Name: "hidden"}, {Name: "open"},
		{Namespace: "shared", Name: "agent"}, {Namespace: "hidden", Name: "agent"},
		{Namespace: "shop", Name: "p"}, {Namespace: "shop", Name: "m"}, {Namespace: "shop", Name: "web"}, {Namespace: "vault", Name: "hidden"},
		{Namespace: "vault", Name: "table"}, {Name: "table"},
	}
	var posts [][2]string
	for _, name := range slices.Sorted(maps.Keys(placements)) {
		objects = append(objects, api.Key{Namespace: "shop", Name: name})
		posts = append(posts, [2]string{"/integrations/argocd/shop/api/v1/getparams.execute", `{"input":{"parameters":{"name":"` + name + `"}}}`})
		for _, as := range []string{name, "new"} {
			object := document(api.KindPlacement, "shop", as, `"spec":`+placements[name])
			posts = append(posts, [2]string{"/v1/previews", object}, [2]string{"/v1/simulations", `{"objects":[` + object + `]}`},
				[2]string{"/v1/simulations", `{"objects":[` + object + `,` + document(api.KindCluster, "", "plain", `"spec":{"metrics":[{"name":"open"}]}`) + `]}`})
		}
	}
	posts = append(posts,
		[2]string{"/v1/simulations", `{"objects":[` + document(api.KindCluster, "", "shared", `"spec":{"metrics":[{"name":"hidden","namespace":"vault"}]}`) + `]}`},
		[2]string{"/v1/simulations", `{"objects":[` + document(api.KindCloud, "", "shops", `"spec":{"namespace":"shop","metrics":[{"name":"hidden","namespace":"vault"}]}`) + `]}`},
		[2]string{"/v1/simulations", `{"objects":[` + document(api.KindOpenStackProject, "shop", "p", `"spec":{"metrics":[{"name":"hidden","namespace":"vault"}]}`) + `]}`},
		[2]string{"/v1/simulations", `{"delete":[{"kind":"metric","name":"open"}]}`},
		[2]string{"/v1/simulations", `{"delete":[{"kind":"cluster","name":"plain"}]}`},
	)

	selecting := []string{
		"clusters?field_selector=status.metrics.value=", "clusters?field_selector=status.metrics.value!=", "clouds?field_selector=status.metrics.value=",
		"openstack-projects?field_selector=status.metrics.value=", "metrics?all=true&field_selector=status.value=",
	}
	read := func(token string) map[string]string {
		s.token = token
		answers := s.allAnswers(objects, posts)
		for _, list := range selecting { // a value that is withheld cannot be guessed
			for _, guess := range []string{"0.424242", "0.434343"} {
				answers["GET "+list+guess] = volatile.ReplaceAllString(string(s.do(http.MethodGet, "/v1/"+list+guess+"&fields=metadata.name", "").body), "0")
			}
		}
		return answers
	}
	before, adminBefore := read(viewer), read(admin)
	write("0.434343", "65")
	after, adminAfter := read(viewer), read(admin)
	changed := 0
	for request := range adminBefore {
		if adminBefore[request] != adminAfter[request] {
			changed++
		}
	}
	if changed < 25 {
		t.Errorf("only %d of %d answers to an administrator changed: the test changes nothing", changed, len(adminBefore))
	}
	for _, list := range selecting {
		if request := "GET " + list + "0.424242"; adminBefore[request] == adminAfter[request] {
			t.Errorf("%s: an administrator gets %s before and after", request, adminAfter[request])
		}
	}
	for request, text := range before {
		if after[request] != text {
			at := 0
			for at < min(len(text), len(after[request])) && text[at] == after[request][at] {
				at++
			}
			t.Errorf("%s:\nbefore: %.300s\nafter:  %.300s", request, text[max(at-100, 0):], after[request][max(at-100, 0):])
		}
	}
}

// TestNamesOfMetricsNeedTheRightToRead writes specs that name a metric without its namespace, where a shared cluster
// lists one of a namespace that the writer may not read.
func TestNamesOfMetricsNeedTheRightToRead(t *testing.T) {
	s, admin, editor, viewer := startVault(t)
	s.mustPut("/v1/clusters/shared", `{"spec":{"metrics":[{"name":"hidden","namespace":"vault"}]}}`)
	s.mustPut("/v1/clouds/shops", `{"spec":{"namespace":"shop","metrics":[{"name":"hidden","namespace":"vault"}]}}`)
	s.mustPut("/v1/namespaces/shop/openstack-projects/p", `{"spec":{"metrics":[{"name":"hidden","namespace":"vault"}]}}`)
	type naming struct {
		kind              api.Kind
		path, spec, field string
	}
	placement := func(spec, field string) naming {
		return naming{api.KindPlacement, "/v1/namespaces/shop/placements/x", spec, field}
	}
	names := []naming{
		placement(`{"metric_constraints":["open > 1","hidden > 0.4"]}`, "spec.metric_constraints[1]"),
		placement(`{"strategy":"prioritizers","prioritizer_policy":{"configurations":[{"name":"steady"},{"type":"metric","name":"hidden"}]}}`,
			"spec.prioritizer_policy.configurations[1].name"),
		placement(`{"predicates":[{"cel":["true","cluster.metric('hidden') > 0.4"]}]}`, "spec.predicates[0].cel[1]"),
		placement(`{"predicates":[{"cel":["managedCluster.metric('hid' + 'den') > 0.4"]}]}`, "spec.predicates[0].cel[0]"),
		{api.KindCluster, "/v1/clusters/x", `{"namespace":"shop","cloud_constraints":{"metric_constraints":["hidden > 0.4"]}}`, "spec.cloud_constraints.metric_constraints[0]"},
		{api.KindMagnumCluster, "/v1/namespaces/shop/magnum-clusters/x", `{"metric_constraints":["hidden > 0.4"]}`, "spec.metric_constraints[0]"},
	}
	for _, n := range names {
		namespace := "shop"
		if n.kind == api.KindCluster {
			namespace = ""
		}
		object := document(n.kind, namespace, "x", `"spec":`+n.spec)
		refuse := func(prefix, method, path, body string) {
			t.Helper()
			p := s.expect(http.StatusForbidden, method, path, body).problem(t)
			if len(p.Errors) != 1 || p.Errors[0].Field != prefix+n.field || !strings.Contains(p.Errors[0].Message, "vault/hidden") {
				t.Errorf("%s %s %s: got %+v, want %s", method, path, body, p, prefix+n.field)
			}
		}
		for _, token := range []string{editor, viewer} {
			s.token = token
			refuse("objects[0].", http.MethodPost, "/v1/simulations", `{"objects":[`+object+`]}`)
			refuse("objects[0].", http.MethodPost, "/v1/simulations", `{"base":"empty","objects":[`+object+`]}`)
			if slices.Contains(previewedKinds, n.kind) {
				refuse("", http.MethodPost, "/v1/previews", object)
			}
		}
		s.token = editor
		refuse("", http.MethodPut, n.path, `{"spec":`+n.spec+`}`)
		// What somebody with the right has written stays. Another threshold or weight is a new question.
		s.token = admin
		s.mustPut(n.path, `{"spec":`+n.spec+`}`)
		s.token = editor
		s.mustPut(n.path, `{"metadata":{"labels":{"changed":"yes"}},"spec":`+n.spec+`}`)
		other := strings.Replace(n.spec, "0.4", "0.5", 1)
		if other == n.spec {
			other = strings.Replace(n.spec, `"name":"hidden"`, `"name":"hidden","weight":5`, 1)
		}
		refuse("", http.MethodPut, n.path, `{"spec":`+other+`}`)
		s.token = admin
		s.expect(http.StatusNoContent, http.MethodDelete, n.path, "")
	}

	// The metric of the writer's own namespace has precedence, so that the name means it.
	s.mustPut("/v1/namespaces/shop/metrics-providers/own", `{"spec":{"type":"static","static":{"metrics":{"x":0.5}}}}`)
	s.mustPut("/v1/namespaces/shop/metrics/hidden", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"own","metric":"x"}}}`)
	s.mustPut("/v1/clusters/shared", `{"spec":{"metrics":[{"name":"hidden","namespace":"vault"},{"name":"hidden","namespace":"shop"}]}}`)
	own := document(api.KindPlacement, "shop", "x", `"spec":`+names[1].spec)
	s.token = editor
	s.mustPut("/v1/namespaces/shop/placements/x", `{"spec":`+names[1].spec+`}`)
	s.expect(http.StatusOK, http.MethodPost, "/v1/simulations", `{"objects":[`+own+`]}`)
	// Not if the simulation takes that metric off the cluster.
	alone := document(api.KindCluster, "", "shared", `"spec":{"metrics":[{"name":"hidden","namespace":"vault"}]}`)
	again := strings.Replace(own, `"name":"x"`, `"name":"y"`, 1)
	s.expect(http.StatusForbidden, http.MethodPost, "/v1/simulations", `{"objects":[`+again+`,`+alone+`]}`)
	s.token = s.addToken(auth.RoleEditor, "shop", "vault")
	s.expect(http.StatusOK, http.MethodPost, "/v1/simulations", `{"objects":[`+again+`,`+alone+`]}`)
}
