package filter

import (
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// apiResources requires that a cluster supports the workload's type. It admits clusters that list
// no types, because theirs are unknown, and clusters that already run the workload.
type apiResources struct{}

func (apiResources) Name() string { return "api_resources" }

func (apiResources) Compile(s *Spec, made []Check) ([]Check, error) {
	if s.Workload == nil {
		return made, nil
	}
	return append(made, &takesResource{kind: s.Workload.APIResource()}), nil
}

// takesResource requires an API resource type: "apps/v1/Deployment".
type takesResource struct {
	apiResources
	kind string
}

func (c *takesResource) Key(k key.Writer)       { k.Text("kind", c.kind) }
func (c *takesResource) Reads() columns.Aspects { return columns.APIResources }
func (c *takesResource) On() string             { return c.kind }

func (c *takesResource) Rejection(n int) string {
	return fmt.Sprintf("%s take %s", Plural(n, "does not", "do not"), c.kind)
}

func (c *takesResource) Apply(l *Evaluation, keep columns.Bitmap) {
	known := l.Fleet.APIResources()[""]
	if known.Len() == 0 {
		return
	}
	lacking := l.scratch
	clear(lacking)
	known.OrInto(lacking)
	l.Fleet.APIResources()[c.kind].AndNotInto(lacking)
	keep.AndNot(lacking)
}

func (c *takesResource) Admits(l *Evaluation, row int, current bool) bool {
	listed := l.Fleet.Cluster(row).Spec.APIResources
	return current || len(listed) == 0 || slices.Contains(listed, c.kind)
}

func (c *takesResource) Reason(*Evaluation, int) string {
	return fmt.Sprintf("does not list %s among its api_resources", c.kind)
}
