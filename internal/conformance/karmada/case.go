// Package karmada runs decisions of Karmada's scheduler about propagation policies, and decisions that only this
// product makes, as test cases.
//
// The cases about single steps of the calculation are in the packages that perform the step.
package karmada

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// ours are the cases where Karmada has no behavior, or a defect. The cases from Karmada's tests and code are among the
// conformance cases.
//
//go:embed ours.json
var ours []byte

// The kinds of case.
const (
	// Schedule cases are one pass over one workload.
	Schedule = "schedule"
	// Match cases check whether an affinity selects a cluster.
	Match = "match"
	// AffinityOrder cases check which affinity groups are tried.
	AffinityOrder = "affinity_order"
	// PlacementChanged cases check whether an edit of a placement has an effect.
	PlacementChanged = "placement_changed"
	// TaintEviction cases check when a taint evicts a workload.
	TaintEviction = "taint_eviction"
	// EvictionTask cases check when evicted replicas may be removed.
	EvictionTask = "eviction_task"
	// Validate cases check whether a policy is accepted.
	Validate = "validate"
	// Course cases are a sequence of changes around workloads. Only cases of this product have this kind.
	Course = "course"
)

// Kinds are the kinds of cases that Play runs.
var Kinds = []string{Schedule, Match, AffinityOrder, PlacementChanged, TaintEviction, EvictionTask, Validate, Course}

// Case is a case in Karmada's terms. Its fields depend on its kind.
type Case struct {
	conformance.Written
	// Expected is a map of replicas by cluster, a boolean, or a word.
	Expected json.RawMessage `json:"expected"`

	Clusters         []cluster        `json:"clusters"`
	Workload         *workload        `json:"workload"`
	Policy           *policy          `json:"policy"`
	Previous         map[string]int64 `json:"previous"`
	ObservedAffinity string           `json:"observed_affinity"`
	Fresh            bool             `json:"fresh"`
	Evicting         []string         `json:"evicting"`
	Options          struct {
		EmptyWorkloadPropagation bool `json:"empty_workload_propagation"`
	} `json:"options"`
	ExpectedAffinity string `json:"expected_affinity"`
	ExpectedError    *struct {
		Class    string `json:"class"`
		Contains string `json:"contains"` // Karmada's wording
	} `json:"expected_error"`

	Cluster  *cluster  `json:"cluster"`
	Affinity *affinity `json:"affinity"`

	Terms              []string          `json:"terms"`
	Observed           string            `json:"observed"`
	ExplicitReschedule bool              `json:"explicit_reschedule"`
	Outcomes           map[string]string `json:"outcomes"`
	ExpectedTried      []string          `json:"expected_tried"`
	ExpectedResult     string            `json:"expected_result"`

	Placement *policy `json:"placement"`
	Applied   *policy `json:"applied"`

	ExpectedValid *bool  `json:"expected_valid"`
	ErrorContains string `json:"error_contains"` // Karmada's wording

	Taints      []taint      `json:"taints"`
	Tolerations []toleration `json:"tolerations"`

	AgeSeconds       int64             `json:"age_seconds"`
	TimeoutSeconds   int64             `json:"timeout_seconds"`
	HasScheduled     bool              `json:"has_scheduled"`
	SuppressDeletion *bool             `json:"suppress_deletion"`
	Replacements     map[string]string `json:"replacements"`

	Policies  []policy   `json:"policies"`
	Workloads []workload `json:"workloads"`
	Steps     []step     `json:"steps"`
}

// cluster is a target. Only cases of this product use the fields below the blank line.
type cluster struct {
	Name     string            `json:"name"`
	Provider string            `json:"provider"`
	Region   string            `json:"region"`
	Zones    []string          `json:"zones"`
	Labels   map[string]string `json:"labels"`
	Taints   []taint           `json:"taints"`
	// AvailableReplicas is how many more replicas fit on the cluster. Absent = unknown.
	AvailableReplicas *int64   `json:"available_replicas"`
	Deleting          bool     `json:"deleting"`
	APIs              []string `json:"apis"`

	State       string            `json:"state"`
	Paused      bool              `json:"paused"`
	Namespace   string            `json:"namespace"`
	Allocatable map[string]string `json:"allocatable"`
}

type taint struct {
	Key        string `json:"key"`
	Value      string `json:"value"`
	Effect     string `json:"effect"`
	AgeSeconds int64  `json:"age_seconds"`
}

type toleration struct {
	Key               string `json:"key"`
	Operator          string `json:"operator"`
	Value             string `json:"value"`
	Effect            string `json:"effect"`
	TolerationSeconds *int64 `json:"toleration_seconds"`
}

type workload struct {
	Replicas   int64  `json:"replicas"`
	IsWorkload bool   `json:"is_workload"`
	UID        string `json:"uid"`

	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels"`
	Priority int64             `json:"priority"`
	Requests map[string]string `json:"requests"`

	// status and reschedules are the state before the first step.
	status      *api.WorkloadStatus
	reschedules int64
}

