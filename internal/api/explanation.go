package api

import (
	"encoding/json"
	"time"
)

// Explanation says, for every candidate of a placement or a workload, why it was
// chosen, passed over or rejected.
type Explanation struct {
	Kind      Kind      `json:"kind,omitempty" doc:"placement or workload."`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	At        time.Time `json:"at" doc:"The moment the explanation holds for."`
	// Summary is one sentence: "2 of 120 clusters chosen: ...".
	Summary  string `json:"summary" doc:"The sentence that sums it up."`
	Wanted   *int64 `json:"wanted,omitempty" doc:"How many clusters the placement asks for. Absent = all that fit."`
	Total    int    `json:"total" doc:"How many clusters were looked at."`
	Feasible int    `json:"feasible" doc:"How many clusters fit."`
	// Rejections counts the clusters each filter removed, in the order of the
	// filters; a cluster counts once, at the first filter that removed it.
	Rejections []Rejection `json:"rejections,omitempty"`
	Candidates []Candidate `json:"candidates"`
	// Kept says why the present decision stands although a fresh look might
	// choose otherwise: "reschedule_after", "migration", "misconfigured", "balance".
	Kept string `json:"kept,omitempty" doc:"Why the present decision is kept although a fresh one would differ: reschedule_after, migration, misconfigured, or balance (another is better only by what other placements decided)."`
	// NearestMiss is the constraint that alone keeps most clusters out.
	NearestMiss *NearestMiss `json:"nearest_miss,omitempty" doc:"The single constraint that, if dropped, would admit most clusters."`
	// NextAt is when time alone may change the decision.
	NextAt *time.Time `json:"next_at,omitempty" doc:"When time alone may change the decision."`
	// Margin is how much the best cluster outside the decision lacks to be
	// chosen: a move happens when it gains more than this.
	Margin *MoveMargin `json:"margin,omitempty"`
	// The rest is about workloads only.
	Policy           string          `json:"policy,omitempty" doc:"Of a workload: the propagation policy that was followed, and why that one in policy_reason."`
	PolicyReason     string          `json:"policy_reason,omitempty"`
	ObservedAffinity string          `json:"observed_affinity,omitempty" doc:"Of a workload: the affinity group the clusters were chosen from."`
	Affinities       []AffinityTried `json:"affinities,omitempty" doc:"Of a workload: what became of each affinity group, in order."`
	Groups           []GroupReason   `json:"groups,omitempty" doc:"Of a workload: the groups of clusters that spread_constraints look at."`
}

// AffinityTried is what became of one affinity group.
type AffinityTried struct {
	AffinityName string `json:"affinity_name"`
	Result       string `json:"result" enum:"scheduled,kept,no_fit,unschedulable,not_tried" doc:"scheduled, kept (it has the workload and nothing has to change), no_fit (no cluster fits), unschedulable (clusters fit, but lack room or are too few), or not_tried."`
	Message      string `json:"message,omitempty"`
}

// The results of an affinity group.
const (
	AffinityScheduled     = "scheduled"
	AffinityKept          = "kept"
	AffinityNoFit         = "no_fit"
	AffinityUnschedulable = "unschedulable"
	AffinityNotTried      = "not_tried"
)

// GroupReason is one group of clusters as a spread constraint sees it.
type GroupReason struct {
	By       string `json:"by" doc:"region, zone, provider, or label \"key\"."`
	Group    string `json:"group"`
	Clusters int    `json:"clusters" doc:"Clusters of the group that fit."`
	Chosen   bool   `json:"chosen"`
	Reason   string `json:"reason,omitempty"`
}

// Rejection counts the clusters a filter removed on one ground.
type Rejection struct {
	Filter string `json:"filter"`
	On     string `json:"on,omitempty" doc:"The constraint, metric or resource the filter looked at."`
	Count  int    `json:"count"`
}

// OwnershipFilter is the filter that rejects the clusters of other namespaces.
const OwnershipFilter = "namespace"

// NearestMiss is a constraint that is the only one some clusters fail.
type NearestMiss struct {
	Filter string `json:"filter"`
	On     string `json:"on,omitempty" doc:"The constraint, taint, metric or resource the filter looked at."`
	Count  int    `json:"count" doc:"How many more clusters would fit without it."`
}

