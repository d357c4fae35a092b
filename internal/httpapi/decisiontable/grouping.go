package decisiontable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Grouping is what decisions are counted by.
type Grouping struct{ by, label string }

// ParseGrouping reads namespace, kind, cluster or label:KEY.
func ParseGrouping(text string) (Grouping, error) {
	by, label, isLabel := strings.Cut(text, ":")
	if by == "label" && label != "" || !isLabel && slices.Contains([]string{"namespace", "kind", "cluster"}, by) {
		return Grouping{by, label}, nil
	}
	return Grouping{}, fmt.Errorf("%q is not what decisions can be counted by: write namespace, kind, cluster or label:KEY", text)
}

// Count counts the decisions of a selection by what they have in common. A decision of several clusters counts in each, and one
// without the label in none. The largest groups come first; others is the number of those after the first limit ones.
func (s *Selection) Count(g Grouping, limit int) (groups []api.DecisionGroupCount, others int) {
	t := s.table
	number := func(r *row) int { return int(r.kind) } // negative: in none
	values := func(n int) []string { return []string{string(api.HistoryKinds[n])} }
	switch g.by {
	case "namespace":
		number = func(r *row) int { return int(r.namespace) }
		values = func(n int) []string { return t.namespaces[n : n+1] }
	case "cluster":
		number = func(r *row) int { return int(r.clusters) }
		values = func(n int) []string { return t.clusters[n].chosen }
	case "label":
		number = func(r *row) int {
			of := t.labels[r.labels.from:r.labels.to]
			if i := slices.IndexFunc(of, func(n uint32) bool { return t.knownLabels[n].key == g.label }); i >= 0 {
				return int(of[i])
			}
			return -1
		}
		values = func(n int) []string { return []string{t.knownLabels[n].value} }
	}
	counts := make([]api.DecisionGroupCount, max(len(t.namespaces), len(t.clusters), len(t.knownLabels), len(api.HistoryKinds)))
	for _, at := range s.rows {
		r := &t.rows[at]
		n := number(r)
		if n < 0 {
			continue
		}
		counts[n].Total++
		if r.satisfied == unsatisfied {
			counts[n].Unsatisfied++
		}
	}
	byValue := map[string]*api.DecisionGroupCount{}
	for n, count := range counts {
		if count.Total == 0 {
			continue
		}
		for _, value := range values(n) {
			group := byValue[value]
			if group == nil {
				group = &api.DecisionGroupCount{Value: value}
				byValue[value] = group
			}
			group.Total += count.Total
			group.Unsatisfied += count.Unsatisfied
		}
	}
	for _, group := range byValue {
		groups = append(groups, *group)
	}
	slices.SortFunc(groups, func(a, b api.DecisionGroupCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Value, b.Value))
	})
	shown := min(len(groups), limit)
	return groups[:shown], len(groups) - shown
}
