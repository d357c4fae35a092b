package httpapi

import (
	"cmp"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// maxDecisionGroups is the number of groups in a response.
const maxDecisionGroups = 500

// decisionGroups counts decisions by what they have in common.
type decisionGroups struct {
	// of calls count with each group of a decision; nil: nothing is counted.
	of   func(o api.Object, count func(value string))
	find map[string]*api.DecisionGroupCount
}

// newDecisionGroups returns the groups that a request asks for.
func newDecisionGroups(by string) (*decisionGroups, error) {
	g := &decisionGroups{find: map[string]*api.DecisionGroupCount{}}
	key, isLabel := strings.CutPrefix(by, "label:")
	switch {
	case by == "":
	case by == "namespace":
		g.of = func(o api.Object, count func(string)) { count(o.Meta().Namespace) }
	case by == "kind":
		g.of = func(o api.Object, count func(string)) { count(string(o.ObjectKind())) }
	case by == "cluster":
		g.of = func(o api.Object, count func(string)) {
			at, _ := api.WhereIs(o)
			for _, cluster := range at.Clusters {
				count(cluster)
			}
		}
	case isLabel && key != "":
		g.of = func(o api.Object, count func(string)) {
			if value, ok := o.Meta().Labels[key]; ok {
				count(value)
			}
		}
	default:
		return nil, problem.Invalid("count_by", `%q is not what decisions can be counted by: write namespace, kind, cluster or label:KEY`, by)
	}
	return g, nil
}

func (g *decisionGroups) add(object api.Object, satisfied bool) {
	if g.of == nil {
		return
	}
	g.of(object, func(value string) {
		count := g.find[value]
		if count == nil {
			count = &api.DecisionGroupCount{Value: value}
			g.find[value] = count
		}
		count.Total++
		if !satisfied {
			count.Unsatisfied++
		}
	})
}

// counts returns the largest groups, largest first, and how many others there are.
func (g *decisionGroups) counts() (groups []api.DecisionGroupCount, others int) {
	for _, count := range g.find {
		groups = append(groups, *count)
	}
	slices.SortFunc(groups, func(a, b api.DecisionGroupCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Value, b.Value))
	})
	shown := min(len(groups), maxDecisionGroups)
	return groups[:shown], len(groups) - shown
}