// Candidate is one cluster as the placement sees it.
type Candidate struct {
	Cluster  string `json:"cluster"`
	Selected bool   `json:"selected"`
	Current  bool   `json:"current" doc:"Part of the decision before this look."`
	Rank     int64  `json:"rank,omitempty" doc:"1 is best; absent for rejected clusters."`
	// Filter and Reason are set where the cluster was rejected; Reason alone where
	// it fits and a spread constraint passes it over.
	Filter string `json:"filter,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Tells is the metric whose value the reason tells, nil where it tells of none.
	Tells  *Key        `json:"-"`
	Score  *float64    `json:"score,omitempty"`
	Scores []ScorePart `json:"scores,omitempty"`
	// Replicas and the rest are of workloads; Reason then says how the number came
	// about.
	Replicas  *int64 `json:"replicas,omitempty" doc:"Of a workload: replicas the cluster gets."`
	Available *int64 `json:"available,omitempty" doc:"Of a workload: replicas the cluster has room for, those it has included. Absent = not known, taken as enough."`
	Weight    *int64 `json:"weight,omitempty" doc:"Of a workload: weight of the cluster in the division."`
	Tier      string `json:"tier,omitempty" doc:"Of a workload: the overflow affinity the cluster belongs to."`
}

// ScorePart is what one metric, the stickiness or one prioritizer adds to a
// score.
type ScorePart struct {
	Name   string   `json:"name"`
	Raw    *float64 `json:"raw,omitempty" doc:"Value as observed or written, also where it has expired. Absent = there is none."`
	Value  float64  `json:"value" doc:"Under metrics the normalised value, 0 to 1; under prioritizers the score, -100 to 100."`
	Weight float64  `json:"weight"`
	Share  float64  `json:"share" doc:"What it adds to the score: under metrics value x weight / sum of weights, under prioritizers value x weight."`
	// ExpiredAt and Reason tell a score that has expired from one that was never
	// there, and both from a 0.
	ExpiredAt *time.Time `json:"expired_at,omitempty" doc:"Since when the raw value no longer counts."`
	Reason    string     `json:"reason,omitempty" doc:"Why it counts as 0 although nobody scored it 0: expired, absent or not available, with the cause. Or that the figures are withheld, because the metric is of a namespace that the reader may not read."`
	// Tells is the metric whose value the part tells, nil where it is of something
	// else.
	Tells *Key `json:"-"`
}

// MoveMargin is the distance of the decision from its next change.
type MoveMargin struct {
	From   string  `json:"from" doc:"The chosen cluster that would go."`
	To     string  `json:"to" doc:"The cluster that would take its place."`
	Margin float64 `json:"margin" doc:"The challenger's score must rise by more than this. Negative: it would move now if it were not held."`
}

// Simulation asks what the server would decide, without changing anything.
type Simulation struct {
	Base    string            `json:"base,omitempty" doc:"live (default): lay the objects over the present state. empty: only the given objects." enum:"live,empty"`
	Now     *time.Time        `json:"now,omitempty" doc:"Moment of the pass. Default: the server's clock."`
	Objects []json.RawMessage `json:"objects,omitempty" doc:"Objects as the API shows them, status included."`
	Delete  []Key             `json:"delete,omitempty" doc:"Objects to leave out of the base."`
}

// SimulationResult is the answer to a Simulation.
type SimulationResult struct {
	Objects      []Object      `json:"objects"`
	Explanations []Explanation `json:"explanations"`
	Changes      []Change      `json:"changes"`
}

// Change is a decision that differs from the one before.
type Change struct {
	Key
	From []string `json:"from" doc:"Clusters before."`
	To   []string `json:"to" doc:"Clusters after."`
	// FromReplicas and ToReplicas are of workloads.
	FromReplicas map[string]int64 `json:"from_replicas,omitempty" doc:"Of a workload: replicas by cluster before."`
	ToReplicas   map[string]int64 `json:"to_replicas,omitempty" doc:"Of a workload: replicas by cluster after."`
	Message      string           `json:"message" doc:"The explanation's summary."`
}
