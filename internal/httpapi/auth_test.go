package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// addToken creates a token the way the command line does, and waits until the server knows it.
func (s *testServer) addToken(role auth.Role, namespaces ...string) string {
	s.t.Helper()
	text, _, revision, err := auth.CreateToken(context.Background(), s.store, auth.TokenRequest{Role: role, Namespaces: namespaces}, s.sessions.Roles(), time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.fleet.WaitRevision(context.Background(), revision); err != nil {
		s.t.Fatal(err)
	}
	return text
}

func authenticated(o *Options) { o.Authenticate = true }

func TestPermissions(t *testing.T) {
	t.Parallel()
	s := startServer(t, authenticated, func(o *Options) { o.LoginFailureBurst = 1000 })
	tokens := map[string]string{
		"admin": s.addToken(auth.RoleAdmin), "editor": s.addToken(auth.RoleEditor), "viewer": s.addToken(auth.RoleViewer), "agent": s.addToken(auth.RoleAgent),
		"shop editor": s.addToken(auth.RoleEditor, "shop", "stock"), "shop viewer": s.addToken(auth.RoleViewer, "shop"), "shop agent": s.addToken(auth.RoleAgent, "shop"),
		"nobody": "",
	}
	s.token = tokens["admin"]
	s.mustPut("/v1/clusters/shared", `{"spec":{}}`)
	s.mustPut("/v1/clusters/shops", `{"spec":{"namespace":"shop"}}`)
	s.mustPut("/v1/clusters/others", `{"spec":{"namespace":"other"}}`)
	for _, namespace := range []string{"shop", "other"} {
		s.mustPut("/v1/namespaces/"+namespace+"/placements/web", `{"spec":{}}`)
	}
	metric := `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"m"}}}`
	s.mustPut("/v1/metrics/load", metric)
	s.reporting()
	for _, namespace := range []string{"shop", "other"} {
		s.run("/v1/namespaces/"+namespace+"/workloads/web", "shared", "shops", "others")
	}
	selectors := `{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}]}}`
	s.mustPut("/v1/propagation-policies/all", selectors)
	s.mustPut("/v1/namespaces/other/propagation-policies/all", selectors)
	report := func(cluster string) string { return `{"cluster":"` + cluster + `","status":"healthy"}` }
	preview := func(kind, metadata, spec string) string {
		return `{"kind":"` + kind + `","metadata":{"name":"new"` + metadata + `},` + spec[1:]
	}

	const yes, no, unknown = 0, http.StatusForbidden, http.StatusUnauthorized
	everybody := []string{"admin", "editor", "viewer", "agent", "shop editor", "shop viewer", "shop agent", "nobody"}
	tests := []struct {
		method, path, body, again string // again is restored before each attempt
		want                      []int  // statuses in the order of the tokens
	}{
		{"GET", "/v1/clusters/shared", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/clusters/shops", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/clusters/others", "", "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"GET", "/v1/clusters", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/metrics/load", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/namespaces/shop/placements/web", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/namespaces/other/placements/web", "", "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"GET", "/v1/namespaces/other/placements/nothing", "", "", []int{404, 404, 404, no, no, no, no, unknown}},
		{"GET", "/v1/namespaces/other/placements", "", "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"GET", "/v1/placements", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/namespaces/shop/placements/web/explanation", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/namespaces/other/placements/web/explanation", "", "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"POST", "/v1/simulations", "{}", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/server", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/metrics", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/backup", "", "", []int{yes, no, no, no, no, no, no, unknown}},
		{"GET", "/healthz", "", "", []int{yes, yes, yes, yes, yes, yes, yes, yes}},
		{"GET", "/readyz", "", "", []int{yes, yes, yes, yes, yes, yes, yes, yes}},
		{"GET", "/v1/openapi.json", "", "", []int{yes, yes, yes, yes, yes, yes, yes, yes}},
		{"GET", "/nothing", "", "", []int{404, 404, 404, 404, 404, 404, 404, unknown}},

		{"PUT", "/v1/clusters/shared", `{"spec":{}}`, `{"spec":{}}`, []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/clusters/shared", `{"spec":{"namespace":"shop"}}`, `{"spec":{}}`, []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/clusters/shared", `{"spec":{}}`, `{"spec":{}}`, []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/clusters/shops", `{"spec":{"namespace":"shop","region":"eu"}}`, "", []int{yes, yes, no, no, yes, no, no, unknown}},
		{"PUT", "/v1/clusters/others", `{"spec":{"namespace":"other","region":"us"}}`, "", []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/metrics/load", metric, "", []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/namespaces/stock/metrics/load", metric, "", []int{yes, yes, no, no, yes, no, no, unknown}},
		{"PUT", "/v1/namespaces/other/metrics/load", metric, "", []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/namespaces/shop/placements/new", `{"spec":{}}`, "", []int{yes, yes, no, no, yes, no, no, unknown}},
		{"POST", "/v1/namespaces/shop/placements/web/reschedule", "", "", []int{yes, yes, no, no, yes, no, no, unknown}},
		{"POST", "/v1/namespaces/other/placements/web/reschedule", "", "", []int{yes, yes, no, no, no, no, no, unknown}},
		{"POST", "/v1/clusters/shared/heartbeat", "", "", []int{yes, yes, no, yes, no, no, no, unknown}},
		{"POST", "/v1/clusters/nothing/heartbeat", "", "", []int{404, 404, no, 404, 404, no, 404, unknown}},
		{"POST", "/v1/clusters/shops/heartbeat", "", "", []int{yes, yes, no, yes, yes, no, yes, unknown}},
		{"POST", "/v1/clusters/others/heartbeat", "", "", []int{yes, yes, no, yes, no, no, no, unknown}},
		{"GET", "/v1/namespaces/shop/workloads/web", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/namespaces/other/workloads/web", "", "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"GET", "/v1/namespaces/other/workloads/web/explanation", "", "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"GET", "/v1/propagation-policies/all", "", "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"GET", "/v1/namespaces/other/propagation-policies/all", "", "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"PUT", "/v1/namespaces/shop/workloads/new", workloadBody, "", []int{yes, yes, no, no, yes, no, no, unknown}},
		{"PUT", "/v1/namespaces/other/workloads/new", workloadBody, "", []int{yes, yes, no, no, no, no, no, unknown}},
		{"POST", "/v1/namespaces/shop/workloads/web/reschedule", "", "", []int{yes, yes, no, no, yes, no, no, unknown}},
		{"POST", "/v1/namespaces/other/workloads/web/reschedule", "", "", []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/propagation-policies/all", selectors, "", []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/namespaces/shop/propagation-policies/all", selectors, "", []int{yes, yes, no, no, yes, no, no, unknown}},
		{"PUT", "/v1/namespaces/other/propagation-policies/all", selectors, "", []int{yes, yes, no, no, no, no, no, unknown}},
		{"PUT", "/v1/namespaces/shop/workloads/web/health", report("shared"), "", []int{yes, yes, no, yes, yes, no, no, unknown}},
		{"PUT", "/v1/namespaces/shop/workloads/web/health", report("shops"), "", []int{yes, yes, no, yes, yes, no, yes, unknown}},
		{"PUT", "/v1/namespaces/shop/workloads/web/health", report("others"), "", []int{yes, yes, no, yes, yes, no, no, unknown}},
		{"PUT", "/v1/namespaces/shop/workloads/web/health", report("nothing"), "", []int{422, 422, no, 422, 422, no, no, unknown}},
		{"PUT", "/v1/namespaces/other/workloads/web/health", report("shops"), "", []int{yes, yes, no, yes, no, no, no, unknown}},
		{"PUT", "/v1/namespaces/other/workloads/nothing/health", report("shops"), "", []int{404, 404, no, 404, no, no, no, unknown}},
		{"POST", "/v1/previews", preview("workload", `,"namespace":"shop"`, workloadBody), "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"POST", "/v1/previews", preview("workload", `,"namespace":"other"`, workloadBody), "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"POST", "/v1/previews", preview("propagation_policy", "", selectors), "", []int{yes, yes, yes, no, yes, yes, no, unknown}},
		{"POST", "/v1/previews", preview("propagation_policy", `,"namespace":"other"`, selectors), "", []int{yes, yes, yes, no, no, no, no, unknown}},
		{"DELETE", "/v1/propagation-policies/all", "", selectors, []int{yes, yes, no, no, no, no, no, unknown}},
		{"DELETE", "/v1/namespaces/shop/workloads/new", "", workloadBody, []int{yes, yes, no, no, yes, no, no, unknown}},
		{"POST", "/v1/tokens", `{"role":"viewer"}`, "", []int{yes, no, no, no, no, no, no, unknown}},
		{"POST", "/v1/upgrade/finish", "", "", []int{yes, no, no, no, no, no, no, unknown}},
		{"GET", "/v1/tokens", "", "", []int{yes, no, no, no, no, no, no, unknown}},
		{"DELETE", "/v1/tokens/0123456789abcdef", "", "", []int{404, no, no, no, no, no, no, unknown}},
		{"POST", "/v1/members", `{"name":"b","url":"http://127.0.0.1:1"}`, "", []int{409, no, no, no, no, no, no, unknown}},
		{"GET", "/v1/members", "", "", []int{yes, no, no, no, no, no, no, unknown}},
		{"DELETE", "/v1/members/b", "", "", []int{409, no, no, no, no, no, no, unknown}},
		{"DELETE", "/v1/clusters/others", "", `{"spec":{"namespace":"other"}}`, []int{yes, yes, no, no, no, no, no, unknown}},
		{"DELETE", "/v1/namespaces/shop/placements/new", "", `{"spec":{}}`, []int{yes, yes, no, no, yes, no, no, unknown}},
	}
	for _, test := range tests {
		for i, who := range everybody {
			if test.again != "" { // each token must find the same object
				s.token = tokens["admin"]
				s.mustPut(test.path, test.again)
			}
			s.token = tokens[who]
			want := test.want[i]
			a := s.do(test.method, test.path, test.body)
			if want == yes && a.StatusCode >= 300 || want != yes && a.StatusCode != want {
				t.Errorf("%s: %s %s %s: got %d %.200s, want %d", who, test.method, test.path, test.body, a.StatusCode, a.body, want)
			}
			if want == unknown && a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: 401 without WWW-Authenticate", test.method, test.path)
			}
		}
	}
}

func TestNamespacedReadersSeeTheirOwn(t *testing.T) {
	s := startServer(t, authenticated)
	admin, viewer := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "shop")
	s.token = viewer
	watch := s.watch("/v1/watch").started()
	s.token = admin
	s.mustPut("/v1/clusters/shared", `{"spec":{}}`)
	s.mustPut("/v1/clusters/others", `{"spec":{"namespace":"other"}}`)
	s.mustPut("/v1/namespaces/other/placements/web", `{"spec":{}}`)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	s.mustPut("/v1/clusters/shared", `{"spec":{"namespace":"other"}}`)
	s.mustPut("/v1/clusters/shared", `{"spec":{"namespace":"other","region":"eu"}}`)
	s.mustPut("/v1/clusters/shops", `{"spec":{"namespace":"shop"}}`)
	// A cluster that changes to another owner is deleted for this reader.
	watch.expect("put shared", "put shop/web", "delete shared", "put shops")

	s.token = viewer
	for path, want := range map[string]string{"/v1/clusters": "shops", "/v1/placements": "shop/web", "/v1/placements?limit=1": "shop/web"} {
		if got := strings.Join(decodeAs[objectList](t, s.do(http.MethodGet, path, "")).paths(), " "); got != want {
			t.Errorf("%s shows %q, want %q", path, got, want)
		}
	}
	s.decisions.explain = func(key api.Key) (*api.Explanation, error) {
		return &api.Explanation{Namespace: key.Namespace, Name: key.Name, Total: 2, Candidates: []api.Candidate{{Cluster: "shops"}, {Cluster: "others"}}}, nil
	}
	explanation := decodeAs[api.Explanation](t, s.do(http.MethodGet, "/v1/namespaces/shop/placements/web/explanation", ""))
	if len(explanation.Candidates) != 1 || explanation.Candidates[0].Cluster != "shops" || explanation.Total != 1 {
		t.Errorf("unexpected explanation %+v", explanation)
	}
	s.decisions.simulate = func(context.Context, api.Simulation) (*api.SimulationResult, error) {
		return &api.SimulationResult{
			Objects:      []api.Object{&api.Cluster{Metadata: api.Metadata{Name: "others"}, Spec: api.ClusterSpec{Namespace: "other"}}},
			Explanations: []api.Explanation{{Namespace: "other", Name: "web"}, {Namespace: "shop", Name: "web"}},
			Changes:      []api.Change{{Key: api.Key{Namespace: "other", Name: "web"}}},
		}, nil
	}
	a := s.do(http.MethodPost, "/v1/simulations", "{}")
	if strings.Contains(string(a.body), "other") || !strings.Contains(string(a.body), "shop") {
		t.Errorf("simulation %s, want only objects of shop", a.body)
	}
}

// Who may not write an object learns nothing of it by preconditions.
func TestRightsComeBeforePreconditions(t *testing.T) {
	s := startServer(t, authenticated)
	s.token = s.addToken(auth.RoleAdmin)
	s.mustPut("/v1/clusters/theirs", `{"spec":{"namespace":"bank"}}`)
	s.mustPut("/v1/clusters/shared", `{"spec":{}}`)
	s.mustPut("/v1/clusters/ours", `{"spec":{"namespace":"shop"}}`)
	s.mustPut("/v1/namespaces/bank/metrics-providers/p", `{"spec":{"type":"static","static":{"metrics":{"a":1}}}}`)
	s.mustPut("/v1/namespaces/bank/metrics/load", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"a"}}}`)
	s.mustPut("/v1/namespaces/bank/placements/web", `{"spec":{}}`)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	s.token = s.addToken(auth.RoleEditor, "shop")
	for _, precondition := range [][2]string{{"If-Match", `"1"`}, {"If-None-Match", "*"}, {"If-Match", "*"}} {
		for _, c := range []struct{ method, path, body string }{
			{http.MethodPut, "/v1/clusters/theirs", `{"spec":{"namespace":"shop"}}`},
			{http.MethodPut, "/v1/clusters/shared", `{"spec":{"namespace":"shop"}}`},
			{http.MethodPut, "/v1/clusters/theirs/placement-scores/a", `{"spec":{"scores":{"a":1}}}`},
			{http.MethodPut, "/v1/namespaces/bank/placements/web", `{"spec":{}}`},
			{http.MethodPut, "/v1/clusters/ours", `{"spec":{"namespace":"shop","metrics":[{"name":"load","namespace":"bank","weight":1}]}}`},
			{http.MethodDelete, "/v1/clusters/theirs", ""},
			{http.MethodDelete, "/v1/namespaces/bank/placements/web", ""},
			{http.MethodPost, "/v1/namespaces/bank/placements/web/reschedule", ""},
		} {
			a := s.do(c.method, c.path, c.body, precondition[0], precondition[1])
			if a.StatusCode != http.StatusForbidden && a.StatusCode != http.StatusNotFound || strings.Contains(string(a.body), "resource_version") {
				t.Errorf("%s %s with %s: got %d %s, want 403", c.method, c.path, precondition, a.StatusCode, a.body)
			}
		}
	}
	if a := s.do(http.MethodPut, "/v1/namespaces/shop/placements/web", `{"spec":{}}`, "If-Match", `"1"`); a.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("got %d %s, want 412", a.StatusCode, a.body)
	}
}

// A refusal names the right that is missing for what was asked.
func TestAdministrationIsRefusedByName(t *testing.T) {
	s := startServer(t, authenticated)
	s.token = s.addToken(auth.RoleEditor)
	for request, want := range map[[2]string]string{
		{http.MethodGet, "/v1/members"}: "must not manage the members of the store", {http.MethodPost, "/v1/members"}: "must not manage the members of the store",
		{http.MethodDelete, "/v1/members/a"}: "must not manage the members of the store", {http.MethodGet, "/v1/tokens"}: "must not manage tokens",
		{http.MethodGet, "/v1/backup"}: "must not make backups",
	} {
		body := ""
		if request[0] == http.MethodPost {
			body = "{}"
		}
		if a := s.do(request[0], request[1], body); a.StatusCode != http.StatusForbidden || !strings.Contains(string(a.body), want) {
			t.Errorf("%v: got %d %s, want %q", request, a.StatusCode, a.body, want)
		}
	}
}

// From the first token on every request needs one, so nobody may be left without one that creates others.
func TestThereIsAlwaysAnAdministrator(t *testing.T) {
	s := startServer(t)
	create := func(body string, want int) string {
		t.Helper()
		a := s.do(http.MethodPost, "/v1/tokens", body)
		if a.StatusCode != want {
			t.Fatalf("%s: got %d %s, want %d", body, a.StatusCode, a.body, want)
		}
		if want != http.StatusCreated {
			if e := a.problem(t).Errors[0]; e.Field != "role" || !strings.Contains(e.Message, "cannot be the role of the first token") || !strings.Contains(e.Message, "token create --role admin") {
				t.Errorf("%s: got %+v", body, e)
			}
			return ""
		}
		return decodeAs[createdToken](t, a).Text
	}
	for _, role := range []string{"editor", "viewer", "agent"} {
		create(`{"role":"`+role+`"}`, http.StatusUnprocessableEntity)
	}
	create(`{"role":"editor","namespaces":["shop"]}`, http.StatusUnprocessableEntity)
	if s.sessions.Required() {
		t.Fatal("a token was stored")
	}
	first := create(`{"role":"admin"}`, http.StatusCreated)
	s.token = first
	editor := create(`{"role":"editor"}`, http.StatusCreated)
	second := create(`{"role":"admin"}`, http.StatusCreated)
	revoke := func(token string, want int) {
		t.Helper()
		id, _, _ := strings.Cut(token, ".")
		if a := s.do(http.MethodDelete, "/v1/tokens/"+id, ""); a.StatusCode != want {
			t.Fatalf("got %d %s, want %d", a.StatusCode, a.body, want)
		} else if want == http.StatusConflict && !strings.Contains(string(a.body), "last token that may manage tokens") {
			t.Errorf("got %s", a.body)
		}
	}
	revoke(first, http.StatusNoContent)
	s.token = second
	revoke(second, http.StatusConflict)
	revoke(editor, http.StatusNoContent)
	revoke(second, http.StatusNoContent) // none is left, so none is needed
	s.token = ""
	create(`{"role":"editor"}`, http.StatusUnprocessableEntity)
}

func TestTokens(t *testing.T) {
	s := startServer(t, authenticated)
	s.token = s.addToken(auth.RoleAdmin)
	admin := s.token
	a := s.do(http.MethodPost, "/v1/tokens", `{"role":"editor","namespaces":["shop"],"description":"pipeline"}`)
	created := decodeAs[createdToken](t, a)
	if a.StatusCode != http.StatusCreated || created.Text == "" || !strings.HasPrefix(created.Text, created.ID+".") || created.Hash != nil {
		t.Fatalf("unexpected answer %d %s", a.StatusCode, a.body)
	}
	if got := decodeAs[tokenList](t, s.do(http.MethodGet, "/v1/tokens", "")); len(got.Items) != 2 || got.Items[1].Description != "pipeline" || got.Items[1].Hash != nil {
		t.Errorf("unexpected list %+v", got)
	}
	for body, field := range map[string]string{
		`{}`: "role", `{"role":"root"}`: "role", `{"role":"admin","namespaces":["shop"]}`: "namespaces",
		`{"role":"viewer","namespaces":["A"]}`: "namespaces[0]", `{"role":"viewer","expires_at":"2001-01-01T00:00:00Z"}`: "expires_at",
		`{"role":"viewer","secret":"x"}`: "secret", `{"role":"viewer","description":"` + strings.Repeat("x", 257) + `"}`: "description",
	} {
		a := s.do(http.MethodPost, "/v1/tokens", body)
		if a.StatusCode != 422 || a.problem(t).Errors[0].Field != field {
			t.Errorf("%s: unexpected answer %d %s", body, a.StatusCode, a.body)
		}
	}

	s.token = created.Text
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	watch := s.watch("/v1/watch").started()
	s.token = admin
	if a := s.do(http.MethodDelete, "/v1/tokens/"+created.ID, ""); a.StatusCode != http.StatusNoContent {
		t.Fatalf("revoke: %d %s", a.StatusCode, a.body)
	}
	if a := s.do(http.MethodDelete, "/v1/tokens/"+created.ID, ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("revoked again: got %d, want 404", a.StatusCode)
	}
	s.token = created.Text
	if a := s.do(http.MethodGet, "/v1/clusters", ""); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("revoked token: got %d, want 401", a.StatusCode)
	}
	s.token = admin
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{"number_of_clusters":1}}`)
	if e, more := watch.next(); more {
		t.Errorf("a watch goes on after its token was revoked: %s", e)
	}
	if logs := s.logs.String(); strings.Contains(logs, strings.SplitN(created.Text, ".", 2)[1]) || !strings.Contains(logs, created.ID) {
		t.Error("the log must name tokens by ID, and contain no secret")
	}

	// The store does not contain the secret.
	spec, _, err := s.store.Read(context.Background(), api.Key{Kind: auth.KindToken, Name: strings.SplitN(admin, ".", 2)[0]})
	if err != nil || spec == nil || bytes.Contains(spec.Value, []byte(strings.SplitN(admin, ".", 2)[1])) {
		t.Errorf("stored token: %v %v", spec, err)
	}
}

func TestTheFirstTokenEndsTheTimeWithout(t *testing.T) {
	s := startServer(t)
	created := decodeAs[createdToken](t, s.do(http.MethodPost, "/v1/tokens", `{"role":"admin"}`))
	if a := s.do(http.MethodGet, "/v1/clusters", ""); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: got %d, want 401", a.StatusCode)
	}
	s.token = created.Text
	if a := s.do(http.MethodGet, "/v1/clusters", ""); a.StatusCode != http.StatusOK {
		t.Errorf("with a token: got %d, want 200", a.StatusCode)
	}
}

