package api

import (
	"encoding/json"
	"time"
)

// Explanation says for every candidate of a placement or workload why it was chosen, not chosen or
// rejected.
type Explanation struct {
	Kind      Kind      `json:"kind,omitempty" doc:"'placement' or 'workload'."`
	Namespace string    `json:"namespace" doc:"Namespace of the object."`
	Name      string    `json:"name" doc:"Name of the object."`
	At        time.Time `json:"at" doc:"Time for which the explanation holds."`
	// Summary is one sentence: "2 of 120 clusters chosen: ...".
	Summary  string `json:"summary" doc:"One sentence that sums up the decision."`
	Wanted   *int64 `json:"wanted,omitempty" doc:"Number of clusters that the placement asks for. Absent if it asks for all that fit."`
	Total    int    `json:"total" doc:"Number of clusters examined."`
	Feasible int    `json:"feasible" doc:"Number of clusters that fit."`
	// Rejections counts the clusters that each filter removed, in filter order. A cluster counts
	// only for the first filter that removed it.
	Rejections []Rejection `json:"rejections,omitempty" doc:"Number of clusters that each filter rejected, most first."`
	Candidates []Candidate `json:"candidates" doc:"Every cluster that was examined."`
	// Kept says why the current decision is kept although a new one might differ:
	// "reschedule_after", "migration", "misconfigured", "unread_metric", "move_window", "brake", "balance".
	Kept string `json:"kept,omitempty" doc:"Why the current decision is kept although a fresh one would differ: 'reschedule_after', 'migration', 'misconfigured', 'unread_metric' (a metric of a chosen cluster cannot be read), 'move_window' (the condition MoveHeld says which), 'brake' (too many clusters failed at once, so failover is held), or 'balance' (another cluster is better only because of what other placements decided)."`
	// NearestMiss is the single constraint that excludes the most clusters on its own.
	NearestMiss *NearestMiss `json:"nearest_miss,omitempty" doc:"The one constraint that would admit the most clusters if it were dropped."`
	// NextAt is when the decision may change through the passing of time alone.
	NextAt *time.Time `json:"next_at,omitempty" doc:"When the passing of time alone may change the decision."`
	// Margin is how far the best cluster outside the decision is from being chosen. The decision
	// moves if that cluster gains more than this.
	Margin *MoveMargin `json:"margin,omitempty" doc:"How close the decision is to moving."`
	// The remaining fields are set for workloads only.
	Policy           string          `json:"policy,omitempty" doc:"For a workload: the propagation policy that it follows. 'policy_reason' says why."`
	PolicyReason     string          `json:"policy_reason,omitempty" doc:"For a workload: why it follows this policy."`
	ObservedAffinity string          `json:"observed_affinity,omitempty" doc:"For a workload: the affinity group that the clusters were chosen from."`
	Affinities       []AffinityTried `json:"affinities,omitempty" doc:"For a workload: the result for each affinity group, in order."`
	Groups           []GroupReason   `json:"groups,omitempty" doc:"For a workload: the groups of clusters that 'spread_constraints' consider."`
}

// AffinityTried is the result for one affinity group.
type AffinityTried struct {
	AffinityName string `json:"affinity_name" doc:"Name of the affinity group."`
	Result       string `json:"result" enum:"scheduled,kept,no_fit,unschedulable,not_tried" doc:"'scheduled', 'kept' (the group has the workload and nothing has to change), 'no_fit' (no cluster fits), 'unschedulable' (clusters fit, but have too little room or are too few) or 'not_tried'."`
	Message      string `json:"message,omitempty" doc:"Explanation of the result."`
}

// Results of an affinity group.
const (
	AffinityScheduled     = "scheduled"
	AffinityKept          = "kept"
	AffinityNoFit         = "no_fit"
	AffinityUnschedulable = "unschedulable"
	AffinityNotTried      = "not_tried"
)

// GroupReason is one group of clusters of a spread constraint.
type GroupReason struct {
	By       string `json:"by" doc:"What the clusters are grouped by: 'region', 'zone', 'provider', or 'label \"key\"'."`
	Group    string `json:"group" doc:"Name of the group."`
	Clusters int    `json:"clusters" doc:"Number of clusters in the group that fit."`
	Chosen   bool   `json:"chosen" doc:"Whether the group was chosen."`
	Reason   string `json:"reason,omitempty" doc:"Why the group was not chosen."`
}

// Rejection counts the clusters that a filter removed for one reason.
type Rejection struct {
	Filter string `json:"filter" doc:"Name of the filter."`
	On     string `json:"on,omitempty" doc:"The constraint, metric or resource that the filter checked."`
	Count  int    `json:"count" doc:"Number of clusters rejected."`
}

// Filters that others than the engine treat in their own way.
const (
	// OwnershipFilter rejects the clusters of other namespaces.
	OwnershipFilter = "namespace"
	// StateFilter rejects clusters that are not online.
	StateFilter = "state"
)

// NearestMiss is a constraint that is the only one that some clusters do not meet.
type NearestMiss struct {
	Filter string `json:"filter" doc:"Name of the filter."`
	On     string `json:"on,omitempty" doc:"The constraint, taint, metric or resource that the filter checked."`
	Count  int    `json:"count" doc:"Number of clusters that would fit without it."`
}

