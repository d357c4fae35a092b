package terraform

import (
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// same reports whether two values of one type are equal. tftypes.Value.Equal does the same, but
// builds the path of every part.
func same(a, b tftypes.Value) bool {
	if a.IsKnown() != b.IsKnown() || a.IsNull() != b.IsNull() {
		return false
	}
	if !a.IsKnown() || a.IsNull() {
		return true
	}
	switch t := a.Type(); {
	case t.Is(tftypes.String):
		return TextOf(a) == TextOf(b)
	case t.Is(tftypes.Bool):
		var x, y bool
		return a.As(&x) == nil && b.As(&y) == nil && x == y
	case t.Is(tftypes.Number):
		var x, y big.Float
		return a.As(&x) == nil && b.As(&y) == nil && x.Cmp(&y) == 0
	case t.Is(tftypes.Object{}), t.Is(tftypes.Map{}):
		var x, y map[string]tftypes.Value
		return a.As(&x) == nil && b.As(&y) == nil && sameAttributes(x, y)
	case t.Is(tftypes.List{}):
		x, y := ElementsOf(a), ElementsOf(b)
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

// sameAttributes reports whether two objects or maps are equal.
func sameAttributes(a, b map[string]tftypes.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || !same(x, y) {
			return false
		}
	}
	return true
}
