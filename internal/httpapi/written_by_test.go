package httpapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// TestObjectsSayWhoWroteThem writes an object with several tokens.
func TestObjectsSayWhoWroteThem(t *testing.T) {
	s := startServer(t, authenticated)
	type writer struct{ text, id string }
	add := func(role auth.Role) writer {
		text, token, revision, err := auth.CreateToken(t.Context(), s.store, auth.TokenRequest{Role: role}, s.sessions.Roles(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.fleet.WaitRevision(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
		return writer{text, token.ID}
	}
	alice, bob := add(auth.RoleAdmin), add(auth.RoleEditor)
	const path = "/v1/namespaces/shop/placements/web"
	for _, step := range []struct {
		name           string
		by             writer
		method, at     string
		body           string
		token, request string // who the object says then
	}{
		{"created", alice, http.MethodPut, path, `{"spec":{}}`, alice.id, "created"},
		{"changed", bob, http.MethodPut, path, `{"spec":{"number_of_clusters":2}}`, bob.id, "changed"},
		{"the same", alice, http.MethodPut, path, `{"spec":{"number_of_clusters":2}}`, bob.id, "changed"},
		{"somebody else", bob, http.MethodPut, path, `{"metadata":{"name":"web","written_by":{"token":"mallory"}},"spec":{}}`, bob.id, "somebody-else"},
		{"rescheduled", alice, http.MethodPost, path + "/reschedule", "", alice.id, "rescheduled"},
	} {
		s.token = step.by.text
		a := s.do(step.method, step.at, step.body, "X-Request-Id", step.request)
		if a.StatusCode >= 300 {
			t.Fatalf("%s: %d %s", step.name, a.StatusCode, a.body)
		}
		got := decodeAs[api.Placement](t, s.do(http.MethodGet, path, "")).Metadata.WrittenBy
		if got == nil || *got != (api.Actor{Token: step.token, RequestID: step.request}) {
			t.Errorf("%s: written by %+v, want %s in %s", step.name, got, step.token, step.request)
		}
	}
}
