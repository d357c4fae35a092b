package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
)

// Roles and role bindings count from the moment they are written until they are deleted, for tokens of the server and of
// issuers.
func TestRolesAndBindings(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.config.Bindings = append(i.config.Bindings, jwt.Binding{Claims: map[string]string{"sub": "later"}, Role: "later"})
	s := startServer(t, i.trusted)
	admin := s.addToken(auth.RoleAdmin)
	shop := s.addToken(auth.RoleViewer, "shop")
	id, _, _ := strings.Cut(shop, ".")
	pipeline := i.sign(t, "pipeline", time.Now().Add(time.Hour))
	as := func(token, method, path, body string) answer {
		return s.do(method, path, body, "Authorization", "Bearer "+token)
	}
	const spec = `{"spec":{}}`
	for n, step := range []struct {
		token, method, path, body string
		status                    int
		detail                    string
	}{
		{shop, http.MethodPut, "/v1/namespaces/shop/placements/web", spec, 403, "a token with role viewer for the namespaces shop must not write placement"},
		{pipeline, http.MethodPut, "/v1/namespaces/shop/placements/web", spec, 403, "no binding of issuer"},
		// Only administrators write roles and bindings.
		{s.addToken(auth.RoleEditor), http.MethodPut, "/v1/roles/deployer", `{"spec":{"rules":[{"verbs":["read"]}]}}`, 403, "must not write role"},
		{s.addToken(auth.RoleEditor), http.MethodPut, "/v1/role-bindings/mine", `{"spec":{"role":"admin","token_ids":["` + id + `"]}}`, 403, "must not write role_binding"},
		{admin, http.MethodPut, "/v1/roles/deployer", `{"spec":{"rules":[{"verbs":["read","write"],"kinds":["placement"]}]}}`, 201, ""},
		{admin, http.MethodPut, "/v1/role-bindings/shop", `{"spec":{"role":"deployer","namespaces":["shop"],"token_ids":["` + id + `"]}}`, 201, ""},
		{admin, http.MethodPut, "/v1/role-bindings/ci", `{"spec":{"role":"deployer","namespaces":["bank"],"issuer":"ci","claims":{"sub":"pipe*"}}}`, 201, ""},
		// They count at once, where they say so.
		{shop, http.MethodPut, "/v1/namespaces/shop/placements/web", spec, 201, ""},
		{shop, http.MethodPut, "/v1/namespaces/bank/placements/web", spec, 403, "and the role bindings shop must not write placement"},
		{shop, http.MethodPut, "/v1/namespaces/shop/workloads/web", `{"spec":{"api_version":"v1","kind":"Pod"}}`, 403, "must not write workload"},
		{pipeline, http.MethodPut, "/v1/namespaces/bank/placements/web", spec, 201, ""},
		{pipeline, http.MethodGet, "/v1/namespaces/shop/placements/web", "", 403, `read what belongs to namespace "shop"`},
		// Who may read some namespaces does not learn who may do what elsewhere.
		{shop, http.MethodGet, "/v1/role-bindings/ci", "", 403, "must not read"},
		{shop, http.MethodGet, "/v1/roles/deployer", "", 403, "must not read"},
		// A role can be that of a token, and changes for all who have it.
		{admin, http.MethodPost, "/v1/tokens", `{"role":"deployer","namespaces":["bank"]}`, 201, ""},
		{admin, http.MethodPost, "/v1/tokens", `{"role":"gone"}`, 422, `"gone" is not one of admin, editor, viewer, agent, deployer`},
		{admin, http.MethodPut, "/v1/roles/deployer", `{"spec":{"rules":[{"verbs":["read"],"kinds":["placement"]}]}}`, 200, ""},
		{shop, http.MethodPut, "/v1/namespaces/shop/placements/web", `{"spec":{"number_of_clusters":2}}`, 403, "must not write placement"},
		{pipeline, http.MethodGet, "/v1/namespaces/bank/placements/web", "", 200, ""},
		// A deleted role or binding gives nothing.
		{admin, http.MethodDelete, "/v1/roles/deployer", "", 204, ""},
		{pipeline, http.MethodGet, "/v1/namespaces/bank/placements/web", "", 403, "matches its claims, but there is no role deployer"},
		{i.sign(t, "later", time.Now().Add(time.Hour)), http.MethodGet, "/v1/placements", "", 403, "matches its claims, but there is no role later"},
		{admin, http.MethodPut, "/v1/role-bindings/ci", `{"spec":{"role":"viewer","issuer":"ci","claims":{"sub":"pipeline"}}}`, 200, ""},
		{pipeline, http.MethodGet, "/v1/role-bindings/ci", "", 200, ""},
		{admin, http.MethodDelete, "/v1/role-bindings/ci", "", 204, ""},
		{pipeline, http.MethodGet, "/v1/placements", "", 403, "no binding of issuer"},
		// They can be part of a simulation, in which nothing depends on them.
		{admin, http.MethodPost, "/v1/simulations", `{"objects":[{"kind":"role","metadata":{"name":"x"},"spec":{"rules":[{"verbs":["read"]}]}}],"delete":[{"kind":"role_binding","name":"shop"}]}`, 200, ""},
		// What can match nobody is refused.
		{admin, http.MethodPut, "/v1/role-bindings/x", `{"spec":{"role":"viewer","issuer":"cj","claims":{"sub":"x"}}}`, 422, `"cj" is not an issuer in the configuration of the server (auth.jwt), which has ci`},
	} {
		a := as(step.token, step.method, step.path, step.body)
		if a.StatusCode != step.status || !strings.Contains(string(a.body), strings.ReplaceAll(step.detail, `"`, `\"`)) {
			t.Fatalf("%d: %s %s: %d %s, want %d and %q", n, step.method, step.path, a.StatusCode, a.body, step.status, step.detail)
		}
	}
	s.token = shop
	if list := decodeAs[struct{ Items []anyObject }](t, s.do(http.MethodGet, "/v1/role-bindings", "")); len(list.Items) > 0 {
		t.Errorf("a token for one namespace sees %v", list.Items)
	}
}

// Tokens of an issuer that signs for the public are bound by whose they are.
func TestBindingsOfPublicIssuers(t *testing.T) {
	i := newIssuer(t)
	i.config.Name, i.config.Issuer = "github", "https://token.actions.githubusercontent.com"
	i.config.Bindings = []jwt.Binding{{Claims: map[string]string{"sub": "root"}, Role: auth.RoleAdmin}}
	s := startServer(t, i.trusted)
	s.token = s.addToken(auth.RoleAdmin)
	for claims, status := range map[string]int{`{"ref":"refs/heads/main"}`: 422, `{"repository":"*","ref":"main"}`: 422, `{"repository":"shop/*"}`: 201} {
		a := s.do(http.MethodPut, "/v1/role-bindings/ci", `{"spec":{"role":"viewer","issuer":"github","claims":`+claims+`}}`)
		if a.StatusCode != status || status == 422 && !strings.Contains(string(a.body), "this issuer signs tokens for the public") {
			t.Errorf("%s: %d %s, want %d", claims, a.StatusCode, a.body, status)
		}
	}
}