func TestTokenExpires(t *testing.T) {
	now := &clock{at: time.Now()}
	s := startServer(t, authenticated, func(o *Options) { o.Now = now.now })
	until := now.now().Add(time.Hour)
	text, _, revision, err := auth.CreateToken(context.Background(), s.store, auth.TokenRequest{Role: auth.RoleViewer, ExpiresAt: &until}, auth.Roles{}, now.now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.fleet.WaitRevision(context.Background(), revision); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.sessions.Verify(text); !ok {
		t.Error("the token is rejected")
	}
	now.advance(time.Hour)
	if _, ok := s.sessions.Verify(text); ok {
		t.Error("the token is accepted after its expiry")
	}
}

func TestBadTokens(t *testing.T) {
	s := startServer(t, authenticated, func(o *Options) { o.LoginFailureBurst = 1000 })
	good := s.addToken(auth.RoleViewer)
	id, secret, _ := strings.Cut(good, ".")
	for _, header := range []string{
		"", "Bearer", "Bearer ", "Basic " + good, "Bearer " + id, "Bearer " + id + ".", "Bearer " + secret, "Bearer ." + secret,
		"Bearer " + good + "x", "Bearer " + good[:len(good)-1], "Bearer ../../x.y", "Bearer " + strings.ToUpper(id) + "." + secret,
		"Bearer " + strings.Repeat("a", 10000),
	} {
		if a := s.do(http.MethodGet, "/v1/clusters", "", "Authorization", header); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%.50q: got %d, want 401", header, a.StatusCode)
		}
	}
	for _, header := range []string{"Bearer " + good, "bearer  " + good} {
		if a := s.do(http.MethodGet, "/v1/clusters", "", "Authorization", header); a.StatusCode != http.StatusOK {
			t.Errorf("%.20q: got %d, want 200", header, a.StatusCode)
		}
	}
}

func TestFailedLoginsAreLimited(t *testing.T) {
	s := startServer(t, authenticated, func(o *Options) { o.LoginFailureBurst = 3; o.LoginFailuresPerSecond = 0.001 })
	good := s.addToken(auth.RoleViewer)
	var statuses []int
	for range 5 {
		statuses = append(statuses, s.do(http.MethodGet, "/v1/clusters", "", "Authorization", "Bearer bad.bad").StatusCode)
	}
	if want := []int{401, 401, 401, 429, 429}; !slices.Equal(statuses, want) {
		t.Errorf("failures give %v, want %v", statuses, want)
	}
	// A valid token is accepted even if another client with the same address has been locked out.
	s.token = good
	if a := s.do(http.MethodGet, "/v1/clusters", ""); a.StatusCode != http.StatusOK {
		t.Errorf("valid token: got %d, want 200", a.StatusCode)
	}
}

func TestCrossSiteWritesAreRefused(t *testing.T) {
	s := startServer(t)
	a := s.do(http.MethodPost, "/v1/simulations", "{}", "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example")
	if a.StatusCode != http.StatusForbidden {
		t.Errorf("got %d %s, want 403", a.StatusCode, a.body)
	}
	a.problem(t)
}
