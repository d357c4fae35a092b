package client_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// Each operation on spot nodes has its own path.
func TestSpotOperations(t *testing.T) {
	var asked []string
	deadline := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, strings.TrimSpace(r.Method+" "+r.URL.EscapedPath()+" "+string(body)))
		switch r.Method {
		case http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case http.MethodPost:
			answer(w, http.StatusOK, api.Interruption{Deadline: &deadline})
		default:
			answer(w, http.StatusOK, map[string]any{"items": []api.DistributedWorkload{{Kind: "Deployment", Namespace: "shop", Name: "web", ClusterDistribution: api.ClusterDistribution{Replicas: 3}}}})
		}
	})
	if got, err := c.Interrupt(t.Context(), "eu-1", "node-1.internal", deadline); err != nil || !got.Equal(deadline) {
		t.Errorf("Interrupt() = %s, %v", got, err)
	}
	if got, err := c.Interrupt(t.Context(), "eu-1", "a/b", time.Time{}); err != nil || !got.Equal(deadline) {
		t.Errorf("Interrupt() = %s, %v", got, err)
	}
	if err := c.WithdrawInterruption(t.Context(), "eu-1", "node-1.internal"); err != nil {
		t.Error(err)
	}
	if got, err := c.ListDistributions(t.Context(), "eu-1"); err != nil || len(got) != 1 || got[0].Name != "web" || got[0].Replicas != 3 {
		t.Errorf("ListDistributions() = %+v, %v", got, err)
	}
	want := []string{
		`POST /v1/clusters/eu-1/nodes/node-1.internal/interruption {"deadline":"2026-03-01T12:00:00Z"}`,
		"POST /v1/clusters/eu-1/nodes/a%2Fb/interruption {}",
		"DELETE /v1/clusters/eu-1/nodes/node-1.internal/interruption",
		"GET /v1/clusters/eu-1/distributions",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("requests\n%s\nwant\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
}

// TestSpotProblems checks that the client reports why the server rejected a request.
func TestSpotProblems(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "silent") {
			answer(w, http.StatusOK, api.Interruption{})
			return
		}
		answer(w, http.StatusConflict, api.Problem{Status: http.StatusConflict, Title: "Conflict", Detail: "spot is not enabled"})
	})
	_, announcing := c.Interrupt(t.Context(), "eu-1", "n", time.Time{})
	_, listing := c.ListDistributions(t.Context(), "eu-1")
	for what, err := range map[string]error{"announcing": announcing, "listing": listing, "withdrawing": c.WithdrawInterruption(t.Context(), "eu-1", "n")} {
		if client.StatusOf(err) != http.StatusConflict || !strings.Contains(err.Error(), "spot is not enabled") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if at, err := c.Interrupt(t.Context(), "eu-1", "silent", time.Time{}); err == nil {
		t.Errorf("Interrupt() = %s without a deadline in the answer, want an error", at)
	}
}
