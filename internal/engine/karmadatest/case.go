// Package karmadatest holds what Karmada's scheduler decides about propagation
// policies, and what this product decides beyond it, as cases that tests lay
// before whatever decides here.
//
// The cases about single steps of the arithmetic lie with the packages that do
// that step.
package karmadatest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// observed are what Karmada's tests say and its code was seen to do; ours are
// what this product does where Karmada has nothing, or a defect.
var (
	//go:embed karmada.json
	observed []byte
	//go:embed ours.json
	ours []byte
)

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
	// EstimateModel is about resource models, which clusters do not have here.
	EstimateModel = "estimate_model"
)

// Kinds are the kinds of case that Play plays.
var Kinds = []string{Schedule, Match, AffinityOrder, PlacementChanged, TaintEviction, EvictionTask, Validate, Course}

// Case is one case in the terms of Karmada. Which fields it has depends on its
// kind.
type Case struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Source string `json:"source"`
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

	NodeMinCapacities json.RawMessage `json:"node_min_capacities"`
	Counts            []int64         `json:"counts"`
	Request           json.RawMessage `json:"request"`
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
// room. A field that is not known is an error: what is not read is not compared.
func Cases(kinds ...string) ([]Case, error) {
	var out []Case
	for _, data := range [][]byte{observed, ours} {
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
			if !slices.Contains(kinds, c.Kind) {
				continue
			}
			out = append(out, c)
			if Differences[c.ID].Room {
				out = append(out, c.withoutRoom())
			}
		}
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