// Candidate is one cluster that was considered.
type Candidate struct {
	Cluster     string `json:"cluster" doc:"Name of the cluster."`
	Description string `json:"description,omitempty" doc:"Description of the cluster."`
	Selected    bool   `json:"selected" doc:"Whether the cluster was chosen."`
	Current     bool   `json:"current" doc:"Whether the cluster was part of the previous decision."`
	Rank        int64  `json:"rank,omitempty" doc:"Rank of the cluster, where 1 is best. Absent for rejected clusters."`
	// Filter and Reason are set if the cluster was rejected. If it fits but a spread constraint
	// leaves it out, only Reason is set.
	Filter string `json:"filter,omitempty" doc:"Filter that rejected the cluster."`
	Reason string `json:"reason,omitempty" doc:"Why the cluster was rejected, or not chosen."`
	// Tells is the metric whose value appears in the reason, or nil.
	Tells  *Key        `json:"-"`
	Score  *float64    `json:"score,omitempty" doc:"Total score."`
	Scores []ScorePart `json:"scores,omitempty" doc:"Parts of the score."`
	// Replicas and the remaining fields are set for workloads only. For them, Reason explains the
	// number of replicas.
	Replicas  *int64 `json:"replicas,omitempty" doc:"For a workload: replicas that the cluster gets."`
	Available *int64 `json:"available,omitempty" doc:"For a workload: replicas that the cluster has room for, including those it already runs. Absent if not known; the room then counts as sufficient."`
	Weight    *int64 `json:"weight,omitempty" doc:"For a workload: weight of the cluster when replicas are divided."`
	Tier      string `json:"tier,omitempty" doc:"For a workload: overflow affinity that the cluster belongs to."`
}

// ScorePart is what one metric, the stickiness or one prioritizer contributes to a score.
type ScorePart struct {
	Name   string   `json:"name" doc:"Name of the metric or prioritizer."`
	Raw    *float64 `json:"raw,omitempty" doc:"Value as observed or written, even if it has expired. Absent if there is none."`
	Value  float64  `json:"value" doc:"With strategy 'metrics' the normalized value, 0 to 1; with 'prioritizers' the score, -100 to 100."`
	Weight float64  `json:"weight" doc:"Weight of the part."`
	Share  float64  `json:"share" doc:"What the part adds to the score: with strategy 'metrics' value × weight / sum of weights, with 'prioritizers' value × weight."`
	// ExpiredAt and Reason distinguish an expired score from an absent one, and both from a score
	// of 0.
	ExpiredAt *time.Time `json:"expired_at,omitempty" doc:"When the raw value expired."`
	Reason    string     `json:"reason,omitempty" doc:"Why the part counts as 0 without a score of 0: expired, absent or not available, with the cause. Or that the values are withheld because the metric belongs to a namespace that the reader may not read."`
	// Tells is the metric whose value the part contains, or nil.
	Tells *Key `json:"-"`
}

// MoveMargin is how far a decision is from its next change.
type MoveMargin struct {
	From   string  `json:"from" doc:"The chosen cluster that would be given up."`
	To     string  `json:"to" doc:"The cluster that would replace it."`
	Margin float64 `json:"margin" doc:"How much the challenger's score must rise before the decision moves. If negative, the decision would move now if it were not kept."`
}

// Simulation asks what the server would decide, without changing anything.
type Simulation struct {
	Base    string            `json:"base,omitempty" enum:"live,empty" default:"live" doc:"'live' adds the objects to the current fleet, replacing those with the same name; 'empty' uses only the given objects."`
	Now     *time.Time        `json:"now,omitempty" doc:"Time of the simulation (RFC 3339). If omitted, the server's clock is used."`
	Objects []json.RawMessage `json:"objects,omitempty" doc:"Objects as the API shows them, including their status: the status is taken as the previous decision or the observed values."`
	Delete  []Key             `json:"delete,omitempty" doc:"Objects to leave out of the base."`
	Steps   bool              `json:"steps,omitempty" doc:"Make decisions after each object, in the order of the lists, as if the objects were written one after another and then those in 'delete' deleted; and again with the clusters and everything else that decisions are based on in the opposite order. 'changes' lists every decision that moves on the way, even if it returns. Nothing is explained."`
}

// SimulationResult is the result of a Simulation.
type SimulationResult struct {
	Objects      []Object      `json:"objects" doc:"The given objects with their new status, and the placements and workloads that would change."`
	Explanations []Explanation `json:"explanations" doc:"Why each placement and workload would get its clusters."`
	Changes      []Change      `json:"changes" doc:"Decisions that would differ from the current ones."`
}

// Change is a decision that differs from the previous one.
type Change struct {
	Key
	From []string `json:"from" doc:"Clusters before."`
	To   []string `json:"to" doc:"Clusters after."`
	// FromReplicas and ToReplicas are set for workloads only.
	FromReplicas map[string]int64 `json:"from_replicas,omitempty" doc:"For a workload: replicas by cluster before."`
	ToReplicas   map[string]int64 `json:"to_replicas,omitempty" doc:"For a workload: replicas by cluster after."`
	Message      string           `json:"message" doc:"Summary of the explanation."`
}
