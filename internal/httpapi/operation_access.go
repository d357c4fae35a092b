package httpapi

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// access is what an operation does to objects, and so whose roles may ask for it.
// Each operation declares it, and the OpenAPI document shows it. Whether a role may,
// and for which namespaces, is asked in the operation, once it is known what the
// request is about; a test asks every operation as everybody.
type access string

const (
	// accessRead is for administrators, editors and viewers.
	accessRead access = "read"
	// accessReadReports is for those who read, and for agents of the cluster.
	accessReadReports access = "read-reports"
	// accessWrite is for administrators and editors.
	accessWrite access = "write"
	// accessReport is for administrators, editors and agents.
	accessReport access = "report"
	// accessAdminister is for administrators.
	accessAdminister access = "administer"
)

// accessExtension is the field of an operation in the OpenAPI document.
const accessExtension = "x-access"

// declares is an operation that says what access it is.
func (a access) declares(op huma.Operation) huma.Operation {
	op.Extensions = map[string]any{accessExtension: string(a)}
	return op
}

// mayAsk is asked before an operation begins: one that does not say what access it is
// is for nobody.
func mayAsk(ctx context.Context, op *huma.Operation) error {
	if _, declared := op.Extensions[accessExtension]; !declared {
		return auth.Of(ctx).Forbidden("ask for what nobody has said who may")
	}
	return nil
}
