package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

// samples has a document of each kind. Tests that range over api.Kinds fail for a kind without one.
var samples = map[api.Kind]struct{ path, body, other string }{
	api.KindClusterSet: {"/v1/cluster-sets/eu",
		`{"spec":{"clusters":["eu-1"]}}`, `{"spec":{"selector":{"match_labels":{"tier":"gold"}},"namespaces":["shop"]}}`},
	api.KindPlacementScore: {"/v1/clusters/eu-1/placement-scores/load",
		`{"spec":{"scores":{"cpu":50}}}`, `{"spec":{"scores":{"cpu":-100},"valid_until":"2030-01-01T00:00:00+01:00"}}`},
	api.KindCluster: {"/v1/clusters/eu-1",
		`{"spec":{"region":"eu"}}`, `{"spec":{"region":"us"}}`},
	api.KindCloud: {"/v1/clouds/paris",
		`{"spec":{"metrics":[{"name":"load"}]}}`, `{"spec":{"namespace":"shop","openstack":{"auth_url":"https://keystone:5000/v3","regions":["west"]}}}`},
	api.KindOpenStackProject: {"/v1/namespaces/shop/openstack-projects/red",
		`{"spec":{"project_id":"4711"}}`, `{"spec":{"project_id":"4712","template_id":"small","metrics":[{"name":"load","weight":2}]}}`},
	api.KindMagnumCluster: {"/v1/namespaces/shop/magnum-clusters/web",
		`{"spec":{"label_constraints":["location is DE"]}}`, `{"spec":{"metric_constraints":["load < 5"],"template_id":"large"}}`},
	api.KindMetricsProvider: {"/v1/metrics-providers/prom",
		`{"spec":{"type":"static","static":{"metrics":{"load":1}}}}`, `{"spec":{"type":"static","static":{"metrics":{"load":2}}}}`},
	api.KindMetric: {"/v1/namespaces/shop/metrics/load",
		`{"spec":{"min":0,"max":1,"metrics_provider":{"name":"prom","metric":"load"}}}`, `{"spec":{"min":0,"max":2,"metrics_provider":{"name":"prom","metric":"load"}}}`},
	api.KindPlacement: {"/v1/namespaces/shop/placements/web",
		`{"spec":{"number_of_clusters":1}}`, `{"spec":{"number_of_clusters":2}}`},
	api.KindWorkload: {"/v1/namespaces/shop/workloads/web",
		`{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":3}}`, `{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":5,"replica_requests":{"cpu":"1"}}}`},
	api.KindRole: {"/v1/roles/deployer",
		`{"spec":{"rules":[{"verbs":["read"]}]}}`, `{"spec":{"rules":[{"verbs":["read"]},{"verbs":["write"],"kinds":["placement"],"namespaces":["shop"]}],"description":"deploys"}}`},
	api.KindRoleBinding: {"/v1/role-bindings/ci",
		`{"spec":{"role":"viewer","token_ids":["0123456789abcdef"]}}`, `{"spec":{"role":"deployer","namespaces":["shop"],"token_ids":["fedcba9876543210"],"description":"builds"}}`},
	api.KindMoveWindow: {"/v1/namespaces/shop/move-windows/freeze",
		`{"spec":{"description":"incident 42"}}`, `{"spec":{"effect":"allow","schedule":"0 22 * * *","duration":"6h","time_zone":"Europe/Berlin"}}`},
	api.KindPropagationPolicy: {"/v1/namespaces/shop/propagation-policies/web",
		`{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}]}}`,
		`{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment","name":"web"}],"placement":{"cluster_affinities":[{"affinity_name":"eu","cluster_names":["eu-1"]}]}}}`},
}

type anyObject struct {
	Kind     api.Kind       `json:"kind"`
	Metadata api.Metadata   `json:"metadata"`
	Spec     map[string]any `json:"spec"`
	Status   map[string]any `json:"status"`
}

