package terraform

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/defaults"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// defaultOf returns the default of an attribute; ok is false if it has none. It fails for a default
// of an unknown type, which makes the schema invalid.
func defaultOf(ctx context.Context, attribute schema.Attribute) (value tftypes.Value, ok bool, err error) {
	var planned attr.Value
	switch a := attribute.(type) {
	case schema.BoolAttribute:
		if a.Default != nil {
			var resp defaults.BoolResponse
			a.Default.DefaultBool(ctx, defaults.BoolRequest{}, &resp)
			planned = resp.PlanValue
		}
	case schema.StringAttribute:
		if a.Default != nil {
			var resp defaults.StringResponse
			a.Default.DefaultString(ctx, defaults.StringRequest{}, &resp)
			planned = resp.PlanValue
		}
	case schema.Int64Attribute:
		if a.Default != nil {
			var resp defaults.Int64Response
			a.Default.DefaultInt64(ctx, defaults.Int64Request{}, &resp)
			planned = resp.PlanValue
		}
	case schema.Float64Attribute:
		if a.Default != nil {
			var resp defaults.Float64Response
			a.Default.DefaultFloat64(ctx, defaults.Float64Request{}, &resp)
			planned = resp.PlanValue
		}
	case schema.ListAttribute:
		if a.Default != nil {
			var resp defaults.ListResponse
			a.Default.DefaultList(ctx, defaults.ListRequest{}, &resp)
			planned = resp.PlanValue
		}
	case schema.SingleNestedAttribute:
		if a.Default != nil {
			var resp defaults.ObjectResponse
			a.Default.DefaultObject(ctx, defaults.ObjectRequest{}, &resp)
			planned = resp.PlanValue
		}
	case schema.MapAttribute:
		if a.Default != nil {
			return value, false, errUnknownDefault
		}
	case schema.SetAttribute:
		if a.Default != nil {
			return value, false, errUnknownDefault
		}
	case schema.ListNestedAttribute:
		if a.Default != nil {
			return value, false, errUnknownDefault
		}
	case schema.SetNestedAttribute:
		if a.Default != nil {
			return value, false, errUnknownDefault
		}
	case unsupported:
		return value, false, a.why
	default:
		return value, false, fmt.Errorf("a resource cannot have an attribute of type %T", attribute)
	}
	if planned == nil {
		return tftypes.Value{}, false, nil
	}
	value, err = planned.ToTerraformValue(ctx)
	return value, true, err
}

var errUnknownDefault = errors.New("collections other than lists have no default")

// Decimal returns a number as Terraform parses its text. A float64 converted directly would differ
// from the same text in a configuration or state file (0.1 has no exact float64), and there would
// always be a diff.
func Decimal(ctx context.Context, f float64) types.Float64 {
	text := NumberText(big.NewFloat(f))
	number, _, err := big.ParseFloat(text.String(), 10, numberPrecision, big.ToNearestEven)
	if err != nil {
		return types.Float64Value(f)
	}
	value, err := types.Float64Type.ValueFromTerraform(ctx, tftypes.NewValue(tftypes.Number, number))
	if exact, ok := value.(types.Float64); err == nil && ok {
		return exact
	}
	return types.Float64Value(f)
}

// staticDecimal returns the default of a number attribute.
func staticDecimal(value float64) defaults.Float64 { return decimalDefault{value} }

type decimalDefault struct{ value float64 }

// Description implements defaults.Float64.
func (d decimalDefault) Description(context.Context) string {
	return "value defaults to " + string(NumberText(big.NewFloat(d.value)))
}

// MarkdownDescription implements defaults.Float64.
func (d decimalDefault) MarkdownDescription(context.Context) string {
	return "value defaults to `" + string(NumberText(big.NewFloat(d.value))) + "`"
}

// DefaultFloat64 implements defaults.Float64.
func (d decimalDefault) DefaultFloat64(ctx context.Context, _ defaults.Float64Request, resp *defaults.Float64Response) {
	resp.PlanValue = Decimal(ctx, d.value)
}
