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

// TestFreezeHoldsWhatNobodyAskedFor checks that a freeze by the API holds moves until it ends, that
// everybody is told, and that it holds no write.
func TestFreezeHoldsWhatNobodyAskedFor(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	scores := func(eu, us int) {
		s.mustPut("/v1/clusters/eu/placement-scores/s", fmt.Sprintf(`{"spec":{"scores":{"a":%d}}}`, eu))
		s.mustPut("/v1/clusters/us/placement-scores/s", fmt.Sprintf(`{"spec":{"scores":{"a":%d}}}`, us))
	}
	s.mustPut("/v1/clusters/eu", `{"spec":{}}`)
	s.mustPut("/v1/clusters/us", `{"spec":{}}`)
	scores(50, 0)
	path := "/v1/namespaces/shop/placements/web"
	spec := `{"spec":{"number_of_clusters":1,"strategy":"prioritizers","prioritizer_policy":{"mode":"exact","configurations":[{"type":"addon","resource_name":"s","score_name":"a","weight":1}]}%s}}`
	s.mustPut(path, fmt.Sprintf(spec, ""))
	want := func(when, cluster, held string) {
		t.Helper()
		web := decodeAs[api.Placement](t, s.do(http.MethodGet, path, ""))
		if !slices.Equal(web.Status.Clusters, []string{cluster}) {
			t.Errorf("%s: on %v, want %s", when, web.Status.Clusters, cluster)
		}
		c := api.FindCondition(web.Status.Conditions, api.ConditionMoveHeld)
		if got := c != nil; got != (held != "") || got && c.Message != held {
			t.Errorf("%s: MoveHeld is %+v, want %q", when, c, held)
		}
	}
	want("at first", "eu", "")

	a := s.do(http.MethodPost, "/v1/freeze", `{"reason":"incident","until":"2100-01-01T00:00:00Z","namespaces":["bank","shop"]}`)
	if list := decodeAs[api.List[*api.Freeze]](t, a); a.StatusCode != http.StatusOK || len(list.Items) != 2 || list.Items[1].Metadata.Namespace != "shop" {
		t.Fatalf("freeze: %d %s", a.StatusCode, a.body)
	}
	scores(0, 50)
	want("frozen", "eu", "kept: freeze (incident) until 2100-01-01 00:00 UTC, else us")
	if x := decodeAs[api.Explanation](t, s.do(http.MethodGet, path+"/explanation", "")); x.Kept != "freeze" || x.Held == nil || !slices.Equal(x.Held.Would, []string{"us"}) {
		t.Errorf("explained as %q, %+v", x.Kept, x.Held)
	}
	simulated := s.do(http.MethodPost, "/v1/simulations", `{}`)
	if result := decodeAs[struct{ Changes []api.Change }](t, simulated); len(result.Changes) != 0 {
		t.Errorf("a simulation of nothing moves %s", simulated.body)
	}
	simulated = s.do(http.MethodPost, "/v1/simulations", `{"delete":[{"kind":"freeze","namespace":"shop","name":"freeze"}]}`)
	if result := decodeAs[struct{ Changes []api.Change }](t, simulated); len(result.Changes) != 1 {
		t.Errorf("a simulation without the freeze moves %s", simulated.body)
	}
	info := decodeAs[api.ServerInfo](t, s.do(http.MethodGet, "/v1/server", ""))
	if len(info.Freezes) != 2 || info.Freezes[0].Namespace != "bank" || info.Freezes[1].Reason != "incident" {
		t.Errorf("the server has the freezes %+v", info.Freezes)
	}
	if list := decodeAs[api.List[*api.Freeze]](t, s.do(http.MethodGet, "/v1/namespaces/shop/freeze", "")); len(list.Items) != 1 {
		t.Errorf("the namespace has the freezes %+v", list.Items)
	}
	a = s.do(http.MethodPost, path+"/reschedule", "")
	if got := decodeAs[api.Placement](t, a).Status; a.StatusCode != 200 || got.ObservedRescheduleRequests != 0 {
		t.Errorf("a reschedule while frozen: %d %+v", a.StatusCode, got)
	}
	want("rescheduled", "eu", "kept: freeze (incident) until 2100-01-01 00:00 UTC, else us")

	s.mustPut(path, fmt.Sprintf(spec, `,"exclude_clusters":["eu"]`))
	want("with another spec", "us", "")
	s.mustPut(path, fmt.Sprintf(spec, ""))
	scores(50, 0)
	want("with scores changed again", "us", "kept: freeze (incident) until 2100-01-01 00:00 UTC, else eu")

	if a := s.do(http.MethodDelete, "/v1/freeze?namespaces=shop", ""); a.StatusCode != http.StatusNoContent {
		t.Errorf("thaw: %d %s", a.StatusCode, a.body)
	}
	want("thawed", "eu", "")
	for _, again := range []string{"/v1/freeze?namespaces=shop", "/v1/freeze"} { // there is none
		if a := s.do(http.MethodDelete, again, ""); a.StatusCode != http.StatusNoContent {
			t.Errorf("thaw %s: %d %s", again, a.StatusCode, a.body)
		}
	}
}

// TestFreezeRejects checks what a freeze must have.
func TestFreezeRejects(t *testing.T) {
	s := startServer(t)
	for name, test := range map[string]struct{ body, field string }{
		"no reason":         {`{}`, "reason"},
		"an empty name":     {`{"reason":"x","namespaces":["shop",""]}`, "namespaces[1]"},
		"not a name":        {`{"reason":"x","namespaces":["Shop"]}`, "namespaces[0]"},
		"a name twice":      {`{"reason":"x","namespaces":["shop","bank","shop"]}`, "namespaces[2]"},
		"too many":          {`{"reason":"x","namespaces":["a"` + strings.Repeat(`,"a"`, 100) + `]}`, "namespaces"},
		"control character": {`{"reason":"a\u0007b"}`, "reason"},
		"not a time":        {`{"reason":"x","until":"tomorrow"}`, "until"},
		"over":              {`{"reason":"x","until":"2020-01-01T00:00:00Z"}`, "until"},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.do(http.MethodPost, "/v1/freeze", test.body)
			problem := a.problem(t)
			if a.StatusCode != http.StatusUnprocessableEntity || len(problem.Errors) == 0 || problem.Errors[0].Field != test.field {
				t.Errorf("got %d %s, want 422 for %s", a.StatusCode, a.body, test.field)
			}
		})
	}
	if a := s.do(http.MethodDelete, "/v1/freeze?namespaces=shop,", ""); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("thaw of an empty name: %d %s", a.StatusCode, a.body)
	}
}
