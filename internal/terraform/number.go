package terraform

import (
	"context"
	"fmt"
	"math"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// WholeNumber is the framework's integer type, except that 1.5 is reported as a user error: the
// framework reports an error in the provider and asks for a bug report.
type WholeNumber struct{ basetypes.Int64Type }

// Equal implements attr.Type. Values are plain integers.
func (t WholeNumber) Equal(o attr.Type) bool {
	_, same := o.(WholeNumber)
	return same || t.Int64Type.Equal(o)
}

// ValueFromTerraform implements attr.Type. A value that is not an integer becomes unknown;
// Validate, which the framework calls next, rejects it.
func (t WholeNumber) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	if !isWhole(in) {
		return types.Int64Unknown(), nil
	}
	return t.Int64Type.ValueFromTerraform(ctx, in)
}

// Validate implements xattr.TypeWithValidate, as the framework's own type does.
func (t WholeNumber) Validate(_ context.Context, in tftypes.Value, at path.Path) diag.Diagnostics {
	var diags diag.Diagnostics
	if !isWhole(in) {
		var number big.Float
		_ = in.As(&number) // checked by isWhole
		// Same text as the server's, so that the two are reported as one.
		message := string(NumberText(&number)) + " is not a whole number of at most 64 bits"
		if near, err := NumberText(&number).Int64(); err == nil {
			message = fmt.Sprintf("the result of a calculation is close to %d, but is not a whole number: round it, such as with floor(... + 0.5)", near)
		}
		diags.AddAttributeError(at, "Invalid "+at.String(), Sentence(at.String()+": "+message))
	}
	return diags
}

// isWhole reports whether a value is an integer within int64, or not a number at all.
func isWhole(v tftypes.Value) bool {
	var number big.Float
	if !v.IsKnown() || v.IsNull() || !v.Type().Is(tftypes.Number) || v.As(&number) != nil {
		return true
	}
	_, accuracy := number.Int64()
	return accuracy == big.Exact
}

// decimalNumber is the framework's float64 type, except that a number out of its range is reported
// as a user error: the framework reports an error in the provider and asks for a bug report.
type decimalNumber struct{ basetypes.Float64Type }

// Equal implements attr.Type. Values are plain float64 values.
func (t decimalNumber) Equal(o attr.Type) bool {
	_, same := o.(decimalNumber)
	return same || t.Float64Type.Equal(o)
}

// ValueFromTerraform implements attr.Type. A number out of range becomes unknown; Validate, which
// the framework calls next, rejects it.
func (t decimalNumber) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	if outOfRange(in) != "" {
		return types.Float64Unknown(), nil
	}
	return t.Float64Type.ValueFromTerraform(ctx, in)
}

// Validate implements xattr.TypeWithValidate, as the framework's own type does.
func (t decimalNumber) Validate(_ context.Context, in tftypes.Value, at path.Path) diag.Diagnostics {
	var diags diag.Diagnostics
	if message := outOfRange(in); message != "" {
		diags.AddAttributeError(at, "Invalid "+at.String(), Sentence(at.String()+": "+message))
	}
	return diags
}

// outOfRange says why a number has no float64, or returns "". The text is that of the server.
func outOfRange(v tftypes.Value) string {
	var number big.Float
	if !v.IsKnown() || v.IsNull() || !v.Type().Is(tftypes.Number) || v.As(&number) != nil {
		return ""
	}
	f, accuracy := number.Float64()
	switch {
	case math.IsInf(f, 0):
		return string(NumberText(&number)) + " is too large a number"
	case f == 0 && accuracy != big.Exact:
		return number.Text('g', 20) + " is too small a number: the nearest one that can be kept is 0"
	}
	return ""
}
