package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// failingStore returns the same error from every call.
type failingStore struct {
	Store
	err error
}

func (f failingStore) Commit(context.Context, ...store.Write) (int64, error) { return 0, f.err }

func (f failingStore) Read(context.Context, api.Key) (spec, status *store.Record, err error) {
	return nil, nil, f.err
}

func TestErrorsBecomeAnswers(t *testing.T) {
	tests := []struct {
		err        error
		status     int
		retryAfter bool
	}{
		{store.ErrFull, 507, false},
		{store.ErrUnavailable, 503, true},
		{store.ErrUncertain, 503, true},
		{store.ErrFenced, 503, true},
		{store.ErrCompacted, 410, false},
		{store.ErrInvalid, 413, false},
		{&store.ConflictError{}, 409, false},
		{&store.OlderServerError{}, 409, false},
		{context.DeadlineExceeded, 503, true},
		{context.Canceled, 499, false},
		{api.FieldErrors{{Field: "spec", Message: "no"}}, 422, false},
		{&http.MaxBytesError{Limit: 5}, 413, false},
		{problem.New(api.ProblemNotFound, "it does not exist"), 404, false},
		{errors.New("secret detail"), 500, false},
	}
	for _, test := range tests {
		p := problem.Of(fmt.Errorf("while working: %w", test.err))
		if p.Status != test.status || p.GetHeaders().Get("Retry-After") != "" != test.retryAfter || p.Title == "" || p.Detail == "" {
			t.Errorf("%v: %d %v %q %q", test.err, p.Status, p.GetHeaders(), p.Title, p.Detail)
		}
		if strings.Contains(p.Detail, "secret detail") {
			t.Errorf("the text of an unknown error is returned to the client: %q", p.Detail)
		}
	}
	// The same errors through a handler.
	for _, test := range tests[:5] {
		s := startServer(t, func(o *Options) { o.Store = failingStore{o.Store, fmt.Errorf("write: %w", test.err)} })
		a := s.do(http.MethodPut, "/v1/clusters/eu-1", `{"spec":{}}`)
		if a.StatusCode != test.status || (a.Header.Get("Retry-After") != "") != test.retryAfter {
			t.Errorf("%v: %d %s", test.err, a.StatusCode, a.body)
		}
		a.problem(t)
	}
}

func TestPathsWithoutARoute(t *testing.T) {
	s := startServer(t)
	for _, test := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 404, ""}, {"GET", "/v1", 404, ""}, {"GET", "/v1/nothing", 404, ""}, {"GET", "/v1/clusters/a/b", 404, ""},
		{"GET", "/v2/clusters", 404, ""}, {"PUT", "/v1/placements/web", 404, ""}, {"GET", "/docs", 404, ""}, {"GET", "/openapi.yaml", 404, ""},
		{"POST", "/v1/clusters", 405, "GET, HEAD"}, {"PATCH", "/v1/clusters/a", 405, "DELETE, GET, HEAD, PUT"}, {"PUT", "/v1/watch", 405, "GET, HEAD"},
		{"STRANGE", "/v1/clusters/a", 405, "DELETE, GET, HEAD, PUT"},
	} {
		a := s.do(test.method, test.path, "")
		if a.StatusCode != test.status || a.Header.Get("Allow") != test.allow {
			t.Errorf("%s %s: got %d, Allow %q", test.method, test.path, a.StatusCode, a.Header.Get("Allow"))
		}
		a.problem(t)
	}
	for _, path := range []string{"/v1//clusters", "/v1/clusters/../clusters", "/v1/clusters/..", "/v1/clusters/"} {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code >= 500 || w.Code < 300 {
			t.Errorf("%s: got %d", path, w.Code)
		}
	}
	for _, path := range []string{"/v1/clusters/..%2f..%2fx", "/v1/clusters/%00", "/v1/namespaces/..%2fx/placements/a", "/v1/namespaces/-/placements/a"} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if a := s.do(method, path, ""); a.StatusCode != 404 {
				t.Errorf("%s %s: %d %s", method, path, a.StatusCode, a.body)
			}
		}
	}
}

