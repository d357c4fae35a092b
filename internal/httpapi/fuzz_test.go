package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// hostileDocuments are seeds that once broke a server.
var hostileDocuments = []string{
	``, `null`, `[]`, `0`, `"`, `{`, `{}`, `{"spec":null}`, `{"metadata":null,"spec":{}}`, `{"spec":{},"spec":{}}`, `{"spec":{"metrics":[null]}}`,
	`{"metadata":{"name":"\u0000"}}`, "{\"metadata\":{\"name\":\"\xff\xfe\"}}", `{"metadata":{"labels":{"":""}}}`, `{"metadata":{"labels":null}}`,
	`{"spec":{"allocatable":{"cpu":"1e1000000000"}}}`, `{"spec":{"allocatable":{"cpu":"99999999999999999999999999999E"}}}`,
	`{"spec":{"min":1e308,"max":-1e308}}`, `{"spec":{"min":1e999}}`, `{"spec":{"number_of_clusters":9223372036854775808}}`,
	`{"spec":{"label_constraints":["` + strings.Repeat("(", 1000) + `"]}}`, `{"spec":{"interval":"9999999h9999999h"}}`,
	`{"spec":{"kubernetes":{"kubeconfig":1}}}`, `{"spec":{"headers":{"A":null}}}`, `{"kind":"cluster","status":{"conditions":[{}]}}`,
	strings.Repeat(`{"spec":`, 12000), strings.Repeat("[", 12000), `{"spec":{"static":{"metrics":{"a":-0}}}}`,
	`{"objects":[null]}`, `{"objects":[{"kind":"placement"}],"delete":[{"kind":"x","name":""}]}`, `{"now":"0000-00-00T00:00:00Z"}`, `{"base":"x"}`,
}

func fuzzBody(f *testing.F, method, path string, seeds ...string) {
	s := startServer(f)
	s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`)
	for _, seed := range append(seeds, hostileDocuments...) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(method, path+"?wait=0s", strings.NewReader(string(body)))
		if method == http.MethodPost {
			r = httptest.NewRequest(method, path, strings.NewReader(string(body)))
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%d %s for %q", w.Code, w.Body, body)
		}
		if w.Code >= 400 {
			answer{&http.Response{StatusCode: w.Code, Header: w.Header()}, w.Body.Bytes()}.problem(t)
			return
		}
		if method == http.MethodPut {
			// Accepted objects can be read and written back.
			again := httptest.NewRecorder()
			s.handler.ServeHTTP(again, httptest.NewRequest(method, path+"?wait=0s", strings.NewReader(w.Body.String())))
			if again.Code != http.StatusOK {
				t.Fatalf("written back: %d %s for %q", again.Code, again.Body, body)
			}
		}
	})
}

func FuzzPutCluster(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindCluster].path, samples[api.KindCluster].body,
		`{"kind":"cluster","metadata":{"name":"eu-1","labels":{"a.b/c":"d"}},"spec":{"namespace":"shop","metrics":[{"name":"load","weight":0.5}],"allocatable":{"cpu":"4","memory":"64Gi"},"health":{"url":"https://a/b","interval":"10s"},"kubernetes":{"kubeconfig":"x"}}}`)
}

func FuzzPutMetricsProvider(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindMetricsProvider].path, samples[api.KindMetricsProvider].body,
		`{"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"},"headers":{"X-A":"b"},"bearer_token":"c","interval":"15s","timeout":"1s"}}`)
}

func FuzzPutMetric(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindMetric].path, samples[api.KindMetric].body,
		`{"spec":{"min":-1.5,"max":2e3,"allowed_values":[0,1],"direction":"descending","on_failure":"last_value","max_age":"1m","metrics_provider":{"name":"p","metric":"sum(up)"}}}`)
}

func FuzzPutPlacement(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindPlacement].path, samples[api.KindPlacement].body,
		`{"metadata":{"name":"web","namespace":"shop"},"spec":{"number_of_clusters":2,"label_constraints":["location in (DE, SK)","tier is not edge"],"metric_constraints":["load < 5"],"resource_requests":{"cpu":"1500m"},"metrics":{"stickiness":0.2},"migration":false,"reschedule_after":"5m","min_improvement":0.1}}`)
}

func FuzzPutClusterSet(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindClusterSet].path, samples[api.KindClusterSet].body, samples[api.KindClusterSet].other,
		`{"spec":{"selector":{"match_expressions":[{"key":"a","operator":"NotIn","values":["b"]},{"key":"c","operator":"Exists"}]},"namespaces":[]}}`,
		`{"spec":{"selector":{}}}`, `{"spec":{"clusters":[]}}`)
}

func FuzzPutPlacementScore(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindPlacementScore].path, samples[api.KindPlacementScore].body, samples[api.KindPlacementScore].other,
		`{"metadata":{"cluster":"eu-1"},"spec":{"scores":{"a.b_C":100}}}`, `{"metadata":{"namespace":"eu-1"},"spec":{"scores":{}}}`,
		`{"spec":{"scores":{"a":101}}}`, `{"spec":{"scores":{"a":1.5}}}`, `{"spec":{"scores":{"a":1e2},"valid_until":"9999-12-31T23:59:59-23:59"}}`)
}

func FuzzPutWorkload(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindWorkload].path, samples[api.KindWorkload].body, samples[api.KindWorkload].other,
		`{"metadata":{"name":"web","namespace":"shop","labels":{"app":"web"}},"spec":{"api_version":"v1","kind":"ConfigMap","priority":-5}}`,
		`{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":2147483648}}`, `{"spec":{"api_version":"/","kind":""},"status":{"clusters":[{"name":"a","replicas":1}]}}`)
}

