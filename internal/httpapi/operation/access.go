package operation

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// AccessExtension is the field of an operation in the OpenAPI document.
const AccessExtension = "x-access"

// Declare is an operation that says what access it is.
func Declare(access auth.Access, op huma.Operation) huma.Operation {
	op.Extensions = map[string]any{AccessExtension: string(access)}
	return op
}

// mayAsk is asked before an operation begins: one that does not say what access it is
// is for nobody.
func mayAsk(ctx context.Context, op *huma.Operation) error {
	if _, declared := op.Extensions[AccessExtension]; !declared {
		return auth.Of(ctx).Forbidden("ask for what nobody has said who may")
	}
	return nil
}
