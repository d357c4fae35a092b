package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// DecisionStrategy divides the chosen clusters into groups, such as the steps of a rollout.
type DecisionStrategy struct {
	ClustersPerDecisionGroup GroupSize       `json:"clusters_per_decision_group,omitempty" default:"100%" doc:"Largest number of clusters in a group, or a percentage of the chosen clusters such as '25%', rounded up."`
	DecisionGroups           []DecisionGroup `json:"decision_groups,omitempty" doc:"Named groups, in order: a cluster belongs to the first group that it matches. The remaining clusters form groups without a name."`
}

// DecisionGroup is a named group of chosen clusters.
type DecisionGroup struct {
	Name          string         `json:"name" doc:"Name of the group."`
	LabelSelector *LabelSelector `json:"label_selector,omitempty" doc:"Selects the clusters of the group by their labels."`
}

// ChosenGroup is one group of a decision's clusters.
type ChosenGroup struct {
	Index        int64    `json:"index" doc:"Position of the group, counted from 0."`
	Name         string   `json:"name" doc:"Name of the group. Empty for clusters that match no named group."`
	Clusters     []string `json:"clusters" ref:"cluster,optional" doc:"Clusters of the group, best first."`
	ClusterCount int64    `json:"cluster_count" doc:"Number of clusters in the group."`
}

// GroupSize is a number of clusters or a percentage of them, as text: "10" or "25%". In JSON, a
// number is accepted too.
type GroupSize string

var (
	groupSizeShape = regexp.MustCompile(`^((100|[1-9][0-9]?)%|[1-9][0-9]*)$`)
	groupNameShape = regexp.MustCompile(`^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$`)
)

// UnmarshalJSON implements json.Unmarshaler.
func (g *GroupSize) UnmarshalJSON(data []byte) error {
	if text, ok, err := numberAsText(data); err != nil {
		return fmt.Errorf("read the size of a group: %w", err)
	} else if ok {
		*g = GroupSize(text)
	}
	return nil
}

// numberAsText reads a JSON string, or a number as its text; ok is false for null, which counts as
// absent.
func numberAsText(data []byte) (text string, ok bool, err error) {
	data = bytes.TrimSpace(data)
	if string(data) == "null" {
		return "", false, nil
	}
	if len(data) > 0 && data[0] != '"' {
		return string(data), true, nil
	}
	err = json.Unmarshal(data, &text)
	return text, err == nil, err //nolint:wrapcheck // the caller says of what
}

// Of returns the size of a group if total clusters are chosen: at least 1 and at most total.
// Example: "25%" of 10 is 3.
func (g GroupSize) Of(total int) int {
	size, ok := countOf(string(g), total)
	if !ok || size <= 0 || size > total {
		size = total
	}
	return max(size, 1)
}

// countOf returns a number, or a percentage of a total, rounded up. ok is false if the text is
// neither.
func countOf(text string, total int) (n int, ok bool) {
	percent, isPercentage := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(percent)
	if isPercentage {
		n = (total*n + 99) / 100
	}
	return n, err == nil
}

// check describes why the size is invalid, or returns "".
func (g GroupSize) check() string {
	if !groupSizeShape.MatchString(string(g)) || len(g) > 9 {
		return fmt.Sprintf("%q must be a number from 1, such as 10, or a percentage from 1%% to 100%%, such as \"25%%\"", string(g))
	}
	return ""
}

func (d *DecisionStrategy) validate(errs *FieldErrors, field string) {
	if d == nil {
		return
	}
	errs.check(field+".clusters_per_decision_group", d.ClustersPerDecisionGroup.check())
	seen := map[string]int{}
	for i, g := range d.DecisionGroups {
		at := index(field+".decision_groups", i)
		if !groupNameShape.MatchString(g.Name) {
			errs.Add(at+".name", "%q must have 2 to 63 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter or digit", g.Name)
		}
		if first, ok := seen[g.Name]; ok {
			errs.Add(at+".name", "%q is already listed at position %d", g.Name, first)
		} else {
			seen[g.Name] = i
		}
		g.LabelSelector.validate(errs, at+".label_selector")
	}
}
