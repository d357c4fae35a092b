package filter

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// ownership hides a cluster with owner namespaces from placements in other namespaces.
type ownership struct{}

func (ownership) Name() string { return api.OwnershipFilter }

func (ownership) Compile(s *Spec, made []Check) ([]Check, error) {
	return append(made, &visibleTo{namespace: s.Namespace}), nil
}

// visibleTo requires that a cluster is owned by a namespace or has no owner.
type visibleTo struct {
	ownership
	namespace string
}

func (c *visibleTo) Key(k key.Writer)       { k.Text("namespace", c.namespace) }
func (c *visibleTo) Reads() columns.Aspects { return columns.Owners }
func (c *visibleTo) On() string             { return c.namespace }

func (c *visibleTo) Rejection(n int) string {
	return Plural(n, "belongs to another namespace", "belong to another namespace")
}

func (c *visibleTo) Apply(l *Evaluation, keep columns.Bitmap) {
	visible := l.scratch
	clear(visible)
	l.Fleet.Owners()[columns.Everybody].OrInto(visible)
	if c.namespace != columns.Everybody {
		l.Fleet.Owners()[c.namespace].OrInto(visible)
	}
	keep.And(visible)
}

func (c *visibleTo) Admits(l *Evaluation, row int, _ bool) bool {
	return l.Fleet.Cluster(row).VisibleTo(c.namespace)
}

func (c *visibleTo) Reason(l *Evaluation, row int) string {
	return belongsTo(l.Fleet.Cluster(row))
}

func belongsTo(c *api.Cluster) string {
	owners := c.Owners()
	if len(owners) == 1 {
		return fmt.Sprintf("belongs to namespace %q", owners[0])
	}
	quoted := make([]string, len(owners))
	for i, namespace := range owners {
		quoted[i] = fmt.Sprintf("%q", namespace)
	}
	return "belongs to the namespaces " + strings.Join(quoted, ", ")
}
