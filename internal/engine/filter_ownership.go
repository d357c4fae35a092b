package engine

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ownership hides a cluster with owner namespaces from the placements of every
// other namespace.
type ownership struct{}

func (ownership) Name() string              { return api.OwnershipFilter }
func (ownership) Grounds(*Query) int        { return 1 }
func (ownership) On(q *Query, _ int) string { return q.namespace }
func (ownership) Blame(_ *Query, _, n int) string {
	return plural(n, "belongs to another namespace", "belong to another namespace")
}

func (ownership) Apply(p *Pass, _ int, keep Bitmap) {
	visible := p.scratch
	clear(visible)
	p.fleet.owners[everybody].orInto(visible)
	if p.query.namespace != everybody {
		p.fleet.owners[p.query.namespace].orInto(visible)
	}
	keep.and(visible)
}

func (ownership) Admits(p *Pass, _, row int, _ bool) bool {
	return p.fleet.rows[row].cluster.VisibleTo(p.query.namespace)
}

func (ownership) Reason(p *Pass, _, row int) string {
	return belongsTo(p.fleet.rows[row].cluster)
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

// everybody stands for the owners of a cluster that has none.
const everybody = ""

// owners are the sets that a cluster is in as one of its owners'.
func owners(c *api.Cluster) []string {
	if list := c.Owners(); len(list) > 0 {
		return list
	}
	return []string{everybody}
}
