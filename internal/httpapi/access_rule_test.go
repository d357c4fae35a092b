package httpapi

import (
	"context"
	"net/http"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

// TestOperationWithoutAccessRuleIsForbidden checks that an operation without an access rule is forbidden, even for
// administrators.
func TestOperationWithoutAccessRuleIsForbidden(t *testing.T) {
	s := startServer(t, authenticated)
	s.token = s.addToken(auth.RoleAdmin)
	handle := func(context.Context, *struct{}) (*struct{}, error) { return nil, nil }
	operation.Register(s.api, huma.Operation{OperationID: "undeclared", Method: http.MethodGet, Path: "/v1/undeclared"}, handle)
	operation.Register(s.api, operation.Declare(auth.AccessRead, huma.Operation{OperationID: "declared", Method: http.MethodGet, Path: "/v1/declared"}), handle)
	s.expect(http.StatusForbidden, http.MethodGet, "/v1/undeclared", "")
	s.expect(http.StatusNoContent, http.MethodGet, "/v1/declared", "")
}
