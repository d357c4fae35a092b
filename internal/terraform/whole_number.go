package terraform

import (
	"context"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// WholeNumber is the framework's type of integers, except that 1.5 is the user's
// mistake: the framework itself calls it an error in the provider and asks for a
// report.
type WholeNumber struct{ basetypes.Int64Type }

// Equal implements attr.Type. Values of the type are plain integers.
func (t WholeNumber) Equal(o attr.Type) bool {
	_, same := o.(WholeNumber)
	return same || t.Int64Type.Equal(o)
}

// ValueFromTerraform implements attr.Type. What is no integer is unknown until
// Validate, which the framework calls next, refuses it.
func (t WholeNumber) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	if !isWhole(in) {
		return types.Int64Unknown(), nil
	}
	return t.Int64Type.ValueFromTerraform(ctx, in)
}

// Validate implements xattr.TypeWithValidate, which the framework's own type
// does, too.
func (t WholeNumber) Validate(_ context.Context, in tftypes.Value, at path.Path) diag.Diagnostics {
	var diags diag.Diagnostics
	if !isWhole(in) {
		var number big.Float
		_ = in.As(&number) // isWhole says that it is one
		// The words of the server, so that the two are reported as one.
		message := string(NumberText(&number)) + " is not a whole number of at most 64 bits"
		diags.AddAttributeError(at, "Invalid "+at.String(), Sentence(at.String()+": "+message))
	}
	return diags
}

// isWhole reports a value that is not a number, or one that an int64 holds.
func isWhole(v tftypes.Value) bool {
	var number big.Float
	if !v.IsKnown() || v.IsNull() || !v.Type().Is(tftypes.Number) || v.As(&number) != nil {
		return true
	}
	_, accuracy := number.Int64()
	return accuracy == big.Exact
}