// policy is the placement of a policy. Only cases of this product use the other fields.
type policy struct {
	ClusterAffinity   *affinity          `json:"cluster_affinity"`
	ClusterAffinities []term             `json:"cluster_affinities"`
	Tolerations       []toleration       `json:"tolerations"`
	SpreadConstraints []spread           `json:"spread_constraints"`
	ReplicaScheduling *replicaScheduling `json:"replica_scheduling"`

	EmptyClusters      bool                   `json:"empty_clusters"`
	Name               string                 `json:"name"`
	Global             bool                   `json:"global"`
	Selectors          []api.ResourceSelector `json:"selectors"`
	Priority           int64                  `json:"priority"`
	Preemption         api.Preemption         `json:"preemption"`
	WorkloadPreemption api.WorkloadPreemption `json:"workload_preemption"`
	Failover           *api.Failover          `json:"failover"`
	FailBack           *api.FailBack          `json:"fail_back"`
}

type affinity struct {
	ClusterNames  []string               `json:"cluster_names"`
	Exclude       []string               `json:"exclude"`
	MatchLabels   map[string]string      `json:"match_labels"`
	FieldSelector []api.FieldRequirement `json:"field_selector"`
}

type term struct {
	Name string `json:"name"`
	affinity
	Overflow []term `json:"overflow"`
}

type spread struct {
	By      string `json:"by"`
	ByLabel string `json:"by_label"`
	Min     int64  `json:"min"`
	// A Max of 0 means no limit.
	Max int64 `json:"max"`
}

type replicaScheduling struct {
	Type          string `json:"type"`
	Preference    string `json:"preference"`
	StaticWeights []struct {
		Target affinity `json:"target"`
		Weight int64    `json:"weight"`
	} `json:"static_weights"`
	DynamicWeight string `json:"dynamic_weight"`

	Limits []struct {
		Target affinity `json:"target"`
		Min    *int64   `json:"min"`
		Max    *int64   `json:"max"`
	} `json:"limits"`
}

// step is one step of a course: what has changed since the previous one, and what is expected.
type step struct {
	Name string `json:"name"`
	// After is its time, in seconds after the first step.
	After int64 `json:"after"`
	// Clusters, Policies and Workloads replace those with the same name.
	Clusters     []cluster  `json:"clusters"`
	Policies     []policy   `json:"policies"`
	Workloads    []workload `json:"workloads"`
	Gone         []string   `json:"gone"` // clusters
	GonePolicies []string   `json:"gone_policies"`
	// GoneWorkloads and Reschedule name workloads.
	GoneWorkloads []string `json:"gone_workloads"`
	Reschedule    []string `json:"reschedule"`
	// Health contains health reports, by workload and cluster.
	Health map[string]map[string]api.HealthStatus `json:"health"`
	Expect map[string]expectation                 `json:"expect"` // by workload
}

// Cases reads the cases of some kinds, both Karmada's and this product's. Where needed, it adds a variant in which
// clusters report no capacity.
func Cases(kinds ...string) ([]Case, error) {
	all, err := written()
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, c := range all {
		if !slices.Contains(kinds, c.Kind) {
			continue
		}
		out = append(out, c)
		if Differences[c.ID].Room {
			out = append(out, c.withoutRoom())
		}
	}
	return out, nil
}

// written returns the cases as written.
func written() ([]Case, error) {
	return conformance.ReadCases[Case]("internal/conformance/karmada", ours)
}

// Expecting returns variants of the case with one part of the expectation changed, by that part. Deliberate differences
// have none.
func (c *Case) Expecting() (map[string]Case, error) {
	out := map[string]Case{}
	if _, differs := Differences[c.ID]; differs {
		return out, nil
	}
	variants, err := conformance.Variants(c.Raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.ID, err)
	}
	for _, v := range variants {
		field, within, _ := strings.Cut(strings.TrimPrefix(v.Path, "/"), "/")
		switch {
		case !strings.HasPrefix(field, "expected"):
			continue // not part of the expectation
		case within == "" && v.Change == conformance.Less:
			continue // a weaker expectation is satisfied by more results
		case field == "expected_error" && within == "contains":
			continue // Karmada's wording
		}
		other, err := conformance.ReadCase[Case](v.Document)
		if err != nil {
			continue // that is detected
		}
		if strings.HasSuffix(c.ID, roomUnknown) {
			*other = other.withoutRoom()
		}
		out[v.Path+": "+v.Change] = *other
	}
	return out, nil
}

// roomUnknown is the suffix of the ID of a case in which clusters report no capacity.
const roomUnknown = "-room-unknown"

// withoutRoom returns the case with clusters that report no capacity.
func (c *Case) withoutRoom() Case {
	out := *c
	out.ID += roomUnknown
	out.Clusters = slices.Clone(c.Clusters)
	for i := range out.Clusters {
		out.Clusters[i].AvailableReplicas = nil
	}
	return out
}
