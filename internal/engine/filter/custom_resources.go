package filter

import (
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// customResources requires every custom resource definition that the placement names, by exact
// name.
type customResources struct{}

func (customResources) Name() string { return "custom_resources" }

func (customResources) Compile(s *Spec, made []Check) ([]Check, error) {
	for _, name := range s.Placement.CustomResources {
		made = append(made, &hasCustomResource{resource: name})
	}
	return made, nil
}

// hasCustomResource requires one custom resource definition.
type hasCustomResource struct {
	customResources
	resource string
}

func (c *hasCustomResource) Key(k key.Writer)       { k.Text("resource", c.resource) }
func (c *hasCustomResource) Reads() columns.Aspects { return columns.CustomResources }
func (c *hasCustomResource) On() string             { return c.resource }

func (c *hasCustomResource) Rejection(n int) string {
	return fmt.Sprintf("%s custom resource %q", Plural(n, "lacks", "lack"), c.resource)
}

func (c *hasCustomResource) Apply(l *Evaluation, keep columns.Bitmap) {
	l.Fleet.CustomResources()[c.resource].AndInto(keep, l.scratch)
}

func (c *hasCustomResource) Admits(l *Evaluation, row int, _ bool) bool {
	return slices.Contains(l.Fleet.Cluster(row).Spec.CustomResources, c.resource)
}

func (c *hasCustomResource) Reason(*Evaluation, int) string {
	return fmt.Sprintf("lacks custom resource %q", c.resource)
}
