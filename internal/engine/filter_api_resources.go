package engine

import (
	"fmt"
	"slices"
)

// apiResources demands that a cluster takes resources of the workload's type. A
// cluster that lists none is not known, and passes; so does one that has the
// workload already.
type apiResources struct{}

func (apiResources) Name() string { return "api_resources" }

func (apiResources) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.Workload == nil {
		return made, nil
	}
	return append(made, &takesResource{kind: s.Workload.APIResource()}), nil
}

// takesResource asks for a type of API resource: "apps/v1/Deployment".
type takesResource struct {
	apiResources
	kind string
}

func (c *takesResource) Key(k *Key)     { k.Text("kind", c.kind) }
func (c *takesResource) Reads() Aspects { return APIResources }
func (c *takesResource) On() string     { return c.kind }

func (c *takesResource) Blame(n int) string {
	return fmt.Sprintf("%s take %s", plural(n, "does not", "do not"), c.kind)
}

func (c *takesResource) Apply(l *Look, keep Bitmap) {
	known := l.fleet.apiResources[""]
	if known.len() == 0 {
		return
	}
	lacking := l.scratch
	clear(lacking)
	known.orInto(lacking)
	l.fleet.apiResources[c.kind].andNotInto(lacking)
	keep.andNot(lacking)
}

func (c *takesResource) Admits(l *Look, row int, current bool) bool {
	listed := l.fleet.rows[row].cluster.Spec.APIResources
	return current || len(listed) == 0 || slices.Contains(listed, c.kind)
}

func (c *takesResource) Reason(*Look, int) string {
	return fmt.Sprintf("does not list %s among its api_resources", c.kind)
}
