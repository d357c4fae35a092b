package terraform

import (
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// attributePath returns the attribute for a field of the API: spec.metrics[0].weight is
// metrics[0].weight, metadata.labels["a"] is labels["a"]. If the schema has no such attribute, the
// path ends at the deepest existing one; ok is false if there is none. For elements of sets see
// atElement.
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
			p, t = p.AtMapKey(name), t.(tftypes.Map).ElementType //nolint:forcetypeassert // checked by Is
		case (t.Is(tftypes.List{}) || t.Is(tftypes.Set{})) && isPosition:
			p, t = atElement(t, p, position), elementTypeOf(t)
		default:
			return p, ok
		}
		ok = true
	}
	return p, ok
}

// atElement returns the path of an element of a list or set. An element of a set is identified by
// its position in the document; use shownPath for users.
func atElement(t tftypes.Type, at path.Path, position int) path.Path {
	if t.Is(tftypes.Set{}) {
		return at.AtSetValue(types.Int64Value(int64(position)))
	}
	return at.AtListIndex(position)
}

// shownPath returns a path as shown to users. Elements of a set have no position and no path in
// Terraform: at ends at the set, and name has [*] instead of the element, as in taints[*].effect.
func shownPath(p path.Path) (at path.Path, name string) {
	at = p
	for i, step := range p.Steps() {
		_, ofSet := step.(path.PathStepElementKeyValue)
		_, isName := step.(path.PathStepAttributeName)
		switch {
		case ofSet:
			if len(at.Steps()) > i {
				at = ancestor(p, i)
			}
			name += "[*]"
		case isName && name != "":
			name += "." + step.String()
		default:
			name += step.String()
		}
	}
	return at, name
}

// ancestor returns the path of the first steps.
func ancestor(p path.Path, steps int) path.Path {
	for len(p.Steps()) > steps {
		p = p.ParentPath()
	}
	return p
}

// Related reports whether one path is equal to or below the other.
func Related(a, b path.Path) bool {
	x, y := a.Steps(), b.Steps()
	for i := range min(len(x), len(y)) {
		if !x[i].Equal(y[i]) {
			return false
		}
	}
	return true
}
