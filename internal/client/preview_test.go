package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

func web() *api.Placement {
	placement := &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}}
	placement.SetDefaults()
	placement.Status.Clusters = []string{"old"}
	return placement
}

func TestPreview(t *testing.T) {
	kept := api.Preview{ID: "p1", Token: "p1", Namespace: "shop", Name: "web", Clusters: []string{"b", "a"}, Satisfied: true}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "POST /v1/previews":
			body, _ := io.ReadAll(r.Body)
			var sent map[string]any
			if err := json.Unmarshal(body, &sent); err != nil || sent["status"] != nil || sent["kind"] != "placement" {
				t.Errorf("unexpected body %s", body)
			}
			answer(w, http.StatusCreated, kept)
		case "GET /v1/previews/p1":
			answer(w, http.StatusOK, kept)
		default:
			problem(w, api.Problem{Status: http.StatusNotFound, Detail: "the preview does not exist or has expired: plan again"})
		}
	})
	made, err := c.Preview(t.Context(), web())
	if err != nil || made.Token != "p1" || strings.Join(made.Clusters, " ") != "b a" || !made.Satisfied {
		t.Errorf("preview %+v, error %v", made, err)
	}
	read, err := c.GetPreview(t.Context(), "p1")
	if err != nil || read.Name != "web" {
		t.Errorf("preview %+v, error %v", read, err)
	}
	if _, err := c.GetPreview(t.Context(), "p2"); !client.IsNotFound(err) {
		t.Errorf("unknown preview: error %v, want not found", err)
	}
	// An ID from a configuration must not change the path of the request.
	for _, id := range []string{"", "..", "../tokens", "a/b"} {
		if _, err := c.GetPreview(t.Context(), id); err == nil {
			t.Errorf("id %q was accepted", id)
		}
	}
}

func TestPutSendsThePreviewToken(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch token := r.Header.Values("Preview-Token"); {
		case len(token) == 0:
			answer(w, http.StatusCreated, web())
		case token[0] == "good":
			answer(w, http.StatusOK, web())
		default:
			problem(w, api.Problem{Status: http.StatusPreconditionFailed, Detail: "the fleet changed since the preview: plan again"})
		}
	})
	for _, token := range []string{"", "good"} {
		if _, err := c.Put(t.Context(), web(), client.PutOptions{PreviewToken: token}); err != nil {
			t.Errorf("token %q: %v", token, err)
		}
	}
	_, err := c.Put(t.Context(), web(), client.PutOptions{PreviewToken: "outdated"})
	if client.StatusOf(err) != http.StatusPreconditionFailed || !strings.Contains(err.Error(), "the fleet changed since the preview: plan again") {
		t.Errorf("%v", err)
	}
}

// The scores of a cluster are addressed under the path of the cluster.
func TestScoresOfAClusterAreAddressedByIt(t *testing.T) {
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	score := &api.PlacementScore{
		Metadata: api.Metadata{Cluster: "c1", Name: "load"},
		Spec:     api.PlacementScoreSpec{Scores: map[string]int64{"cpu": -5}, ValidUntil: &until},
	}
	score.SetDefaults()
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		switch {
		case strings.HasSuffix(r.URL.Path, "/placement-scores"):
			answer(w, http.StatusOK, map[string]any{"items": []any{score}, "resource_version": "1"})
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		default:
			answer(w, http.StatusOK, score)
		}
	})
	stored, err := c.Put(t.Context(), score, client.PutOptions{})
	if err != nil || api.KeyOf(stored) != api.KeyOf(score) || !api.SameIntent(stored, score) {
		t.Errorf("stored %+v, error %v", stored, err)
	}
	if _, err := c.Get(t.Context(), api.KeyOf(score)); err != nil {
		t.Error(err)
	}
	for _, cluster := range []string{"c1", ""} {
		for object, err := range c.List(t.Context(), api.KindPlacementScore, client.ListOptions{Namespace: cluster}) {
			if err != nil || api.KeyOf(object) != api.KeyOf(score) {
				t.Errorf("got %+v, error %v", object, err)
			}
		}
	}
	if err := c.Delete(t.Context(), api.KeyOf(score)); err != nil {
		t.Error(err)
	}
	want := "PUT /v1/clusters/c1/placement-scores/load GET /v1/clusters/c1/placement-scores/load " +
		"GET /v1/clusters/c1/placement-scores GET /v1/placement-scores DELETE /v1/clusters/c1/placement-scores/load"
	if got := strings.Join(asked, " "); got != want {
		t.Errorf("requests\n%s\nwant\n%s", got, want)
	}
}
