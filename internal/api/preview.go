package api

import (
	"encoding/json"
	"time"
)

// PreviewTokenHeader is the header of a PUT that commits the decision of a preview.
const PreviewTokenHeader = "Preview-Token"

// Preview is the decision that a placement would get. It is kept for a day, so that a plan can show
// it and the apply can commit exactly this decision.
type Preview struct {
	ID        string `json:"id" doc:"ID of the preview."`
	Token     string `json:"token" doc:"Send it as 'Preview-Token' with the PUT that is to commit exactly this decision."`
	Kind      Kind   `json:"kind" doc:"Kind of the object."`
	Namespace string `json:"namespace" doc:"Namespace of the object."`
	Name      string `json:"name" doc:"Name of the object."`
	// Spec is the spec of the preview. A write that commits the preview must have the same spec.
	Spec      json.RawMessage   `json:"spec,omitempty" doc:"The spec that was previewed, with defaults filled in. Only an object with the same spec can be written with the token."`
	Labels    map[string]string `json:"labels,omitempty" doc:"Labels of the previewed object."`
	CreatedAt time.Time         `json:"created_at" doc:"When the preview was made."`
	ExpiresAt time.Time         `json:"expires_at" doc:"Until when the server keeps the preview."`
	// Current is the current decision, Clusters the one that would be made.
	Current   []string      `json:"current" doc:"Clusters of the current decision, best first."`
	Clusters  []string      `json:"clusters" doc:"Clusters that would be chosen, best first."`
	Decisions []Decision    `json:"decisions" doc:"Details of the clusters that would be chosen, best first."`
	Groups    []ChosenGroup `json:"decision_groups,omitempty" doc:"The clusters that would be chosen, by group."`
	Summary   string        `json:"summary" doc:"One sentence that sums up the decision."`
	Satisfied bool          `json:"satisfied" doc:"Whether the placement would get all the clusters, or the workload all the replicas, that it asks for."`
	Demand    *Demand       `json:"demand,omitempty" doc:"Clusters that would give the object what it would lack. Absent if it would lack none."`
	// The remaining fields are set for workloads and propagation policies.
	CurrentReplicas  map[string]int64   `json:"current_replicas,omitempty" doc:"For a workload: current replicas by cluster."`
	Replicas         map[string]int64   `json:"replicas,omitempty" doc:"For a workload: replicas by cluster as they would be."`
	Evicting         map[string]int64   `json:"evicting,omitempty" doc:"For a workload: replicas by cluster that would keep running on clusters that it is leaving."`
	Policy           string             `json:"policy,omitempty" doc:"For a workload: the propagation policy that it would follow."`
	ObservedAffinity string             `json:"observed_affinity,omitempty" doc:"For a workload: the affinity group that would be used."`
	Bindings         []PreviewedBinding `json:"bindings,omitempty" doc:"For a propagation policy: every workload that it would claim or has claimed."`
}

// PreviewedWorkload is a workload as it would be if a propagation policy were written.
type PreviewedWorkload struct {
	Object  *Workload // including its status
	Current WorkloadStatus
	Claimed bool // whether the policy would claim it
	Summary string
}

// PreviewedBinding is the effect of writing a propagation policy on one workload.
type PreviewedBinding struct {
	Workload        string           `json:"workload" doc:"The workload, as 'namespace/name'."`
	CurrentReplicas map[string]int64 `json:"current_replicas" doc:"Current replicas by cluster."`
	Replicas        map[string]int64 `json:"replicas" doc:"Replicas by cluster as they would be."`
	Claimed         bool             `json:"claimed" doc:"Whether the policy would claim the workload."`
	Summary         string           `json:"summary" doc:"One sentence that sums up the binding."`
}

// PreviewLifetime is how long a preview is kept.
const PreviewLifetime = 24 * time.Hour
