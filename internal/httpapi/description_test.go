package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// The description of a cluster appears in lists, and with each candidate in the explanations of placements and
// workloads, chosen or rejected.
func TestDescriptionOfClustersIsShown(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	read := func(path string, into any) {
		t.Helper()
		if a := s.do(http.MethodGet, path, ""); a.StatusCode != http.StatusOK || json.Unmarshal(a.body, into) != nil {
			t.Fatalf("%s: unexpected answer %d %s", path, a.StatusCode, a.body)
		}
	}
	for path, body := range map[string]string{
		"/v1/clusters/a": `{"metadata":{"name":"a"},"spec":{"description":"the first"}}`,
		"/v1/clusters/b": `{"metadata":{"name":"b"},"spec":{"description":"the second","paused":true}}`,
	} {
		if a := s.do(http.MethodPut, path, body); a.StatusCode/100 != 2 {
			t.Fatalf("%s: unexpected answer %d %s", path, a.StatusCode, a.body)
		}
	}
	for path, body := range map[string]string{
		"/v1/namespaces/shop/placements/web": `{"metadata":{"name":"web","namespace":"shop"},"spec":{}}`,
		"/v1/namespaces/shop/workloads/web":  `{"metadata":{"name":"web","namespace":"shop"},"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":1}}`,
		"/v1/propagation-policies/all":       `{"metadata":{"name":"all"},"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}]}}`,
	} {
		if a := s.do(http.MethodPut, path, body); a.StatusCode/100 != 2 {
			t.Fatalf("%s: unexpected answer %d %s", path, a.StatusCode, a.body)
		}
	}
	want := map[string]string{"a": "the first", "b": "the second"}
	for _, kind := range []string{"placements", "workloads"} {
		var explanation api.Explanation
		read("/v1/namespaces/shop/"+kind+"/web/explanation", &explanation)
		if len(explanation.Candidates) != len(want) {
			t.Errorf("%s: got candidates %+v", kind, explanation.Candidates)
		}
		for _, c := range explanation.Candidates {
			if c.Description != want[c.Cluster] {
				t.Errorf("%s: %s has the description %q, want %q", kind, c.Cluster, c.Description, want[c.Cluster])
			}
		}
	}
	var clusters struct {
		Items []struct {
			Metadata api.Metadata    `json:"metadata"`
			Spec     api.ClusterSpec `json:"spec"`
		} `json:"items"`
	}
	read("/v1/clusters", &clusters)
	for _, c := range clusters.Items {
		if c.Spec.Description != want[c.Metadata.Name] {
			t.Errorf("%s is listed with the description %q", c.Metadata.Name, c.Spec.Description)
		}
	}
	long := `{"metadata":{"name":"a"},"spec":{"description":"` + strings.Repeat("x", 1025) + `"}}`
	if a := s.do(http.MethodPut, "/v1/clusters/a", long); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(a.body), "spec.description") {
		t.Errorf("unexpected answer %d %s", a.StatusCode, a.body)
	}
}