func TestPanicsAreSurvived(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	s.decisions.explain = func(api.Key) (*api.Explanation, error) { panic("a bug") }
	a := s.do(http.MethodGet, "/v1/namespaces/shop/placements/web/explanation", "", "X-Request-Id", "my-id", "Accept-Encoding", "gzip")
	if p := a.problem(t); a.StatusCode != 500 || strings.Contains(p.Detail, "a bug") || a.Header.Get("X-Request-Id") != "my-id" {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if logs := s.logs.String(); !strings.Contains(logs, "a bug") || !strings.Contains(logs, "explain") || !strings.Contains(logs, "request_id=my-id") {
		t.Errorf("the log does not contain the panic, its stack and its request: %s", logs)
	}
	if a := s.do(http.MethodGet, "/v1/clusters", ""); a.StatusCode != 200 {
		t.Errorf("later request: got %d, want 200", a.StatusCode)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	broken := errors.New("the clock stands still")
	var amiss error
	s := startServer(t, func(o *Options) { o.Checks = func() []Check { return []Check{check("clock", amiss)} } })
	if a := s.do(http.MethodGet, "/healthz", ""); a.StatusCode != 200 {
		t.Errorf("healthz: %d", a.StatusCode)
	}
	if a := s.do(http.MethodGet, "/readyz", ""); a.StatusCode != 200 {
		t.Errorf("readyz: %d", a.StatusCode)
	}
	amiss = broken
	if a := s.do(http.MethodGet, "/readyz", ""); a.StatusCode != 503 || !strings.Contains(string(a.body), broken.Error()) || a.Header.Get("Retry-After") == "" {
		t.Errorf("readyz: %d %s", a.StatusCode, a.body)
	}
}

func TestNothingIsAnsweredBeforeTheFleetIsLoaded(t *testing.T) {
	s := startServer(t, authenticated)
	token := s.addToken(auth.RoleViewer)
	options := s.options
	options.Listener = nil
	options.Fleet = fleet.New(fleet.Options{Store: s.store, Codec: s.codec})
	unloaded, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/v1/clusters": 503, "/readyz": 503, "/healthz": 200, "/v1/openapi.json": 200} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		unloaded.handler.ServeHTTP(w, r)
		if w.Code != want || want == 503 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
}

func TestServerInfoAndMetrics(t *testing.T) {
	s := startServer(t)
	a := s.do(http.MethodGet, "/v1/server", "")
	if got := decodeAs[api.ServerInfo](t, a); got.Version != "1.2.3" || !got.Leader || got.Store.Mode != "embedded" || got.Now.IsZero() {
		t.Errorf("%s", a.body)
	}
	s.do("STRANGE", "/v1/clusters", "")
	s.do(http.MethodGet, "/v1/clusters/a", "")
	text := string(s.do(http.MethodGet, "/metrics", "").body)
	for _, want := range []string{
		`scheduler_http_requests_total{code="200",method="GET",route="/v1/server"} 1`,
		`scheduler_http_requests_total{code="404",method="GET",route="/v1/clusters/{name}"} 1`,
		`scheduler_http_requests_total{code="405",method="other",route="none"} 1`,
		`scheduler_http_request_seconds_count{method="GET",route="/v1/server"} 1`,
		"scheduler_http_watchers 0", "scheduler_http_requests_in_flight 1", "scheduler_http_connections 1", "scheduler_http_auth_failures_total 0",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics do not contain %s", want)
		}
	}
	logs := s.logs.String()
	if !strings.Contains(logs, "route=/v1/clusters/{name} status=404") {
		t.Errorf("no log line for the request: %s", logs)
	}
}

func TestOptionsAreRequired(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("New() without a store succeeded")
	}
	s := startServer(t)
	if err := prometheus.NewRegistry().Register(s.metrics.requests); err != nil {
		t.Error(err)
	}
}