func TestLifecycleOfEveryKind(t *testing.T) {
	s := startServer(t)
	for _, info := range api.Kinds {
		t.Run(string(info.Kind), func(t *testing.T) {
			sample, ok := samples[info.Kind]
			if !ok {
				t.Fatalf("no sample of kind %s", info.Kind)
			}
			if info.Scope == api.OfCluster {
				s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`)
			}
			if a := s.do(http.MethodGet, sample.path, ""); a.StatusCode != http.StatusNotFound {
				t.Errorf("GET before PUT: %d", a.StatusCode)
			}
			a := s.do(http.MethodPut, sample.path, sample.body)
			if a.StatusCode != http.StatusCreated {
				t.Fatalf("create: %d %s", a.StatusCode, a.body)
			}
			first := decodeAs[anyObject](t, a)
			if first.Kind != info.Kind || first.Metadata.Generation != 1 || first.Metadata.UID == "" || first.Metadata.CreatedAt == nil {
				t.Errorf("created object: %+v", first.Metadata)
			}
			if want := `"` + first.Metadata.ResourceVersion + `"`; a.Header.Get("ETag") != want {
				t.Errorf("ETag %q, want %q", a.Header.Get("ETag"), want)
			}

			a = s.do(http.MethodPut, sample.path, sample.body)
			if same := decodeAs[anyObject](t, a); a.StatusCode != http.StatusOK || same.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
				t.Errorf("same write again: got %d, resource_version %s, want 200 and %s", a.StatusCode, same.Metadata.ResourceVersion, first.Metadata.ResourceVersion)
			}

			a = s.do(http.MethodPut, sample.path, sample.other)
			second := decodeAs[anyObject](t, a)
			if a.StatusCode != http.StatusOK || second.Metadata.Generation != 2 || second.Metadata.UID != first.Metadata.UID ||
				!second.Metadata.CreatedAt.Equal(*first.Metadata.CreatedAt) {
				t.Errorf("replaced: %d %+v", a.StatusCode, second.Metadata)
			}
			a = s.do(http.MethodGet, sample.path, "")
			if got := decodeAs[anyObject](t, a); a.StatusCode != http.StatusOK || got.Metadata.Generation != 2 {
				t.Errorf("GET: %d %s", a.StatusCode, a.body)
			}
			if a := s.do(http.MethodDelete, sample.path, ""); a.StatusCode != http.StatusNoContent || len(a.body) != 0 {
				t.Errorf("DELETE: %d %s", a.StatusCode, a.body)
			}
			if a := s.do(http.MethodDelete, sample.path, ""); a.StatusCode != http.StatusNotFound {
				t.Errorf("DELETE again: %d", a.StatusCode)
			}
			a = s.do(http.MethodPut, sample.path, sample.body)
			if again := decodeAs[anyObject](t, a); a.StatusCode != http.StatusCreated || again.Metadata.UID == first.Metadata.UID || again.Metadata.Generation != 1 {
				t.Errorf("created again: %d %+v", a.StatusCode, again.Metadata)
			}
		})
	}
}

func TestServerKeepsWhatUsersMayNotWrite(t *testing.T) {
	s := startServer(t)
	path := "/v1/namespaces/shop/placements/web"
	a := s.mustPut(path, `{"kind":"placement","metadata":{"name":"web","namespace":"shop","uid":"mine","generation":77,"resource_version":"5","reschedule_requests":9,
		"created_at":"2001-01-01T00:00:00Z"},"spec":{},"status":{"clusters":["forged"],"observed_generation":77}}`)
	got := decodeAs[api.Placement](t, a)
	if got.Metadata.UID == "mine" || got.Metadata.Generation != 1 || got.Metadata.RescheduleRequests != 0 || got.Metadata.CreatedAt.Year() == 2001 || len(got.Status.Clusters) > 0 {
		t.Errorf("metadata was taken from the body: %s", a.body)
	}
	// An object can be written back as it was read.
	if a := s.do(http.MethodPut, path, string(s.do(http.MethodGet, path, "").body)); a.StatusCode != http.StatusOK || decodeAs[api.Placement](t, a).Metadata.Generation != 1 {
		t.Errorf("written back: %d %s", a.StatusCode, a.body)
	}
	labelled := decodeAs[api.Placement](t, s.mustPut(path, `{"metadata":{"labels":{"tier":"prod"}},"spec":{}}`))
	if labelled.Metadata.Generation != 2 {
		t.Errorf("a new label gives generation %d, want 2", labelled.Metadata.Generation)
	}
}

func TestPutRejects(t *testing.T) {
	s := startServer(t)
	placement, metric := "/v1/namespaces/shop/placements/web", "/v1/metrics/load"
	deep := strings.Repeat(`{"spec":`, 20000) + "1" + strings.Repeat("}", 20000)
	tests := []struct {
		name, path, body string
		status           int
		fields           []string
		header           []string
	}{
		{"unknown field", placement, `{"spec":{"number_of_cluster":1}}`, 422, []string{"spec.number_of_cluster"}, nil},
		{"unknown field in a list", "/v1/clusters/a", `{"spec":{"metrics":[{"name":"load","wait":1}]}}`, 422, []string{"spec.metrics[0].wait"}, nil},
		{"field names are case sensitive", placement, `{"Spec":{}}`, 422, []string{"Spec"}, nil},
		{"wrong type", placement, `{"spec":{"number_of_clusters":"one"}}`, 422, []string{"spec.number_of_clusters"}, nil},
		{"every broken rule", placement, `{"spec":{"number_of_clusters":-1,"label_constraints":["a <> b"],"reschedule_after":"soon"}}`, 422,
			[]string{"spec.number_of_clusters", "spec.label_constraints[0]", "spec.reschedule_after"}, nil},
		{"broken rule of a list element", "/v1/clusters/a", `{"spec":{"metrics":[{"name":"load","weight":-1}]}}`, 422, []string{"spec.metrics[0].weight"}, nil},
		{"other name", placement, `{"metadata":{"name":"other"},"spec":{}}`, 422, []string{"metadata.name"}, nil},
		{"other namespace", placement, `{"metadata":{"namespace":"other"},"spec":{}}`, 422, []string{"metadata.namespace"}, nil},
		{"namespace for a global object", metric, `{"metadata":{"namespace":"shop"},"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"m"}}}`, 422, []string{"metadata.namespace"}, nil},
		{"other kind", placement, `{"kind":"cluster","spec":{}}`, 422, []string{"kind"}, nil},
		{"bad name in the path", "/v1/clusters/A_B", `{"spec":{}}`, 422, []string{"metadata.name"}, nil},
		{"escaped slash in the path", "/v1/clusters/..%2fx", `{"spec":{}}`, 422, []string{"metadata.name"}, nil},
		{"long name in the path", "/v1/clusters/" + strings.Repeat("a", 5000), `{"spec":{}}`, 422, []string{"metadata.name"}, nil},
		{"not JSON", placement, `{"spec":`, 400, nil, nil},
		{"two documents", placement, `{"spec":{}}{}`, 400, nil, nil},
		{"repeated field", placement, `{"spec":{},"spec":{}}`, 422, []string{"spec"}, nil},
		{"invalid UTF-8", placement, "{\"metadata\":{\"labels\":{\"a\":\"\xff\"}}}", 400, nil, nil},
		{"NUL byte", placement, "{\"spec\":\x00{}}", 400, nil, nil},
		{"escaped NUL", "/v1/clusters/a", `{"spec":{"region":"a\u0000b"}}`, 422, nil, nil},
		{"too deep", placement, deep, 422, []string{"spec.spec"}, nil},
		{"an array", placement, `[]`, 422, nil, nil},
		{"null", placement, ` null`, 422, nil, nil},
		{"empty", placement, ``, 400, nil, nil},
		{"unsupported media type", placement, `{}`, 415, nil, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"broken media type", placement, `{}`, 415, nil, []string{"Content-Type", ";;"}},
		{"other charset", placement, `{}`, 415, nil, []string{"Content-Type", "application/json; charset=latin1"}},
		{"compressed", placement, `{}`, 415, nil, []string{"Content-Encoding", "gzip"}},
		{"too large", placement, `{"spec":{"strategy":"` + strings.Repeat("x", 1<<20) + `"}}`, 413, nil, nil},
		{"too large once escaped", "/v1/clusters/a", `{"spec":{"region":"` + strings.Repeat("\u2028", 340_000) + `"}}`, 413, nil, nil},
		{"bad wait", placement + "?wait=soon", `{"spec":{}}`, 422, []string{"wait"}, nil},
		{"negative wait", placement + "?wait=-1s", `{"spec":{}}`, 422, []string{"wait"}, nil},
		{"unknown parameter", placement + "?wiat=1s", `{"spec":{}}`, 422, []string{"wiat"}, nil},
		{"bad If-Match", placement, `{"spec":{}}`, 400, nil, []string{"If-Match", "12"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := s.do(http.MethodPut, test.path, test.body, test.header...)
			if a.StatusCode != test.status {
				t.Fatalf("%d %.300s, want %d", a.StatusCode, a.body, test.status)
			}
			p := a.problem(t)
			var fields []string
			for _, e := range p.Errors {
				fields = append(fields, e.Field)
			}
			for _, want := range test.fields {
				if !strings.Contains(" "+strings.Join(fields, " ")+" ", " "+want+" ") {
					t.Errorf("fields %q do not contain %q: %.300s", fields, want, a.body)
				}
			}
		})
	}
}

func TestPreconditions(t *testing.T) {
	s := startServer(t)
	path := "/v1/namespaces/shop/placements/web"
	first := decodeAs[api.Placement](t, s.mustPut(path, `{"spec":{"number_of_clusters":1}}`))
	created := first.Metadata.ResourceVersion
	second := decodeAs[api.Placement](t, s.mustPut(path, `{"spec":{"number_of_clusters":2}}`))
	written := second.Metadata.ResourceVersion
	second.Status.Clusters = []string{"eu-1"}
	decided := strconv.FormatInt(s.writeStatus(&second), 10)
	future := strconv.FormatInt(s.fleet.Snapshot().Revision()+1000, 10)
	tests := []struct {
		name, method, path, match, noneMatch string
		status                               int
	}{
		{"spec unchanged, status written since", "PUT", path, `"` + written + `"`, "", 200},
		{"as read with the status", "PUT", path, `"` + decided + `"`, "", 200},
		{"spec changed since", "PUT", path, `"` + created + `"`, "", 412},
		{"future version", "PUT", path, `"` + future + `"`, "", 412},
		{"not a number", "PUT", path, `"abc"`, "", 412},
		{"weak tags never match strongly", "PUT", path, `W/"` + decided + `"`, "", 412},
		{"one of several", "PUT", path, `"1", "` + decided + `"`, "", 200},
		{"any version", "PUT", path, "*", "", 200},
		{"any version of a missing object", "PUT", path + "x", "*", "", 412},
		{"version of a missing object", "PUT", path + "x", `"1"`, "", 412},
		{"only create, exists", "PUT", path, "", "*", 412},
		{"only create", "PUT", path + "-new", "", "*", 201},
		{"create unless at this version", "PUT", path, "", `"` + decided + `"`, 412},
		{"delete after a change", "DELETE", path, `"` + created + `"`, "", 412},
		{"delete a missing object", "DELETE", path + "x", `"1"`, "", 404},
		{"delete with a bad tag", "DELETE", path, `1`, "", 400},
		{"reschedule after a change", "POST", path + "/reschedule", `"` + created + `"`, "", 412},
		{"reschedule a missing object", "POST", path + "x/reschedule", ``, "", 404},
		{"delete", "DELETE", path, `"` + decided + `"`, "", 204},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := ""
			if test.method == "PUT" {
				body = `{"spec":{"number_of_clusters":2}}`
			}
			a := s.do(test.method, test.path, body, "If-Match", test.match, "If-None-Match", test.noneMatch)
			if a.StatusCode != test.status {
				t.Errorf("got %d %s, want %d", a.StatusCode, a.body, test.status)
			}
		})
	}
}

func TestReschedule(t *testing.T) {
	s := startServer(t)
	path := "/v1/namespaces/shop/placements/web"
	before := decodeAs[api.Placement](t, s.mustPut(path, `{"spec":{}}`))
	a := s.do(http.MethodPost, path+"/reschedule", "")
	after := decodeAs[api.Placement](t, a)
	if a.StatusCode != http.StatusOK || after.Metadata.RescheduleRequests != 1 || after.Metadata.Generation != before.Metadata.Generation ||
		!after.Metadata.ModifiedAt.Equal(*before.Metadata.ModifiedAt) {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if kept := decodeAs[api.Placement](t, s.mustPut(path, `{"spec":{"number_of_clusters":3}}`)); kept.Metadata.RescheduleRequests != 1 {
		t.Errorf("reschedule_requests %d after a later write, want 1", kept.Metadata.RescheduleRequests)
	}
}

func TestHeartbeat(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`)
	a := s.do(http.MethodPost, "/v1/clusters/eu-1/heartbeat", `{"allocated":{"cpu":"3"}}`)
	if got := decodeAs[api.Cluster](t, a); a.StatusCode != http.StatusOK || got.Status.Allocated["cpu"] != "3" || got.Status.LastHeartbeatAt == nil {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodPost, "/v1/clusters/eu-1/heartbeat", ""); a.StatusCode != http.StatusOK {
		t.Errorf("empty: %d %s", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodPost, "/v1/clusters/eu-1/heartbeat", `{"allocated":{"cpu":"-3"}}`); a.StatusCode != 422 || a.problem(t).Errors[0].Field != `allocated["cpu"]` {
		t.Errorf("negative: %d %s", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodPost, "/v1/clusters/us-1/heartbeat", ""); a.StatusCode != 404 {
		t.Errorf("unknown cluster: got %d, want 404", a.StatusCode)
	}
}

// late are signals that have seen the end of a cluster which the fleet still shows, or shows again.
type late struct{ Signals }

func (late) Heartbeat(_ context.Context, name string, _ api.Heartbeat) (int64, error) {
	return 0, fmt.Errorf("cluster %q: %w", name, clusterhealth.ErrNotFound)
}

// A heartbeat for a cluster that is being deleted, or created again, is not an internal error.
func TestHeartbeatDuringADeletion(t *testing.T) {
	s := startServer(t, func(o *Options) { o.Signals = late{o.Signals} })
	s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`)
	if a := s.do(http.MethodPost, "/v1/clusters/eu-1/heartbeat", ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("got %d %s, want 404", a.StatusCode, a.body)
	}
}

// A heartbeat is answered alike whether huma reads it or not: one with a parameter it
// reads.
func TestHeartbeatsAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	s := startServer(t, authenticated, func(o *Options) { o.MaxBodyBytes = 1000 })
	admin, viewer, bound := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer), s.addToken(auth.RoleAgent, "other")
	s.token = admin
	s.mustPut("/v1/clusters/eu-1", `{"spec":{"namespace":"shop"}}`)
	s.do(http.MethodPost, "/v1/clusters/eu-1/heartbeat", `{"allocated":{"cpu":"3"}}`)
	for name, test := range map[string]struct {
		token, cluster, body string
		header               []string
	}{
		"alive":            {admin, "eu-1", "", nil},
		"the same amounts": {admin, "eu-1", `{"allocated":{"cpu":"3"}}`, nil},
		"other amounts":    {admin, "eu-1", `{"allocated":{"cpu":"4"}}`, nil},
		"any answer":       {admin, "eu-1", "", []string{"Accept", "*/*"}},
		"compressed":       {admin, "eu-1", "", []string{"Accept-Encoding", "gzip"}},
		"no JSON":          {admin, "eu-1", "{", nil},
		"unknown field":    {admin, "eu-1", `{"x":1}`, nil},
		"negative":         {admin, "eu-1", `{"allocated":{"cpu":"-3"}}`, nil},
		"too long":         {admin, "eu-1", `{"allocated":{"cpu":"` + strings.Repeat("1", 1000) + `"}}`, nil},
		"other media type": {admin, "eu-1", "{}", []string{"Content-Type", "text/plain"}},
		"compressed body":  {admin, "eu-1", "{}", []string{"Content-Encoding", "gzip"}},
		"unknown cluster":  {admin, "us-1", "", nil},
		"no cluster":       {admin, "..", "", nil},
		"escaped":          {admin, "eu%2D1", "", nil},
		"no name":          {admin, "", "", nil},
		"viewer":           {viewer, "eu-1", "", nil},
		"other namespace":  {bound, "eu-1", "", nil},
		"no token":         {"", "eu-1", "", nil},
		"other answer":     {admin, "eu-1", "", []string{"Accept", "text/html"}},
	} {
		s.token = test.token
		var shown [2]string
		for i, query := range []string{"", "?wait=10s"} {
			a := s.do(http.MethodPost, "/v1/clusters/"+test.cluster+"/heartbeat"+query, test.body, test.header...)
			for _, name := range []string{"Date", "X-Request-Id", api.LastContactHeader, "Vary", "Content-Length", "ETag"} {
				if name == "ETag" && (a.Header.Get(name) != "") != (a.StatusCode == http.StatusOK) {
					t.Errorf("%s%s: ETag %q", test.cluster, query, a.Header.Get(name))
				}
				a.Header.Del(name)
			}
			text := string(a.body)
			if a.StatusCode == http.StatusOK { // times advance
				cluster := decodeAs[api.Cluster](t, a)
				text = fmt.Sprint(cluster.Metadata.Name, cluster.Status.Allocated, cluster.Status.State, cluster.Status.LastHeartbeatAt != nil)
			}
			shown[i] = fmt.Sprint(a.StatusCode, " ", a.Header, " ", text)
		}
		if shown[0] != shown[1] {
			t.Errorf("%s: got\n%s, want\n%s", name, shown[0], shown[1])
		}
	}
}

func TestWriteWaitsForTheDecision(t *testing.T) {
	s := startServer(t)
	path := "/v1/namespaces/shop/placements/web"
	s.signals.settle = func(_ context.Context, revision int64) (int64, error) { return revision, nil }
	s.decisions.settle = func(ctx context.Context, revision int64) error {
		snapshot, err := s.fleet.WaitRevision(ctx, revision)
		if err != nil {
			return err
		}
		entry := snapshot.Get(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"})
		placement := *entry.Object.(*api.Placement)
		placement.Status = api.PlacementStatus{Clusters: []string{"eu-1"}, ObservedGeneration: placement.Metadata.Generation}
		s.writeStatus(&placement)
		return nil
	}
	a := s.mustPut(path, `{"spec":{}}`)
	got := decodeAs[api.Placement](t, a)
	if len(got.Status.Clusters) != 1 || got.Status.ObservedGeneration != 1 {
		t.Errorf("answered before the decision: %s", a.body)
	}
	s.decisions.settle = func(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() }
	started := time.Now()
	if a := s.mustPut(path+"?wait=50ms", `{"spec":{"number_of_clusters":1}}`); time.Since(started) < 50*time.Millisecond || decodeAs[api.Placement](t, a).Metadata.Generation != 2 {
		t.Errorf("after the end of the wait: got %s", a.body)
	}
	s.decisions.settle = func(context.Context, int64) error { t.Error("waited in spite of wait=0s"); return nil }
	if a := s.mustPut(path+"?wait=0s", `{"spec":{"number_of_clusters":2}}`); decodeAs[api.Placement](t, a).Metadata.Generation != 3 {
		t.Errorf("with wait=0s: got %s", a.body)
	}
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	s := startServer(t)
	path := "/v1/namespaces/shop/placements/web"
	s.mustPut(path, `{"spec":{}}`)
	const writers = 16
	done := make(chan int, writers)
	for range writers {
		go func() {
			a, err := s.try(context.Background(), http.MethodPost, path+"/reschedule?wait=0s", "")
			if err != nil {
				done <- 0
				return
			}
			done <- a.StatusCode
		}()
	}
	for range writers {
		if status := <-done; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	if got := decodeAs[api.Placement](t, s.do(http.MethodGet, path, "")); got.Metadata.RescheduleRequests != writers {
		t.Errorf("reschedule_requests %d, want %d", got.Metadata.RescheduleRequests, writers)
	}
}

func TestSecretsNeverComeBack(t *testing.T) {
	s := startServer(t)
	const secret = "s3cr3t-value"
	answers := []answer{
		s.mustPut("/v1/clusters/eu-1", `{"spec":{"kubernetes":{"kubeconfig":`+kubeconfig(secret)+`}}}`),
		s.do(http.MethodPut, "/v1/clusters/eu-1", `{"spec":{"kubernetes":{"kubeconfig":`+kubeconfig(secret)+`}, "regionn":1}}`),
		s.do(http.MethodPut, "/v1/clusters/eu-1", `{"spec":{"kubernetes":{"kubeconfig":["`+secret+`"]}}}`),
		s.mustPut("/v1/metrics-providers/prom", `{"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"},"bearer_token":"`+secret+`","headers":{"X-A":"`+secret+`2"}}}`),
		s.do(http.MethodGet, "/v1/clusters/eu-1", ""), s.do(http.MethodGet, "/v1/clusters", ""),
		s.do(http.MethodGet, "/v1/metrics-providers/prom", ""), s.do(http.MethodGet, "/v1/metrics-providers?limit=1", ""),
	}
	for i, a := range answers {
		if strings.Contains(string(a.body), secret) {
			t.Errorf("answer %d contains the secret: %s", i, a.body)
		}
	}
	if strings.Contains(s.logs.String(), secret) {
		t.Error("the log contains the secret")
	}
	again := decodeAs[anyObject](t, s.mustPut("/v1/clusters/eu-1", `{"spec":{"kubernetes":{"kubeconfig":`+kubeconfig(secret)+`}}}`))
	if again.Metadata.Generation != 1 {
		t.Errorf("generation %d after a write of the same secret, want 1", again.Metadata.Generation)
	}
	changed := decodeAs[anyObject](t, s.mustPut("/v1/clusters/eu-1", `{"spec":{"kubernetes":{"kubeconfig":`+kubeconfig("other")+`}}}`))
	if changed.Metadata.Generation != 2 {
		t.Errorf("generation %d after a write of another secret, want 2", changed.Metadata.Generation)
	}
}
