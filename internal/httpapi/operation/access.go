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

// administers is what an operation for administrators does, in huma.Operation.Metadata.
const administers = "administers"

// Administer declares an operation for administrators, who call it to do something: "manage tokens".
func Administer(action string, op huma.Operation) huma.Operation {
	return mark(Declare(auth.AccessAdminister, op), administers, action)
}

// mayAsk checks the access to an operation before it begins: without a declaration, nobody has
// access. What others may do depends on the object, and is checked by the operation.
func mayAsk(ctx context.Context, op *huma.Operation) error {
	if _, declared := op.Extensions[AccessExtension]; !declared {
		return auth.Of(ctx).Forbidden("call an operation that declares no access")
	}
	if action, ok := op.Metadata[administers].(string); ok {
		return auth.Of(ctx).MayAdminister(action)
	}
	return nil
}