func TestOpenAPI(t *testing.T) {
	s := startServer(t)
	a := s.do(http.MethodGet, "/v1/openapi.json", "")
	var document struct {
		OpenAPI    string                               `json:"openapi"`
		Paths      map[string]map[string]map[string]any `json:"paths"`
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(a.body, &document); err != nil || a.StatusCode != 200 || document.OpenAPI != "3.1.0" {
		t.Fatalf("%d %v %.200s", a.StatusCode, err, a.body)
	}
	var want []string
	for _, info := range api.Kinds {
		global, namespaced := api.CollectionPath(info.Kind, ""), api.CollectionPath(info.Kind, "{namespace}")
		want = append(want, global)
		if info.Scope == api.OfCluster {
			namespaced = api.CollectionPath(info.Kind, "{cluster}")
		}
		if info.Scope != api.Namespaced && info.Scope != api.OfCluster {
			want = append(want, global+"/{name}")
		}
		if info.Scope != api.Global {
			want = append(want, namespaced, namespaced+"/{name}")
		}
	}
	want = append(want, "/v1/clouds/{name}/resources", "/v1/clouds/{name}/openstack-projects", "/v1/clusters/{cluster}/distributions", "/v1/clusters/{cluster}/nodes/{node}/interruption", "/v1/clusters/{name}/explanation", "/v1/namespaces/{namespace}/magnum-clusters/{name}/explanation",
		"/v1/namespaces/{namespace}/magnum-clusters/{name}/reschedule", "/v1/clusters/{name}/heartbeat", "/v1/namespaces/{namespace}/placements/{name}/explanation",
		"/v1/namespaces/{namespace}/placements/{name}/reschedule", "/v1/namespaces/{namespace}/workloads/{name}/explanation",
		"/v1/namespaces/{namespace}/workloads/{name}/reschedule", "/v1/namespaces/{namespace}/workloads/{name}/health", "/globalscheduler/v1/clusters", "/globalscheduler/v1/clusters/id/{id}", "/globalscheduler/v1/clusters/name/{name}",
		"/globalscheduler/v1/regionresources", "/globalscheduler/v1/regionresources/{region}", "/globalscheduler/v1/siteresources/update",
		"/globalscheduler/v1/pods", "/globalscheduler/v1/pods/id/{id}", "/globalscheduler/v1/pods/name/{name}",
		"/globalscheduler/v1/allocations", "/globalscheduler/v1/allocations/id/{id}",
		"/v1/previews", "/v1/previews/{id}", "/v1/simulations", "/v1/watch", "/v1/server", "/v1/backup", "/v1/upgrade/finish", "/v1/tokens", "/v1/tokens/{id}", loginsPath, "/v1/decisions", "/v1/history", "/v1/freeze", "/integrations/argocd/{namespace}/api/v1/getparams.execute", "/integrations/flux/{namespace}/inputs", "/v1/members", "/v1/members/{name}")
	var got []string
	ids := map[string]bool{}
	for path, operations := range document.Paths {
		got = append(got, path)
		for method, operation := range operations {
			id, _ := operation["operationId"].(string)
			if id == "" || ids[id] {
				t.Errorf("%s %s: operationId %q is missing or not unique", method, path, id)
			}
			ids[id] = true
			if _, ok := operation["requestBody"]; ok != (method == "put" || method == "patch" || method == "post" && strings.HasPrefix(path, "/globalscheduler/v1") || strings.Contains("/integrations/argocd/{namespace}/api/v1/getparams.execute /v1/freeze /v1/previews /v1/simulations /v1/tokens /v1/members /v1/clusters/{name}/heartbeat /v1/clusters/{cluster}/nodes/{node}/interruption", path) && method == "post") {
				t.Errorf("%s %s: has a body: %t", method, path, ok)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("paths\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, ref := range strings.Split(string(a.body), `"$ref":"`)[1:] {
		name := strings.TrimPrefix(ref[:strings.IndexByte(ref, '"')], "#/components/schemas/")
		if document.Components.Schemas[name] == nil {
			t.Errorf("schema %s is referenced, but missing", name)
		}
	}
	for schema, fields := range map[string][]string{
		"Placement": {"kind", "metadata", "spec", "status"}, "PlacementSpec": {"predicates", "tolerations", "prioritizer_policy", "spread_constraints", "decision_strategy", "cluster_sets"},
		"PlacementStatus": {"decision_groups"}, "Metadata": {"cluster"}, "ClusterSetSpec": {"selector", "clusters", "namespaces"}, "ClusterSpec": {"claims", "taints"},
		"PlacementScoreSpec": {"scores", "valid_until"}, "Explanation": {"nearest_miss", "next_at"}, "NearestMiss": {"filter", "on", "count"},
		"Preview":  {"token", "clusters", "decisions", "decision_groups", "satisfied", "expires_at", "replicas", "bindings"},
		"Workload": {"kind", "metadata", "spec", "status"}, "WorkloadSpec": {"replica_requests", "priority"}, "WorkloadStatus": {"clusters", "evictions", "health"},
		"PropagationPolicySpec": {"resource_selectors", "placement", "failover", "fail_back"}, "PropagationPolicyStatus": {"bindings"},
		"AffinityTerm":     {"affinity_name", "cluster_names", "exclude_clusters", "label_selector", "field_selector", "overflow_affinities"},
		"OverflowAffinity": {"affinity_name", "cluster_names", "field_selector"}, "HealthReport": {"cluster", "status", "message"},
		"Interruption": {"deadline"}, "DistributedWorkload": {"kind", "namespace", "source", "cluster", "target_on_demand", "state"}, "ClusterDistribution": {"fallen_back"},
		"DistributionSpec": {"mode", "custom_on_demand"}, "SpotSpec": {"enabled", "node_type_key", "on_disable"}, "SpotStatus": {"spot_nodes", "converged"},
	} {
		properties, _ := document.Components.Schemas[schema]["properties"].(map[string]any)
		for _, field := range fields {
			if properties[field] == nil {
				t.Errorf("schema %s does not describe %s", schema, field)
			}
		}
	}
	properties, _ := document.Components.Schemas["KubernetesSpec"]["properties"].(map[string]any)
	if kubeconfig, _ := properties["kubeconfig"].(map[string]any); !reflect.DeepEqual(kubeconfig["type"], []any{"string", "null"}) || kubeconfig["writeOnly"] != true {
		t.Errorf("a secret is described as %v", kubeconfig)
	}
}
