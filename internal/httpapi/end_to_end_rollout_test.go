package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// A placement that moves in steps waits for approval and for reports of its health. Approvals of something else are
// refused, and a preview shows what stands after the first step.
func TestRolloutsOverTheAPI(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	for _, name := range []string{"blue-1", "blue-2", "green-1", "green-2"} {
		generation, _, _ := strings.Cut(name, "-")
		s.mustPut("/v1/clusters/"+name, fmt.Sprintf(`{"metadata":{"labels":{"generation":%q}},"spec":{}}`, generation))
	}
	const path = "/v1/namespaces/shop/placements/web"
	spec := func(generation string) string {
		return fmt.Sprintf(`{"number_of_clusters":2,"label_constraints":["generation is %s"],"rollout":{"approval":"step","min_success_time":"0s","health":"reported","max_concurrent":2}}`, generation)
	}
	stands := func(a answer, want string, waiting api.RolloutWait) *api.Placement {
		t.Helper()
		got := decodeAs[api.Placement](t, a)
		if a.StatusCode != 200 && a.StatusCode != 201 {
			t.Fatalf("answer %d %s", a.StatusCode, a.body)
		}
		if clusters := strings.Join(slices.Sorted(slices.Values(got.Status.Clusters)), " "); clusters != want {
			t.Fatalf("%s stand, want %s: %s", clusters, want, a.body)
		}
		if r := got.Status.Rollout; (r == nil) != (waiting == "") || r != nil && r.WaitingFor != waiting {
			t.Fatalf("rollout %+v, want one that waits for %q", r, waiting)
		}
		return &got
	}
	put := func(generation string) answer { return s.do(http.MethodPut, path, `{"spec":`+spec(generation)+`}`) }
	approve := func(body string) answer { return s.do(http.MethodPost, path+"/approve", body) }
	refused := func(a answer, status int, text string) {
		t.Helper()
		if a.StatusCode != status || !strings.Contains(string(a.body), text) {
			t.Errorf("answer %d %s, want %d with %q", a.StatusCode, a.body, status, text)
		}
	}

	stands(put("blue"), "blue-1 blue-2", "")
	refused(approve(`{"revision":1}`), 409, "nothing to approve")
	preview := s.do(http.MethodPost, "/v1/previews", `{"kind":"placement","metadata":{"namespace":"shop","name":"web"},"spec":`+spec("green")+`}`)
	if got := decodeAs[api.Preview](t, preview); len(got.Clusters) != 2 || !strings.HasPrefix(got.Clusters[0], "blue") {
		t.Errorf("the preview shows %v, want what stands: %s", got.Clusters, preview.body)
	}
	moving := stands(put("green"), "blue-1 blue-2", api.WaitApproval)
	if c := api.FindCondition(moving.Status.Conditions, api.ConditionRollingOut); c == nil || c.Reason != api.ReasonWaitingForApproval {
		t.Errorf("condition %+v", c)
	}
	x := decodeAs[api.Explanation](t, s.do(http.MethodGet, path+"/explanation", ""))
	if x.Rollout == nil || !strings.Contains(x.Summary, "waits for approval") || !x.Candidates[0].Selected || !strings.HasPrefix(x.Candidates[0].Cluster, "green") {
		t.Errorf("explanation %+v", x)
	}
	refused(approve(`{}`), 422, "revision")
	refused(approve(`{"revision":2,"step":1}`), 412, "rollout 1 of placement")
	refused(approve(`{"revision":1,"step":2}`), 412, "has 1 steps")
	refused(s.do(http.MethodPut, path+"/health", `{"cluster":"green-1","status":"healthy"}`), 422, "does not run on")
	stands(approve(`{"revision":1,"step":1}`), "blue-1 blue-2 green-1 green-2", api.WaitHealth)
	stands(approve(`{"revision":1,"step":1}`), "blue-1 blue-2 green-1 green-2", api.WaitHealth) // once more changes nothing
	a := s.do(http.MethodPut, path+"/health", `{"cluster":"green-1","status":"unhealthy","message":"crash loop"}`)
	failed := stands(a, "blue-1 blue-2 green-1 green-2", api.WaitRetry)
	if c := api.FindCondition(failed.Status.Conditions, api.ConditionRollingOut); c == nil || c.Status != api.ConditionFalse || !strings.Contains(c.Message, "green-1") {
		t.Errorf("condition %+v", c)
	}
	stands(approve(`{"revision":1,"step":1}`), "blue-1 blue-2 green-1 green-2", api.WaitHealth)
	stands(put("blue"), "blue-1 blue-2", "") // back to where it stands
	refused(approve(`{"revision":1,"step":1}`), 409, "nothing to approve")
}
