package httpapi

import (
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// A freeze keeps a decision where it is until it is thawed.
func TestFreezeAndThaw(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	s.mustPut("/v1/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"a":0.9,"b":0.5}}}}`)
	for _, name := range []string{"a", "b"} {
		s.mustPut("/v1/metrics/"+name, `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"table","metric":"`+name+`"}}}`)
		s.mustPut("/v1/clusters/"+name, `{"spec":{"metrics":[{"name":"`+name+`"}]}}`)
	}
	path := "/v1/namespaces/shop/placements/web"
	s.mustPut(path, `{"spec":{"number_of_clusters":1,"reschedule_after":"0s","metrics":{"stickiness":0}}}`)
	on := func(cluster, held string) {
		t.Helper()
		p := decodeAs[api.Placement](t, s.do(http.MethodGet, path, ""))
		c := api.FindCondition(p.Status.Conditions, api.ConditionMoveHeld)
		if len(p.Status.Clusters) != 1 || p.Status.Clusters[0] != cluster || (c != nil) != (held != "") || c != nil && c.Reason != held {
			t.Fatalf("on %v with %+v, want %s and %q", p.Status.Clusters, c, cluster, held)
		}
	}
	on("a", "")
	freeze := s.do(http.MethodPost, "/v1/freeze", `{"reason":"incident 42","namespace":"shop"}`)
	if w := decodeAs[api.MoveWindow](t, freeze); freeze.StatusCode != http.StatusCreated || w.Metadata.Name != "freeze" || w.Metadata.Namespace != "shop" || w.Spec.Description != "incident 42" {
		t.Fatalf("%d: %s", freeze.StatusCode, freeze.body)
	}
	s.mustPut("/v1/metrics-providers/table", `{"spec":{"type":"static","static":{"metrics":{"a":0.1,"b":0.5}}}}`)
	on("a", api.ReasonHeldByWindow)
	if x := decodeAs[api.Explanation](t, s.do(http.MethodGet, path+"/explanation", "")); x.Kept != "move_window" {
		t.Errorf("kept by %q", x.Kept)
	}
	simulated := decodeAs[struct{ Changes []api.Change }](t, s.do(http.MethodPost, "/v1/simulations", `{"delete":[{"kind":"move_window","namespace":"shop","name":"freeze"}]}`))
	if len(simulated.Changes) != 1 {
		t.Errorf("a simulation without the freeze: %+v", simulated.Changes)
	}
	if a := s.do(http.MethodDelete, "/v1/freeze?namespace=shop", ""); a.StatusCode != http.StatusNoContent {
		t.Fatalf("%d: %s", a.StatusCode, a.body)
	}
	on("b", "")
	if a := s.do(http.MethodDelete, "/v1/freeze?namespace=shop", ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("thawed twice: %d", a.StatusCode)
	}
}

func TestFreezesThatAreRefused(t *testing.T) {
	s := startServer(t)
	for body, field := range map[string]string{
		`{}`: "reason", `{"reason":"x","until":"2001-01-01T00:00:00Z"}`: "until", `{"reason":"x","namespace":"No"}`: "namespace", `{"reason":"\u001b[31m"}`: "reason", `{"reason":"x","color":"red"}`: "color",
	} {
		a := s.do(http.MethodPost, "/v1/freeze", body)
		if a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d, want 422: %s", body, a.StatusCode, a.body)
			continue
		}
		if p := a.problem(t); len(p.Errors) == 0 || p.Errors[0].Field != field {
			t.Errorf("%s: %+v, want the field %s", body, p.Errors, field)
		}
	}
	first := s.do(http.MethodPost, "/v1/freeze", `{"reason":"x","until":"2199-01-01T00:00:00Z"}`)
	again := s.do(http.MethodPost, "/v1/freeze", `{"reason":"y","until":"2199-01-01T00:00:00Z"}`)
	if w := decodeAs[api.MoveWindow](t, again); first.StatusCode != http.StatusCreated || again.StatusCode != http.StatusOK || w.Metadata.Generation != 2 {
		t.Errorf("%d, then %d: %s", first.StatusCode, again.StatusCode, again.body)
	}
	s.token = s.addToken(auth.RoleEditor, "shop")
	for body, want := range map[string]int{`{"reason":"x"}`: http.StatusForbidden, `{"reason":"x","namespace":"ads"}`: http.StatusForbidden, `{"reason":"x","namespace":"shop"}`: http.StatusCreated} {
		if a := s.do(http.MethodPost, "/v1/freeze", body); a.StatusCode != want {
			t.Errorf("%s of an editor of shop: %d, want %d", body, a.StatusCode, want)
		}
	}
	if a := s.do(http.MethodDelete, "/v1/freeze", ""); a.StatusCode != http.StatusForbidden {
		t.Errorf("the freeze of all ended by an editor of shop: %d", a.StatusCode)
	}
}
