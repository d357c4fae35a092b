package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// withClouds starts a server with two clouds, of which north has the higher score.
func withClouds(t *testing.T) *testServer {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	s.mustPut("/v1/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"green":0.9,"brown":0.2}}}}`)
	for _, name := range []string{"green", "brown"} {
		s.mustPut("/v1/metrics/"+name, `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"table","metric":"`+name+`"}}}`)
	}
	s.mustPut("/v1/clouds/north", `{"metadata":{"labels":{"location":"NO"}},"spec":{"metrics":[{"name":"green"}]}}`)
	s.mustPut("/v1/clouds/south", `{"metadata":{"labels":{"location":"IT"}},"spec":{"metrics":[{"name":"brown"}]}}`)
	return s
}

// Who writes a cluster is told the cloud to create it on, and who changes what
// the cloud is chosen by finds it chosen again.
func TestAClusterIsAnsweredWithItsCloud(t *testing.T) {
	s := withClouds(t)
	put := func(body string) api.ClusterStatus {
		t.Helper()
		return decodeAs[api.Cluster](t, s.mustPut("/v1/clusters/edge", body)).Status
	}
	if got := put(`{"spec":{"inherit_labels":true,"inherit_metrics":true}}`); got.Cloud != "north" || got.CloudScore == nil || *got.CloudScore != 0.9 ||
		got.Labels["location"] != "NO" || len(got.Metrics) != 1 || *got.Metrics[0].Value != 0.9 {
		t.Fatalf("unexpected status %+v", got)
	}
	if got := put(`{"spec":{"cloud_constraints":{"label_constraints":["location is IT"]}}}`); got.Cloud != "south" || got.Labels["location"] != "IT" {
		t.Errorf("status %+v, want cloud south", got)
	}
	got := put(`{"spec":{"cloud_constraints":{"label_constraints":["location is FR"]}}}`)
	bound := api.FindCondition(got.Conditions, api.ConditionBound)
	if got.Cloud != "" || bound == nil || bound.Reason != api.ReasonNoSuitableCloud ||
		bound.Message != `0 of 2 clouds fit: 2 do not match label constraint "location is FR"` {
		t.Errorf("cloud %q, condition %+v", got.Cloud, bound)
	}
	x := decodeAs[api.Explanation](t, s.do(http.MethodGet, "/v1/clusters/edge/explanation", ""))
	if x.Kind != api.KindCluster || x.Feasible != 0 || len(x.Candidates) != 2 || x.Summary != bound.Message {
		t.Errorf("unexpected explanation %+v", x)
	}
	s.mustPut("/v1/clouds/west", `{"metadata":{"labels":{"location":"FR"}}}`)
	if got := decodeAs[api.Cluster](t, s.do(http.MethodGet, "/v1/clusters/edge", "")).Status; got.Cloud != "west" {
		t.Errorf("status %+v, want the new cloud west", got)
	}
	// Once it exists, the cluster stays on its cloud, whatever happens to the cloud.
	if got := put(`{"spec":{"inherit_labels":true,"health":{"url":"http://127.0.0.1:1/"},"kubernetes":{"kubeconfig":` + kubeconfig("t") + `}}}`); got.Cloud != "west" || got.Labels["location"] != "FR" {
		t.Errorf("unexpected status %+v", got)
	}
	s.do(http.MethodDelete, "/v1/clouds/west", "")
	if got := decodeAs[api.Cluster](t, s.do(http.MethodGet, "/v1/clusters/edge", "")).Status; got.Cloud != "west" || got.Labels != nil {
		t.Errorf("status %+v after the deletion of the cloud, want no labels", got)
	}
}

// Heartbeats and the choice of a cloud write to the same status. Neither may overwrite the other.
func TestHeartbeatsAndCloudsShareAStatus(t *testing.T) {
	t.Parallel()
	s := withClouds(t)
	const clusters = 20
	var group sync.WaitGroup
	for i := range clusters {
		path := fmt.Sprintf("/v1/clusters/edge-%d", i)
		s.mustPut(path, `{"spec":{"cloud_constraints":{"label_constraints":["location is NO"]}}}`)
		group.Go(func() {
			for n := range 10 {
				s.do(http.MethodPost, path+"/heartbeat?wait=0s", fmt.Sprintf(`{"allocated":{"cpu":"%d"}}`, n))
			}
		})
		group.Go(func() {
			for _, where := range []string{"IT", "NO", "IT", "NO", "IT"} {
				s.mustPut(path, `{"spec":{"cloud_constraints":{"label_constraints":["location is `+where+`"]}}}`)
			}
		})
	}
	group.Wait()
	for i := range clusters {
		got := decodeAs[api.Cluster](t, s.do(http.MethodGet, fmt.Sprintf("/v1/clusters/edge-%d", i), "")).Status
		if got.Cloud != "south" || got.Allocated["cpu"] != "9" || got.LastHeartbeatAt == nil {
			t.Errorf("edge-%d: unexpected status %+v", i, got)
		}
	}
}

func TestAMagnumClusterIsAnsweredWithItsProject(t *testing.T) {
	s := withClouds(t)
	s.mustPut("/v1/namespaces/shop/openstack-projects/red", `{"metadata":{"labels":{"tier":"gold"}},"spec":{"project_id":"4711","template_id":"small","metrics":[{"name":"brown"}]}}`)
	s.mustPut("/v1/namespaces/shop/openstack-projects/blue", `{"spec":{"project_id":"4712","metrics":[{"name":"green"}]}}`)
	s.mustPut("/v1/namespaces/other/openstack-projects/best", `{"metadata":{"labels":{"tier":"gold"}},"spec":{"metrics":[{"name":"green"}]}}`)
	got := decodeAs[api.MagnumCluster](t, s.mustPut("/v1/namespaces/shop/magnum-clusters/web", `{"spec":{}}`)).Status
	if got.Project != "blue" || got.ProjectID != "4712" || *got.Score != 0.9 || len(got.Metrics) != 1 {
		t.Fatalf("status %+v, want project blue", got)
	}
	got = decodeAs[api.MagnumCluster](t, s.mustPut("/v1/namespaces/shop/magnum-clusters/web", `{"spec":{"label_constraints":["tier is gold"]}}`)).Status
	if got.Project != "red" || got.TemplateID != "small" || got.DecisionRevision != 2 || got.Labels["tier"] != "gold" {
		t.Errorf("status %+v, want project red in a new decision", got)
	}
	x := decodeAs[api.Explanation](t, s.do(http.MethodGet, "/v1/namespaces/shop/magnum-clusters/web/explanation", ""))
	if x.Total != 3 || x.Feasible != 1 || x.Candidates[0].Cluster != "red" || strings.Contains(x.Summary, "shop/") {
		t.Errorf("unexpected explanation %+v", x)
	}
	// Simulate the deletion of the project. This changes nothing.
	result := decodeAs[struct {
		Changes []api.Change `json:"changes"`
	}](t, s.do(http.MethodPost, "/v1/simulations", `{"delete":[{"kind":"openstack_project","namespace":"shop","name":"red"}]}`))
	if len(result.Changes) != 1 || result.Changes[0].Kind != api.KindMagnumCluster || len(result.Changes[0].To) != 0 {
		t.Errorf("changes %+v", result.Changes)
	}
	if got := decodeAs[api.MagnumCluster](t, s.do(http.MethodGet, "/v1/namespaces/shop/magnum-clusters/web", "")).Status; got.Project != "red" {
		t.Errorf("the simulation moved the cluster to %q", got.Project)
	}
}
