package karmada

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// Difference is a deliberately different decision.
type Difference struct {
	// Instead replaces the expectation of the case.
	Instead expectation
	// Room says that the difference is due to clusters without capacity: if they report no capacity, the case's own
	// expectation holds.
	Room bool
	// Reason says why, and which rule it follows from.
	Reason string
}

var unschedulable = expectation{Clusters: map[string]int64{}, Reason: api.ReasonUnschedulable}

// noRoom is the reason of most differences.
const noRoom = "a cluster that tells how much room it has gets no more than that, whatever the strategy (rule 9)"

// Differences lists the deliberately different decisions, by case ID. All other cases agree completely.
var Differences = map[string]Difference{
	"schedule-004": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-005": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-006": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-009": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-011": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-016": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-039": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-066": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-067": {
		Instead: expectation{Clusters: map[string]int64{"member2": 10}}, Room: true,
		Reason: noRoom + ", and spread constraints hold for static weights as well",
	},
	"schedule-067" + roomUnknown: {
		Instead: expectation{Clusters: map[string]int64{"member1": 10}},
		Reason:  "spread constraints hold for static weights as well (rule 9)",
	},
	"schedule-096": {Instead: unschedulable, Room: true, Reason: noRoom},
	"schedule-098": {Instead: unschedulable, Room: true, Reason: noRoom},
}

// Refusals lists the invalid fields in the cases of kind Validate, by ID.
var Refusals = map[string]string{
	"validate-001": "spec.placement.cluster_affinities",
	"validate-003": "spec.placement.cluster_affinity.field_selector[0].key",
	"validate-004": "spec.placement.cluster_affinity.field_selector[0].operator",
	"validate-005": "spec.placement.cluster_affinities[0].field_selector[0].key",
	"validate-006": "spec.placement.spread_constraints[0]",
	"validate-009": "spec.placement.spread_constraints[0].min_groups",
	"validate-013": "spec.placement.cluster_affinities[0].overflow_affinities",
	"validate-014": "spec.placement.cluster_affinities[0].overflow_affinities",
	"validate-017": "spec.placement.cluster_affinities[0].overflow_affinities",
	"validate-018": "spec.placement.cluster_affinities[0].overflow_affinities[1].affinity_name",
}
