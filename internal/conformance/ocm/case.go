// Package ocm runs decisions of Open Cluster Management's placement controller as test cases.
package ocm

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// documented are the cases that follow from its documentation. The cases from its tests and code are among the
// conformance cases.
//
//go:embed more.json
var documented []byte

// The kinds of case.
const (
	// Schedule cases decide a placement once.
	Schedule = "schedule"
	// Enqueue cases are a change, and the placements that must be decided again.
	Enqueue = "enqueue"
)

// Case is a case in Open Cluster Management's terms.
type Case struct {
	conformance.Written
	Upstream          bool               `json:"upstream"`
	Tags              []string           `json:"tags"`
	Note              string             `json:"note"`
	Now               time.Time          `json:"now"`
	Clusters          []cluster          `json:"clusters"`
	ClusterSets       []clusterSet       `json:"cluster_sets"`
	Bindings          []binding          `json:"bindings"`
	Scores            []score            `json:"scores"`
	ExistingDecisions []existingDecision `json:"existing_decisions"`
	Placement         placement          `json:"placement"`
	Placements        []placement        `json:"placements"`
	Event             event              `json:"event"`
	Expect            expectations       `json:"expect"`
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

// clusterSet is a cluster set. Its clusters are selected by a selector, by default the label that names the set.
type clusterSet struct {
	Name         string            `json:"name"`
	SelectorType string            `json:"selector_type"`
	MatchLabels  map[string]string `json:"match_labels"`
}

// binding allows a namespace to use a cluster set.
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

// existingDecision is one page of a placement's decision. Without a placement, it belongs to an unknown one.
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

// event is the change in a case of kind Enqueue.
type event struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
}

// Condition is a condition in the form of the cases.
type Condition struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// expectations are the expected results; nil = not compared.
type expectations struct {
	StatusCode    *string        `json:"status_code"`
	StatusMessage *string        `json:"status_message"`
	Decisions     *[]string      `json:"decisions"`
	DecisionSet   *[]string      `json:"decision_set"`
	NumDecisions  *int           `json:"num_decisions"`
	Unscheduled   *int           `json:"unscheduled"`
	FilterResults []filterResult `json:"filter_results"`
	Prioritizers  map[string]struct {
		Weight float64            `json:"weight"`
		Scores map[string]float64 `json:"scores"`
	} `json:"prioritizers"`
	TotalScores map[string]float64 `json:"total_scores"`
	// RequeueAt is null if nothing is due.
	RequeueAt      json.RawMessage  `json:"requeue_at"`
	Satisfied      *Condition       `json:"satisfied"`
	Misconfigured  *Condition       `json:"misconfigured"`
	DecisionGroups *[]decisionGroup `json:"decision_groups"`
	// NumPlacementDecisions counts pages.
	NumPlacementDecisions *int      `json:"num_placement_decisions"`
	GroupStatusCode       *string   `json:"group_status_code"`
	AvailableClusters     *[]string `json:"available_clusters"`
	EligibleClusterSets   *[]string `json:"eligible_cluster_sets"`
	// Enqueued contains placements as namespace/name.
	Enqueued *[]string `json:"enqueued"`
}

// filterResult is the set of clusters that some filters admit.
type filterResult struct {
	Name     string   `json:"name"`
	Clusters []string `json:"clusters"`
}

// decisionGroup is a group of the decision, with the names of its pages.
type decisionGroup struct {
	Index        int64    `json:"index"`
	Name         string   `json:"name"`
	ClusterCount int64    `json:"cluster_count"`
	Decisions    []string `json:"decisions"`
	Clusters     []string `json:"clusters"`
}

// Cases reads the cases of a kind.
func Cases(kind string) ([]Case, error) {
	all, err := written()
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, c := range all {
		if c.Kind == kind {
			out = append(out, c)
		}
	}
	return out, nil
}

// written returns the cases as written.
func written() ([]Case, error) {
	return conformance.ReadCases[Case]("internal/conformance/ocm", documented)
}

// sets are expectations whose order does not matter.
var sets = []string{"decision_set", "filter_results", "available_clusters", "eligible_cluster_sets", "enqueued"}

// ownWords are expectations that a rejected spec meets in its own way: Refusals lists the invalid field and the reason.
// Nothing is counted for a decision that was not attempted.
var ownWords = []string{"unscheduled", "status_message", "satisfied", "misconfigured", "filter_results"}

// Expecting returns variants of the case with one expectation changed, by that expectation. An answer to the case must
// not satisfy them. Expectations in Differences are left out.
func (c *Case) Expecting() (map[string]Case, error) {
	var raw struct{ Expect json.RawMessage }
	if err := json.Unmarshal(c.Raw, &raw); err != nil {
		return nil, fmt.Errorf("%s: %w", c.ID, err)
	}
	variants, err := conformance.Variants(raw.Expect)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.ID, err)
	}
	out := map[string]Case{}
	for _, v := range variants {
		expectation, within, _ := strings.Cut(strings.TrimPrefix(v.Path, "/"), "/")
		_, refused := Refusals[c.ID]
		switch {
		case v.Change == conformance.Less && (within == "" || v.Zero):
			continue // a weaker expectation is satisfied by more results
		case v.Change == conformance.Less && expectation == "filter_results" && !strings.Contains(within, "/"):
			continue // likewise
		case v.Change == conformance.Less && expectation == "prioritizers" && strings.HasSuffix(within, "/scores"):
			continue // a score that is missing in a case is 0
		case v.Change == conformance.Reordered && slices.Contains(sets, expectation):
			continue
		case slices.Contains(Differences[c.ID].Expectations, expectation), refused && slices.Contains(ownWords, expectation):
			continue
		}
		other := *c
		other.Expect = expectations{}
		if conformance.Decode(v.Document, &other.Expect) == nil {
			out[v.Path+": "+v.Change] = other
		}
	}
	return out, nil
}