func FuzzPutPropagationPolicy(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindPropagationPolicy].path, samples[api.KindPropagationPolicy].body, samples[api.KindPropagationPolicy].other,
		`{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment","label_selector":{"match_labels":{"a":"b"}}}],"placement":{"cluster_affinities":[
			{"affinity_name":"eu","field_selector":[{"key":"region","operator":"In","values":["eu"]}],"overflow_affinities":[{"affinity_name":"us","label_selector":{"match_expressions":[{"key":"a","operator":"Exists"}]}}]}],
			"spread_constraints":[{"spread_by_field":"region","min_groups":2},{"min_groups":2,"max_groups":3}],
			"replica_scheduling":{"division_preference":"Aggregated","cluster_limits":[{"affinity":{"cluster_names":["a"]},"min_replicas":1,"max_replicas":2}]}},
			"failover":{"cluster":{},"application":{"purge_mode":"Never"}},"fail_back":{"mode":"automatic"},"priority":3,"preemption":"Always","workload_preemption":"LowerPriority"}}`,
		`{"spec":{"resource_selectors":[],"placement":{"cluster_affinity":{},"cluster_affinities":[{"affinity_name":""}]}}}`)
}

func FuzzPutMoveWindow(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindMoveWindow].path, samples[api.KindMoveWindow].body, samples[api.KindMoveWindow].other,
		`{"spec":{"schedule":"*/5 1-3,7 * JAN-MAR MON#2","duration":"168h"}}`, `{"spec":{"schedule":"@every 1s","duration":"-1m","time_zone":"../etc"}}`,
		`{"spec":{"schedule":"TZ= * * * * *","duration":"1m","ends_at":"9999-12-31T23:59:59-23:59","label_selector":{}}}`)
}

func FuzzPutRole(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindRole].path, samples[api.KindRole].body, samples[api.KindRole].other,
		`{"spec":{"rules":[{"verbs":["administer",""],"kinds":[],"namespaces":["*"]},{"verbs":["read","read"],"kinds":["role","pod"]}]}}`)
}

