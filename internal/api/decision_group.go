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

// DecisionGroup is a named group of chosen clusters. Several may have one name, as in Open Cluster
// Management: each has its own clusters and its own positions among the groups of a decision.
type DecisionGroup struct {
	Name          string         `json:"name" doc:"Name of the group. Several groups may have the same name."`
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
	data = bytes.TrimSpace(data)
	if string(data) == "null" {
		return nil // null counts as absent
	}
	if len(data) > 0 && data[0] != '"' {
		*g = GroupSize(data)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("read the size of a group: %w", err)
	}
	*g = GroupSize(text)
	return nil
}

// Of returns the size of a group if total clusters are chosen: at least 1 and at most total.
// Example: "25%" of 10 is 3.
func (g GroupSize) Of(total int) int {
	size := total
	if percent, ok := strings.CutSuffix(string(g), "%"); ok {
		if n, err := strconv.Atoi(percent); err == nil {
			size = (total*n + 99) / 100
		}
	} else if n, err := strconv.Atoi(string(g)); err == nil {
		size = n
	}
	if size <= 0 || size > total {
		size = total
	}
	return max(size, 1)
}

func (d *DecisionStrategy) validate(errs *FieldErrors, field string) {
	if d == nil {
		return
	}
	if size := d.ClustersPerDecisionGroup; !groupSizeShape.MatchString(string(size)) || len(size) > 9 {
		errs.Add(field+".clusters_per_decision_group", "%q must be a number from 1, such as 10, or a percentage from 1%% to 100%%, such as \"25%%\"", string(size))
	}
	for i, g := range d.DecisionGroups {
		at := index(field+".decision_groups", i)
		if !groupNameShape.MatchString(g.Name) {
			errs.Add(at+".name", "%q must have 2 to 63 letters, digits, \"-\", \"_\" or \".\", and start and end with a letter or digit", g.Name)
		}
		g.LabelSelector.validate(errs, at+".label_selector")
	}
}
