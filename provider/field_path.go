package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// attributePath is the attribute a field of the API's document is shown as:
// spec.metrics[0].weight is metrics[0].weight, metadata.labels["a"] is
// labels["a"]. Where the schema has no such attribute the path ends at the
// deepest one it has; ok is false when it has none at all.
func attributePath(t tftypes.Type, field string) (p path.Path, ok bool) {
	steps := api.SplitField(field)
	if len(steps) > 0 && (steps[0] == "spec" || steps[0] == "metadata") {
		steps = steps[1:]
	}
	p = path.Empty()
	for _, step := range steps {
		name, isName := step.(string)
		position, isPosition := step.(int)
		switch {
		case t.Is(tftypes.Object{}) && isName:
			inner, known := t.(tftypes.Object).AttributeTypes[name]
			if !known {
				return p, ok
			}
			p, t = p.AtName(name), inner
		case t.Is(tftypes.Map{}) && isName:
			p, t = p.AtMapKey(name), t.(tftypes.Map).ElementType //nolint:forcetypeassert // Is says so
		case t.Is(tftypes.List{}) && isPosition:
			p, t = p.AtListIndex(position), t.(tftypes.List).ElementType //nolint:forcetypeassert // Is says so
		default:
			return p, ok
		}
		ok = true
	}
	return p, ok
}

// related reports that one path lies on or under the other.
func related(a, b path.Path) bool {
	x, y := a.Steps(), b.Steps()
	for i := range min(len(x), len(y)) {
		if !x[i].Equal(y[i]) {
			return false
		}
	}
	return true
}
