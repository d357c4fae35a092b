package api

import "time"

// HistoryEntry is one change of a decision.
type HistoryEntry struct {
	Revision int64            `json:"revision" doc:"Revision of the store at which the decision was written. Give it as 'at' of an explanation to see the whole decision as it was."`
	Time     time.Time        `json:"time" doc:"When the decision was made."`
	Object   HistoryObject    `json:"object" doc:"Object that was decided."`
	Before   *HistoryDecision `json:"before,omitempty" doc:"Decision before. Absent if there was none."`
	After    *HistoryDecision `json:"after,omitempty" doc:"Decision after. Absent if the object was deleted."`
	Moved    []HistoryMove    `json:"moved" doc:"What moved from where to where."`
	Cause    Cause            `json:"cause" doc:"Change that led to it."`
	Actor    *HistoryActor    `json:"actor,omitempty" doc:"Who wrote what changed. Absent if nobody did, or if the reader may not know."`
	Margin   *HistoryMargin   `json:"margin,omitempty" doc:"By how much the new clusters were better. Absent if the old ones no longer fit."`
}

// HistoryObject identifies an object, also after another one has its name.
type HistoryObject struct {
	Key
	UID string `json:"uid,omitempty" doc:"UID of the object."`
}

// HistoryDecision is a decision: the clusters of a placement, the clusters of a workload with their
// replicas, or the host of a cluster or Magnum cluster.
type HistoryDecision struct {
	Clusters []string `json:"clusters" doc:"Chosen clusters, best first. Those of a workload are sorted by name. For a cluster or Magnum cluster, the chosen cloud or project."`
	// The remaining fields are set for workloads only.
	Replicas map[string]int64 `json:"replicas,omitempty" doc:"For a workload: replicas by cluster."`
	OnDemand map[string]int64 `json:"on_demand,omitempty" doc:"For a workload with a distribution: replicas on on-demand nodes by cluster."`
	Spot     map[string]int64 `json:"spot,omitempty" doc:"For a workload with a distribution: replicas on spot nodes by cluster."`
	// Flavors are what the replicas run on.
	Flavors map[string]string `json:"flavors,omitempty" doc:"For a workload that asks for flavors: flavor by cluster."`
}

// HistoryMove is a part of a decision that moved.
type HistoryMove struct {
	From     string `json:"from,omitempty" doc:"Cluster that was left. Absent if nothing was."`
	To       string `json:"to,omitempty" doc:"Cluster that was gained. Absent if nothing was."`
	Replicas *int64 `json:"replicas,omitempty" doc:"For a workload: number of replicas."`
}

// HistoryActor is who wrote something, as in the audit log.
type HistoryActor struct {
	Token     string `json:"token,omitempty" doc:"ID of the token, or the issuer and the subject of a JSON Web Token. Absent if the server required none."`
	RequestID string `json:"request_id,omitempty" doc:"ID of the request, as in the audit log."`
}

// HistoryMargin is how a decision that moved because of scores compares with the one before.
type HistoryMargin struct {
	OldScore float64 `json:"old_score" doc:"Present score of the best cluster that was left, with what speaks for staying."`
	NewScore float64 `json:"new_score" doc:"Score of the cluster that was gained, the lowest if there are several."`
	Needed   float64 `json:"needed" doc:"How much higher the new score had to be: 'min_improvement'."`
}

// RecordedKinds are the kinds whose decisions are in the history.
var RecordedKinds = []Kind{KindPlacement, KindWorkload, KindCluster, KindMagnumCluster}

// HistoryPage is a part of the history.
type HistoryPage struct {
	Items []HistoryEntry `json:"items" doc:"Changes of decisions."`
	Gaps  []HistoryGap   `json:"gaps,omitempty" doc:"Times in which decisions may be missing, because a server of an earlier version made them."`
	// Continue is where the next page begins.
	Continue string `json:"continue,omitempty" doc:"Token for the next page. Absent on the last one."`
	Revision int64  `json:"revision" doc:"Revision of the store at which the page was read."`
}

// HistoryGap is a part of the history in which decisions may be missing.
type HistoryGap struct {
	Since  int64  `json:"since" doc:"Revision after which decisions may be missing."`
	Until  int64  `json:"until" doc:"Revision before which decisions may be missing."`
	Reason string `json:"reason" doc:"Why."`
}
