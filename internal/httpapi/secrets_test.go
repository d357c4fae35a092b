package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Writing back what was read, or leaving out a secret, keeps the secret. An empty string removes it.
func TestSecretsAreKept(t *testing.T) {
	s := startServer(t)
	stored := func(path string) map[string]api.Secret {
		a := s.do(http.MethodGet, path, "")
		object, err := api.Decode(a.body)
		if err != nil {
			t.Fatal(err)
		}
		return object.Secrets()
	}
	for _, test := range []struct{ path, body, without, empty, field string }{
		{"/v1/clusters/eu-1", `{"spec":{"kubernetes":{"kubeconfig":` + kubeconfig("text") + `}}}`,
			`{"spec":{"kubernetes":{}}}`, `{"spec":{"kubernetes":{"kubeconfig":""}}}`, "spec.kubernetes.kubeconfig"},
		{"/v1/metrics-providers/prom", `{"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"},"bearer_token":"text"}}`,
			`{"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"}}}`, `{"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"},"bearer_token":""}}`, "spec.bearer_token"},
		{"/v1/clouds/de", `{"spec":{"openstack":{"auth_url":"http://k/v3","username":"u","project_id":"p","password":"text"}}}`,
			`{"spec":{"openstack":{"auth_url":"http://k/v3","username":"u","project_id":"p"}}}`, `{"spec":{"openstack":{"auth_url":"http://k/v3","username":"u","project_id":"p","password":""}}}`, "spec.openstack.password"},
	} {
		before := decodeAs[anyObject](t, s.mustPut(test.path+"?wait=0s", test.body))
		shown := s.do(http.MethodGet, test.path, "")
		for how, body := range map[string]string{"written back": string(shown.body), "left out": test.without} {
			a := s.do(http.MethodPut, test.path+"?wait=0s", body)
			if after := decodeAs[anyObject](t, a); a.StatusCode != 200 || after.Metadata.Generation != before.Metadata.Generation || !stored(test.path)[test.field].Withheld() {
				t.Errorf("%s: %s: %d %s", test.path, how, a.StatusCode, a.body)
			}
		}
		// Changing a label does not change the secret.
		labelled := strings.Replace(test.without, `{"spec"`, `{"metadata":{"labels":{"a":"b"}},"spec"`, 1)
		if after := decodeAs[anyObject](t, s.mustPut(test.path+"?wait=0s", labelled)); after.Metadata.Generation != 2 || !stored(test.path)[test.field].Withheld() {
			t.Errorf("%s with a label: %+v", test.path, after.Metadata)
		}
		if after := decodeAs[anyObject](t, s.mustPut(test.path+"?wait=0s", test.empty)); after.Metadata.Generation != 3 || len(stored(test.path)) > 0 {
			t.Errorf("%s removed: %+v, still stored: %v", test.path, after.Metadata, stored(test.path))
		}
	}
}

// An editor who does not know a token must not have it sent to himself.
func TestStoredSecretGoesNowhereElse(t *testing.T) {
	s := startServer(t)
	const path = "/v1/metrics-providers/prom?wait=0s"
	s.mustPut(path, `{"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"},"bearer_token":"hush-hush","headers":{"X-A":"hush"}}}`)
	for _, spec := range []string{
		`{"type":"prometheus","prometheus":{"url":"http://evil:9090"}}`,
		`{"type":"influx","influx":{"url":"http://evil:9090","bucket":"b"},"bearer_token":null}`,
		`{"type":"static","static":{}}`,
		`{"type":"prometheus","prometheus":{"url":"http://p:9090"},"insecure_skip_verify":true}`,
	} {
		a := s.do(http.MethodPut, path, `{"spec":`+spec+`}`)
		if p := a.problem(t); a.StatusCode != 422 || len(p.Errors) != 2 || p.Errors[0].Field != "spec.bearer_token" || p.Errors[1].Field != `spec.headers["X-A"]` ||
			strings.Contains(string(a.body), "hush") {
			t.Errorf("%s: unexpected answer %d %s", spec, a.StatusCode, a.body)
		}
	}
	if a := s.do(http.MethodPut, path, `{"spec":{"type":"prometheus","prometheus":{"url":"http://new:9090"},"bearer_token":"hush-hush","headers":{}}}`); a.StatusCode != 200 {
		t.Errorf("secret set again: got %d %s, want 200", a.StatusCode, a.body)
	}
	// The kept secret must be consistent with the rest of the object.
	a := s.do(http.MethodPut, path, `{"spec":{"type":"prometheus","prometheus":{"url":"http://new:9090"},"headers":{"Authorization":"Basic x"}}}`)
	if p := a.problem(t); a.StatusCode != 422 || len(p.Errors) != 1 || p.Errors[0].Field != `spec.headers["Authorization"]` {
		t.Errorf("header in addition to a stored token: got %d %s", a.StatusCode, a.body)
	}
}

// kubeconfig returns a kubeconfig with a token, as a JSON string.
func kubeconfig(token string) string {
	return strconv.Quote(`{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],` +
		`"clusters":[{"name":"k","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"` + token + `"}}]}`)
}
