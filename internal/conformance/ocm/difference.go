package ocm

// Difference is a deliberately different result.
type Difference struct {
	// Expectations are those of the case that do not hold here.
	Expectations []string
	// Reason says why, and which rule it follows from.
	Reason string
}

// Differences lists the deliberately different results, by case ID. All other cases agree completely.
var Differences = map[string]Difference{
	"der-17": {[]string{"decisions", "status_code", "status_message"}, "the prioritizer spread is implemented (section 3.1)"},
	"der-24": {[]string{"status_message"}, "that scores have expired is a condition (rule 7); which ones is in the explanation, so that it is not rewritten with every agent that comes late"},
	"der-33": {[]string{"decisions"}, "a cluster with a PreferNoSelect taint ranks last among equals (rule 6); the scores are the same"},
	"der-44": {[]string{"decisions", "status_code"}, "semver(text, true), which Open Cluster Management documents, compiles"},
	"der-49": {[]string{"decision_groups"}, "groups keep the order of the ranking, best first (section 3.1, status of a placement)"},
	"int-09": {[]string{"satisfied"}, "there are no bindings: a set says itself which namespaces may use it, so a set that is gone is one that is not usable"},

	"more-cel-04":     {[]string{"decision_set"}, "expired scores count as none, in expressions, too (rule 7)"},
	"more-default-01": {[]string{"decisions"}, "what other placements decide never moves a decision that answers the spec (rule 4: the spec did not change, and neither did the cluster's own score)"},
	"more-default-02": {[]string{"decisions"}, "as more-default-01; ties go to the present cluster besides (rule 5)"},
	"more-policy-05":  {[]string{"status_code"}, "a name that is not known is refused, whatever its weight (rule 8)"},
	"more-set-02":     {[]string{"satisfied"}, "the sets are named in the order of their names: how a placement orders them makes no difference"},
	"more-steady-01":  {[]string{"decisions"}, "with a negative weight of steady a decision would leave its clusters as soon as it is made; it only says where a changed spec goes"},
	"more-steady-03":  {[]string{"decisions"}, "a decision is written again when its clusters change, not when their order does: scores and ranks are those of the decision (section 3.1, status of a placement)"},
	"more-taint-03":   {[]string{"requeue_at"}, "the moment is known with the decision that rests on the toleration (rule 6)"},
}

// Refusal is the rejection of a spec that Open Cluster Management accepts and then calls misconfigured.
type Refusal struct {
	// Field is the invalid field, Message a part of its error.
	Field, Message string
}

// Refusals lists the cases with such a spec, by ID: an invalid spec is never stored (rule 8).
var Refusals = map[string]Refusal{
	"der-16":         {"spec.prioritizer_policy.configurations[0].name", `"NoSuch"`},
	"der-38":         {"spec.predicates[0].label_selector.match_expressions[0].operator", `"Bogus"`},
	"der-47":         {"spec.decision_strategy.clusters_per_decision_group", `"abc"`},
	"pred-10":        {"spec.predicates[0].cel[0]", `invalid`},
	"more-policy-06": {"spec.prioritizer_policy.mode", `"other"`},
	"sched-03":       {"spec.tolerations[0].operator", "If the key is empty, operator must be Exists."},
	"taint-03":       {"spec.tolerations[0].operator", "If the key is empty, operator must be Exists."},
}
