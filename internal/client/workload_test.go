package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

func shopWorkload() *api.Workload {
	replicas := int64(3)
	workload := &api.Workload{
		Metadata: api.Metadata{Namespace: "shop", Name: "web"},
		Spec:     api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: &replicas},
		Status:   api.WorkloadStatus{Clusters: []api.WorkloadCluster{{Name: "old", Replicas: 3}}},
	}
	workload.SetDefaults()
	return workload
}

// Each operation on workloads has its own path.
func TestWorkloadOperations(t *testing.T) {
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		if strings.HasSuffix(r.URL.Path, "/explanation") {
			answer(w, http.StatusOK, api.Explanation{Kind: api.KindWorkload, Policy: "shop/eu", Candidates: []api.Candidate{}})
			return
		}
		answer(w, http.StatusOK, shopWorkload())
	})
	key := api.KeyOf(shopWorkload())
	if got, err := c.ReportHealth(t.Context(), key, api.HealthReport{Cluster: "eu-1", Status: api.Unhealthy, Message: "crash"}); err != nil || api.KeyOf(got) != key || got.Status.Clusters[0].Name != "old" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.Reschedule(t.Context(), key); err != nil || api.KeyOf(got) != key {
		t.Errorf("Reschedule() = %+v, %v", got, err)
	}
	if got, err := c.Explain(t.Context(), key); err != nil || got.Policy != "shop/eu" {
		t.Errorf("Explain() = %+v, %v", got, err)
	}
	want := []string{
		`PUT /v1/namespaces/shop/workloads/web/health {"cluster":"eu-1","status":"unhealthy","message":"crash"}`,
		"POST /v1/namespaces/shop/workloads/web/reschedule",
		"GET /v1/namespaces/shop/workloads/web/explanation",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("requests\n%s\nwant\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
}

// A preview can be requested for an object of any kind. The status is not sent, because only the server writes it.
func TestPreviewOfEveryKind(t *testing.T) {
	policy := &api.PropagationPolicy{Metadata: api.Metadata{Name: "eu"}, Spec: api.PropagationPolicySpec{
		ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
	}}
	policy.SetDefaults()
	kindless := *shopWorkload() // before its defaults are set
	kindless.Kind = ""
	for _, object := range []api.Object{web(), shopWorkload(), policy, &kindless} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			var sent struct {
				Kind     api.Kind       `json:"kind"`
				Metadata api.Metadata   `json:"metadata"`
				Status   map[string]any `json:"status"`
			}
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || sent.Status != nil {
				t.Errorf("unexpected body %+v (%v)", sent, err)
			}
			answer(w, http.StatusCreated, api.Preview{
				Token: "p1", Kind: sent.Kind, Namespace: sent.Metadata.Namespace, Name: sent.Metadata.Name, Replicas: map[string]int64{"eu-1": 3},
				Bindings: []api.PreviewedBinding{{Workload: "shop/web", Replicas: map[string]int64{"eu-1": 3}, Claimed: true}},
			})
		})
		got, err := c.Preview(t.Context(), object)
		if err != nil || (api.Key{Kind: got.Kind, Namespace: got.Namespace, Name: got.Name}) != api.KeyOf(object) || got.Replicas["eu-1"] != 3 || len(got.Bindings) != 1 {
			t.Errorf("%s: preview %+v, error %v", api.KeyOf(object), got, err)
		}
	}
}

// An object of a kind without that operation is rejected by the client, without a request.
func TestRescheduleOfAnUnknownKind(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("unexpected request %s", r.URL) })
	if got, err := c.Reschedule(t.Context(), api.Key{Kind: "pod", Name: "web"}); err == nil || client.IsNotFound(err) {
		t.Errorf("Reschedule() = %+v, %v, want an error", got, err)
	}
}
