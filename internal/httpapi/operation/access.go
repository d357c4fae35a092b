package operation

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// AccessExtension is the field for the access of an operation in the OpenAPI document.
const AccessExtension = "x-access"

// Declare declares the access of an operation.
func Declare(access auth.Access, op huma.Operation) huma.Operation {
	op.Extensions = map[string]any{AccessExtension: string(access)}
	return op
}

// mayAsk checks the access to an operation before it begins: without a declaration, nobody has
// access.
func mayAsk(ctx context.Context, op *huma.Operation) error {
	if _, declared := op.Extensions[AccessExtension]; !declared {
		return auth.Of(ctx).Forbidden("call an operation that declares no access")
	}
	return nil
}
