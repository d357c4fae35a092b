// Package karmada runs the decisions of Karmada's scheduler about propagation
// policies, and those that this product adds, as test cases.
//
// The cases about single steps of the arithmetic are in the packages that perform
// the step.
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

// ours are what this product does where Karmada has nothing, or a defect. What
// Karmada's tests say and its code was seen to do is among the conformance cases.
//
//go:embed ours.json
var ours []byte

// The kinds of case.
const (
	// Schedule is one pass over one workload.
	Schedule = "schedule"
	// Match asks whether an affinity selects a cluster.
	Match = "match"
	// AffinityOrder asks which affinity groups are tried.
	AffinityOrder = "affinity_order"
	// PlacementChanged asks whether an edit of a placement is acted on.
	PlacementChanged = "placement_changed"
	// TaintEviction asks when a taint drives a workload out.
	TaintEviction = "taint_eviction"
	// EvictionTask asks whether the replicas that are being evicted may go.
	EvictionTask = "eviction_task"
	// Validate asks whether a policy is accepted.
	Validate = "validate"
	// Course is what happens to workloads while things around them change. Only
	// cases of this product are of this kind.
	Course = "course"
)

// Kinds are the kinds of case that Play plays.
var Kinds = []string{Schedule, Match, AffinityOrder, PlacementChanged, TaintEviction, EvictionTask, Validate, Course}

// Case is one case in the terms of Karmada. Which fields it has depends on its
// kind.
type Case struct {
	conformance.Written
	// Expected is a map of replicas by cluster, true or false, or a word.
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

// cluster is a target. Fields below the blank line are of this product's cases
// only.
type cluster struct {
	Name     string            `json:"name"`
	Provider string            `json:"provider"`
	Region   string            `json:"region"`
	Zones    []string          `json:"zones"`
	Labels   map[string]string `json:"labels"`
	Taints   []taint           `json:"taints"`
	// AvailableReplicas are those that the cluster can take besides those that it
	// has. Absent = not known.
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

	// status and reschedules are what was before the first step.
	status      *api.WorkloadStatus
	reschedules int64
}

// policy is the placement of a policy; the rest is of this product's cases only.
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
	// Max of 0 is no limit.
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

// step is one moment of a course: what has changed since the one before, and
// what is expected then.
type step struct {
	Name string `json:"name"`
	// After is when it happens, in seconds since the first one.
	After int64 `json:"after"`
	// Clusters, Policies and Workloads take the place of those of the same name.
	Clusters     []cluster  `json:"clusters"`
	Policies     []policy   `json:"policies"`
	Workloads    []workload `json:"workloads"`
	Gone         []string   `json:"gone"` // clusters
	GonePolicies []string   `json:"gone_policies"`
	// GoneWorkloads and Reschedule name workloads.
	GoneWorkloads []string `json:"gone_workloads"`
	Reschedule    []string `json:"reschedule"`
	// Health is what is reported, by workload and cluster.
	Health map[string]map[string]api.HealthStatus `json:"health"`
	Expect map[string]expectation                 `json:"expect"` // by workload
}

// Cases reads the cases of some kinds, those of Karmada and those of this
// product, and of each that needs it the variant in which no cluster tells its
// room.
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

// written are the cases as they are written.
func written() ([]Case, error) {
	return conformance.ReadCases[Case]("internal/conformance/karmada", ours)
}

// Expecting are the cases that differ from this one in one thing that they expect,
// by what that is. What is decided otherwise on purpose has none.
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
			continue // not about what is expected
		case within == "" && v.Change == conformance.Less:
			continue // who tells less of the outcome is content with more
		case field == "expected_error" && within == "contains":
			continue // Karmada's wording
		}
		other, err := conformance.ReadCase[Case](v.Document)
		if err != nil {
			continue // that is noticed
		}
		if strings.HasSuffix(c.ID, roomUnknown) {
			*other = other.withoutRoom()
		}
		out[v.Path+": "+v.Change] = *other
	}
	return out, nil
}

// roomUnknown is what the id of a case ends in where no cluster tells how much
// room it has.
const roomUnknown = "-room-unknown"

// withoutRoom is the case with clusters that do not tell how much room they have.
func (c *Case) withoutRoom() Case {
	out := *c
	out.ID += roomUnknown
	out.Clusters = slices.Clone(c.Clusters)
	for i := range out.Clusters {
		out.Clusters[i].AvailableReplicas = nil
	}
	return out
}