func FuzzPutRoleBinding(f *testing.F) {
	fuzzBody(f, http.MethodPut, samples[api.KindRoleBinding].path, samples[api.KindRoleBinding].body, samples[api.KindRoleBinding].other,
		`{"spec":{"role":"admin","namespaces":["shop"],"issuer":"ci","claims":{"/a/~2":"*","":"x"}}}`)
}

func FuzzFreeze(f *testing.F) {
	fuzzBody(f, http.MethodPost, "/v1/freeze", `{"reason":"incident 42","namespace":"shop","until":"2199-01-01T00:00:00Z"}`)
}

func FuzzReportHealth(f *testing.F) {
	fuzzBody(f, http.MethodPut, "/v1/namespaces/shop/workloads/none/health", `{"cluster":"eu-1","status":"unhealthy","message":"no"}`, `{"cluster":"","status":"Healthy"}`)
}

func FuzzPreview(f *testing.F) {
	fuzzBody(f, http.MethodPost, "/v1/previews", `{"metadata":{"namespace":"shop","name":"web"},"spec":{"number_of_clusters":1}}`,
		`{"kind":"placement","metadata":{"namespace":"shop","name":"web","labels":{"a":"b"}},"spec":{},"status":{"clusters":["a"]}}`,
		`{"kind":"workload","metadata":{"namespace":"shop","name":"web"},"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":3}}`,
		`{"kind":"propagation_policy","metadata":{"name":"web"},"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}]}}`,
		`{"metadata":{"name":"web"},"spec":{}}`, `{"metadata":"x"}`, `{"metadata":{"namespace":"..","name":"/"},"spec":{}}`)
}

func FuzzHeartbeat(f *testing.F) {
	fuzzBody(f, http.MethodPost, "/v1/clusters/none/heartbeat", `{"allocated":{"cpu":"1"}}`)
}

func FuzzSimulation(f *testing.F) {
	var objects []string
	for _, info := range api.Kinds {
		metadata := `"name":"a"`
		if info.Scope == api.OfCluster {
			metadata += `,"cluster":"a"`
		}
		objects = append(objects, `{"kind":"`+string(info.Kind)+`","metadata":{`+metadata+`},`+samples[info.Kind].body[1:])
	}
	fuzzBody(f, http.MethodPost, "/v1/simulations", `{"base":"empty","now":"2030-01-01T00:00:00Z","objects":[`+strings.Join(objects, ",")+`],"delete":[{"kind":"cluster","name":"b"}]}`)
}

// FuzzQuery covers the parsing of parameters and headers.
func FuzzQuery(f *testing.F) {
	s := startServer(f)
	s.mustPut("/v1/clusters/a", `{"spec":{}}`)
	s.mustPut("/v1/clusters/b", `{"spec":{}}`)
	next := decodeAs[objectList](f, s.do(http.MethodGet, "/v1/clusters?limit=1", "")).Continue
	for _, seed := range [][4]string{
		{"a in (b,c),!d", "1", next, `"12"`}, {"a=b\x00", "-1", "e30", `W/"1", *`}, {"(", "99999999999999999999", "%", `"`}, {"", "", pageToken{Revision: -5, After: "\x00"}.String(), ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, selector, number, token, tag string) {
		for _, path := range []string{"/v1/clusters", "/v1/clusters/a", "/v1/watch"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			query := r.URL.Query()
			switch path {
			case "/v1/clusters":
				query.Set("label_selector", selector)
				query.Set("limit", number)
				query.Set("continue", token)
			case "/v1/clusters/a":
				query.Set("wait", selector)
				r.Header.Set("If-None-Match", tag)
			default:
				query.Set("kinds", "no such kind"+selector)
			}
			r.URL.RawQuery = query.Encode()
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			if w.Code >= 500 {
				t.Fatalf("%s: unexpected answer %d %s", r.URL, w.Code, w.Body)
			}
		}
	})
}
