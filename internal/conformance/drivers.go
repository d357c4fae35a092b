package conformance

// drivers lists the packages that run the cases, by group or, for exceptions, by ID.
var drivers = map[string][]string{
	"karmada/affinity_order":      {"internal/conformance/karmada"},
	"karmada/apportion":           {"internal/engine/division"},
	"karmada/apportion_uid":       {"internal/engine/division"},
	"karmada/eviction_task":       {"internal/conformance/karmada"},
	"karmada/group_score":         {"internal/engine/division"},
	"karmada/group_score_compare": {"internal/engine/division"},
	"karmada/match":               {"internal/conformance/karmada"},
	"karmada/placement_changed":   {"internal/conformance/karmada"},
	"karmada/schedule":            {"internal/conformance/karmada", "internal/engine/division"},
	"karmada/select_groups":       {"internal/engine/division"},
	"karmada/select_regions":      {"internal/engine/division"},
	"karmada/select_scored":       {"internal/engine/division"},
	"karmada/taint_eviction":      {"internal/conformance/karmada"},
	"karmada/validate":            {"internal/conformance/karmada"},

	// These depend on more than clusters with capacity, which division does not see.
	"schedule-043": {"internal/conformance/karmada"},
	"schedule-044": {"internal/conformance/karmada"},
	"schedule-045": {"internal/conformance/karmada"},
	"schedule-046": {"internal/conformance/karmada"},
	"schedule-047": {"internal/conformance/karmada"},
	"schedule-074": {"internal/conformance/karmada"},
	"schedule-075": {"internal/conformance/karmada"},
	"schedule-077": {"internal/conformance/karmada"},
	"schedule-079": {"internal/conformance/karmada"},
	"schedule-084": {"internal/conformance/karmada"},
	"schedule-092": {"internal/conformance/karmada"},
	"schedule-093": {"internal/conformance/karmada"},
	"schedule-097": {"internal/conformance/karmada"},

	"ocm/schedule": {"internal/conformance/ocm"},
	"ocm/enqueue":  {"internal/conformance/ocm"},

	"krake/label_constraint":        {"internal/constraint"},
	"krake/metric_constraint":       {"internal/constraint"},
	"krake/metric_constraint_match": {"internal/constraint", "internal/engine/placement"},
	"krake/normalize":               {"internal/engine/placement"},
	"krake/score":                   {"internal/engine/placement"},
	"krake/select_cluster":          {"internal/engine/placement"},
	"krake/stickiness":              {"internal/engine/placement"},
	"krake/timestamps":              {"internal/engine/placement"},
	"krake/migration":               {"internal/engine/placement"},
	"krake/observer":                {"internal/signal/kubernetes"},
	"krake/inherit":                 {"internal/reconcile"},
	"krake/provider_prometheus":     {"internal/signal/prometheus"},
	"krake/provider_kafka":          {"internal/signal/ksql"},
	"krake/provider_influx":         {"internal/signal/influx"},
	"krake/provider_static":         {"internal/signal"},
	"krake/provider_scope":          {"internal/signal"},
	"krake/select_cloud":            {"internal/reconcile"},
	"krake/cluster_intake":          {"internal/reconcile"},
	"krake/select_project":          {"internal/reconcile"},

	"arktos/az_aggregate": {"internal/signal/openstack"},
	"arktos/delta":        {"internal/signal/openstack"},
	"arktos/reachability": {"internal/signal/openstack"},
	"arktos/storage":      {"internal/signal/openstack"},
	"arktos/eip":          {"internal/signal/openstack"},
	"arktos/flavor_count": {"internal/conformance/arktos"},
	"arktos/push":         {"internal/httpapi"},
	"arktos/cluster_api":  {"internal/httpapi"},
	"arktos/site_filter":  {"internal/conformance/arktos"},
	"arktos/site_score":   {"internal/conformance/arktos"},
	"arktos/strategy":     {"internal/conformance/arktos"},
	"arktos/pipeline":     {"internal/conformance/arktos"},
	"A087":                {"internal/conformance/arktos", "internal/engine/binding"},
	"A089":                {"internal/conformance/arktos", "internal/engine/binding"},
	// All replicas of a workload are alike, so one flavor is chosen on a site.
	"A091": {"internal/engine/binding"},
	"A092": {"internal/engine/binding"},
	"A093": {"internal/engine/binding"},
	"A123": {"internal/httpapi"},

	"vmanager/target_split":    {"internal/engine/split", "provider"},
	"vmanager/label_validate":  {"internal/spot/webhook"},
	"vmanager/next_pod":        {"internal/engine/split"},
	"V036":                     {"internal/engine/split"},
	"V037":                     {"internal/engine/split"},
	"V067":                     {"internal/spot/webhook"},
	"V068":                     {"internal/spot/webhook"},
	"vmanager/affinity_patch":  {"internal/spot/webhook"},
	"vmanager/delete_pod":      {"internal/engine/split"},
	"vmanager/deletion_cost":   {"internal/engine/split"},
	"vmanager/topology_spread": {"internal/engine/split", "provider"},
}

// noRetries is why cases about counting retries do not apply.
const noRetries = "a placement that finds no cluster has no retries to use up: it is decided again when something that it depends on changes, and reschedule_after is the only delay (rule 4)"

// notCreated is why cases about creating clusters do not apply.
const notCreated = "a placement does not create clusters (auto_cluster_create); a configuration does, from the cloud of a scheduler_cluster"

// LeftOut lists the cases that do not apply, by ID, with the reason.
var LeftOut = map[string]string{
	"K214": "a placement has no failed state: one that cannot be decided keeps its last good decision, with a condition (rule 8)",
	"K223": noRetries,
	"K225": noRetries,
	"K226": noRetries,
	"K227": noRetries,
	"K230": noRetries,
	"K231": noRetries,
	"K293": "there is no state FAILED: a cluster that no cloud fits is asked again when clouds change",
	"K303": notCreated,
	"K305": notCreated,
	"K306": notCreated,
	"K308": notCreated,
	"K310": notCreated,
	"K313": "there is no application controller with retries and an observer that polls: health probes have an interval of their own (section 3.1)",

	"V073": "what is not known of a workload is asked for, not waited for: there are no retries to count",

	"estimate_model-002": "clusters have no resource models: what they report is what they have room for",
	"estimate_model-004": "clusters have no resource models: what they report is what they have room for",
}
