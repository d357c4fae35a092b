// Package ocmtest holds what Open Cluster Management's placement controller
// decides, as cases that tests lay before whatever decides here.
package ocmtest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"
)

// observed are what its tests say and its code was seen to do; documented is
// what follows from its documentation.
var (
	//go:embed ocm.json
	observed []byte
	//go:embed more.json
	documented []byte
)

// The kinds of case.
const (
	// Schedule is one placement that is decided once.
	Schedule = "schedule"
	// Enqueue is a change, with the placements that have to be decided again.
	Enqueue = "enqueue"
)

// Case is one case in the terms of Open Cluster Management.
type Case struct {
	ID                string                  `json:"id"`
	Name              string                  `json:"name"`
	Source            string                  `json:"source"`
	Upstream          bool                    `json:"upstream"`
	Kind              string                  `json:"kind"`
	Tags              []string                `json:"tags"`
	Note              string                  `json:"note"`
	Now               time.Time               `json:"now"`
	Clusters          []cluster               `json:"clusters"`
	ClusterSets       []struct{ Name string } `json:"cluster_sets"`
	Bindings          []binding               `json:"bindings"`
	Scores            []score                 `json:"scores"`
	ExistingDecisions []existingDecision      `json:"existing_decisions"`
	Placement         placement               `json:"placement"`
	Placements        []placement             `json:"placements"`
	Event             event                   `json:"event"`
	Expect            expectations            `json:"expect"`
}

type cluster struct {
	Name              string            `json:"name"`
	Labels            map[string]string `json:"labels"`
	Claims            map[string]string `json:"claims"`
	Taints            []taint           `json:"taints"`
	Allocatable       map[string]string `json:"allocatable"`
	Capacity          map[string]string `json:"capacity"`
	Deleting          bool              `json:"deleting"`
	KubernetesVersion string            `json:"kubernetes_version"`
}

type taint struct {
	Key       string     `json:"key"`
	Value     string     `json:"value"`
	Effect    string     `json:"effect"`
	TimeAdded *time.Time `json:"time_added"`
}

// binding lets a namespace use a cluster set.
type binding struct {
	Namespace  string `json:"namespace"`
	ClusterSet string `json:"cluster_set"`
}

type score struct {
	Cluster    string     `json:"cluster"`
	Resource   string     `json:"resource"`
	Name       string     `json:"name"`
	Value      int64      `json:"value"`
	ValidUntil *time.Time `json:"valid_until"`
}

// existingDecision is one page of a placement's decision; one that names no
// placement belongs to an unknown one.
type existingDecision struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Placement string   `json:"placement"`
	Clusters  []string `json:"clusters"`
}

type selector struct {
	MatchLabels      map[string]string `json:"match_labels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"match_expressions"`
}

type placement struct {
	Namespace        string   `json:"namespace"`
	Name             string   `json:"name"`
	ClusterSets      []string `json:"cluster_sets"`
	NumberOfClusters *int64   `json:"number_of_clusters"`
	Predicates       []struct {
		LabelSelector *selector `json:"label_selector"`
		ClaimSelector *selector `json:"claim_selector"`
		CEL           []string  `json:"cel"`
	} `json:"predicates"`
	Tolerations []struct {
		Key               string `json:"key"`
		Operator          string `json:"operator"`
		Value             string `json:"value"`
		Effect            string `json:"effect"`
		TolerationSeconds *int64 `json:"toleration_seconds"`
	} `json:"tolerations"`
	PrioritizerPolicy *struct {
		Mode           string `json:"mode"`
		Configurations []struct {
			Type     string `json:"type"`
			BuiltIn  string `json:"built_in"`
			Resource string `json:"resource"`
			Score    string `json:"score"`
			Weight   int64  `json:"weight"`
		} `json:"configurations"`
	} `json:"prioritizer_policy"`
	DecisionStrategy *struct {
		ClustersPerDecisionGroup json.RawMessage `json:"clusters_per_decision_group"`
		DecisionGroups           []struct {
			Name          string    `json:"name"`
			LabelSelector *selector `json:"label_selector"`
		} `json:"decision_groups"`
	} `json:"decision_strategy"`
}

// event is what changes in a case of kind Enqueue.
type event struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
}

// Condition is a condition as the cases tell it.
type Condition struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// expectations are what a case tells of the outcome; nil says nothing.
type expectations struct {
	StatusCode    *string   `json:"status_code"`
	StatusMessage *string   `json:"status_message"`
	Decisions     *[]string `json:"decisions"`
	DecisionSet   *[]string `json:"decision_set"`
	NumDecisions  *int      `json:"num_decisions"`
	Unscheduled   *int      `json:"unscheduled"`
	FilterResults []struct {
		Name     string   `json:"name"`
		Clusters []string `json:"clusters"`
	} `json:"filter_results"`
	Prioritizers map[string]struct {
		Weight float64            `json:"weight"`
		Scores map[string]float64 `json:"scores"`
	} `json:"prioritizers"`
	TotalScores map[string]float64 `json:"total_scores"`
	// RequeueAt is null where nothing is due.
	RequeueAt      json.RawMessage `json:"requeue_at"`
	Satisfied      *Condition      `json:"satisfied"`
	Misconfigured  *Condition      `json:"misconfigured"`
	DecisionGroups *[]struct {
		Index        int64    `json:"index"`
		Name         string   `json:"name"`
		ClusterCount int64    `json:"cluster_count"`
		Clusters     []string `json:"clusters"`
		// Decisions are names of pages. There are no pages here: a decision is
		// one object, however large.
		Decisions []string `json:"decisions"`
	} `json:"decision_groups"`
	// NumPlacementDecisions counts pages.
	NumPlacementDecisions *int      `json:"num_placement_decisions"`
	GroupStatusCode       *string   `json:"group_status_code"`
	AvailableClusters     *[]string `json:"available_clusters"`
	EligibleClusterSets   *[]string `json:"eligible_cluster_sets"`
	// Enqueued are placements as namespace/name.
	Enqueued *[]string `json:"enqueued"`
}

// Cases reads the cases of a kind. A field that is not known is an error: what
// is not read is not compared.
func Cases(kind string) ([]Case, error) {
	var out []Case
	for _, data := range [][]byte{observed, documented} {
		var file struct {
			Count int    `json:"count"`
			Cases []Case `json:"cases"`
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&file); err != nil {
			return nil, fmt.Errorf("read the cases: %w", err)
		}
		if len(file.Cases) != file.Count {
			return nil, fmt.Errorf("read the cases: there are %d, and the file says %d", len(file.Cases), file.Count)
		}
		for _, c := range file.Cases {
			if c.Kind == kind {
				out = append(out, c)
			}
		}
	}
	return out, nil
}
