package api

import (
	"encoding/json"
	"time"
)

// Preview is the decision that a placement would get, kept for a day so that a
// plan can show it and the apply can insist on it.
type Preview struct {
	ID        string `json:"id"`
	Token     string `json:"token" doc:"To be sent as Preview-Token with the PUT that is to commit exactly this decision."`
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Spec is what the preview was made of: a write that is to commit it has the same.
	Spec      json.RawMessage   `json:"spec,omitempty" doc:"What was previewed, defaults filled in. Only an object with the same spec can be written with the token."`
	Labels    map[string]string `json:"labels,omitempty" doc:"Labels of what was previewed."`
	CreatedAt time.Time         `json:"created_at"`
	ExpiresAt time.Time         `json:"expires_at"`
	// Current is where the placement is now, and Clusters where it would be.
	Current   []string      `json:"current" doc:"Clusters of the present decision, best first."`
	Clusters  []string      `json:"clusters" doc:"Clusters that would be chosen, best first."`
	Decisions []Decision    `json:"decisions"`
	Groups    []ChosenGroup `json:"decision_groups,omitempty"`
	Summary   string        `json:"summary" doc:"The sentence that sums the decision up."`
	Satisfied bool          `json:"satisfied" doc:"The placement would get as many clusters as it asks for, the workload all its replicas."`
	// The rest is of workloads and propagation policies.
	CurrentReplicas  map[string]int64   `json:"current_replicas,omitempty" doc:"Of a workload: replicas by cluster now."`
	Replicas         map[string]int64   `json:"replicas,omitempty" doc:"Of a workload: replicas by cluster as they would be."`
	Evicting         map[string]int64   `json:"evicting,omitempty" doc:"Of a workload: replicas by cluster that would go on running on clusters it is leaving."`
	Policy           string             `json:"policy,omitempty" doc:"Of a workload: the propagation policy that would be followed."`
	ObservedAffinity string             `json:"observed_affinity,omitempty" doc:"Of a workload: the affinity group that would be used."`
	Bindings         []PreviewedBinding `json:"bindings,omitempty" doc:"Of a propagation policy: every workload that it would have claimed, or has now."`
}

// PreviewedWorkload is a workload as it would be if a propagation policy were
// written.
type PreviewedWorkload struct {
	Object  *Workload // status included
	Current WorkloadStatus
	Claimed bool // the policy would have it
	Summary string
}

// PreviewedBinding is what becomes of one workload when a propagation policy is
// written.
type PreviewedBinding struct {
	Workload        string           `json:"workload" doc:"namespace/name."`
	CurrentReplicas map[string]int64 `json:"current_replicas" doc:"Replicas by cluster now."`
	Replicas        map[string]int64 `json:"replicas" doc:"Replicas by cluster as they would be."`
	Claimed         bool             `json:"claimed" doc:"The policy would have the workload."`
	Summary         string           `json:"summary"`
}

// PreviewLifetime is for how long a preview is kept.
const PreviewLifetime = 24 * time.Hour
