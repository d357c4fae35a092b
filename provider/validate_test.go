package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// badFields violates every rule of every field once: the attribute, a value for its top-level attribute, and the
// attribute that the error must name.
var badFields = []struct {
	resource  string
	attribute string
	value     any
	at        string
}{
	{"scheduler_cluster", "name", "East", "name"},
	{"scheduler_cluster", "namespace", "No_Name", "namespace"},
	{"scheduler_cluster", "namespace", "", "namespace"},
	{"scheduler_cluster", "labels", doc{"a b": "x"}, `labels["a b"]`},
	{"scheduler_cluster", "labels", doc{"a": "not ok!"}, `labels["a"]`},
	{"scheduler_cluster", "labels", doc{"a": nil}, `labels["a"]`},
	{"scheduler_cluster", "zones", list{"a", "a"}, "zones"},
	{"scheduler_cluster", "zones", list{""}, "zones"},
	{"scheduler_cluster", "api_resources", list{}, "api_resources"},
	{"scheduler_cluster", "description", "red: \x1b[31m", "description"},
	{"scheduler_cluster", "namespaces", list{}, "namespaces"},
	{"scheduler_placement", "cluster_names", list{}, "cluster_names"},
	{"scheduler_placement", "cluster_sets", list{}, "cluster_sets"},
	{"scheduler_placement", "predicates", list{}, "predicates"},
	{"scheduler_metric", "allowed_values", list{}, "allowed_values"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinities": list{}}, "placement.cluster_affinities"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinity": doc{"cluster_names": list{}}}, "placement.cluster_affinity.cluster_names"},
	{"scheduler_cluster", "custom_resources", list{"crontabs"}, "custom_resources[0]"},
	{"scheduler_cluster", "metrics", list{doc{"name": "A"}}, "metrics[0].name"},
	{"scheduler_cluster", "metrics", list{doc{"name": "a"}, doc{"name": "a"}}, "metrics[1].name"},
	{"scheduler_cluster", "metrics", list{doc{"name": "a", "namespace": "B"}}, "metrics[0].namespace"},
	{"scheduler_cluster", "metrics", list{doc{"name": "a", "weight": -1}}, "metrics[0].weight"},
	{"scheduler_cluster", "metrics", list{doc{"name": "a", "weight": 0}}, "metrics"},
	{"scheduler_cluster", "capacity", doc{"cpu": "many"}, `capacity["cpu"]`},
	{"scheduler_cluster", "allocatable", doc{"cpu": "-1"}, `allocatable["cpu"]`},
	{"scheduler_cluster", "allocated", doc{"c p u": "1"}, `allocated["c p u"]`},
	{"scheduler_cluster", "health", doc{"url": "localhost"}, "health.url"},
	{"scheduler_cluster", "health", doc{"interval": "1"}, "health.interval"},
	{"scheduler_cluster", "health", doc{"interval": ""}, "health.interval"},
	{"scheduler_cluster", "health", doc{"failure_threshold": 0}, "health.failure_threshold"},
	{"scheduler_cluster", "health", doc{"success_threshold": -1}, "health.success_threshold"},
	{"scheduler_cluster", "health", doc{"success_threshold": 1.5}, "health.success_threshold"},
	{"scheduler_cluster", "kubernetes", doc{"kubeconfig_wo_version": 1.5}, "kubernetes.kubeconfig_wo_version"},
	{"scheduler_cluster", "timeouts", doc{"create": "0s"}, "timeouts.create"},
	{"scheduler_cluster", "timeouts", doc{"delete": "soon"}, "timeouts.delete"},

	{"scheduler_cluster", "claims", doc{"a b": "x"}, `claims["a b"]`},
	{"scheduler_cluster", "claims", doc{"a": strings.Repeat("x", 1025)}, `claims["a"]`},
	{"scheduler_cluster", "taints", list{doc{"key": "", "effect": "NoSelect"}}, "taints"},
	{"scheduler_cluster", "taints", list{doc{"key": api.TaintUnreachable, "effect": "NoSelect"}}, "taints"},
	{"scheduler_cluster", "taints", list{doc{"key": "a", "effect": "Sometimes"}}, "taints"},
	{"scheduler_cluster", "taints", list{doc{"key": "a", "effect": "NoSelect"}, doc{"key": "a", "effect": "NoExecute"}}, "taints"},
	{"scheduler_cluster", "taints", list{doc{"key": "a", "value": strings.Repeat("x", 1025), "effect": "NoSelect"}}, "taints"},

	{"scheduler_cluster_set", "name", "EU", "name"},
	{"scheduler_cluster_set", "selector", nil, "selector"},
	{"scheduler_cluster_set", "selector", doc{"match_labels": doc{"a b": "x"}}, `selector.match_labels["a b"]`},
	{"scheduler_cluster_set", "selector", doc{"match_expressions": list{doc{"key": "", "operator": "Exists"}}}, "selector.match_expressions[0].key"},
	{"scheduler_cluster_set", "selector", doc{"match_expressions": list{doc{"key": "a", "operator": "Is"}}}, "selector.match_expressions[0].operator"},
	{"scheduler_cluster_set", "selector", doc{"match_expressions": list{doc{"key": "a", "operator": "In"}}}, "selector.match_expressions[0].values"},
	{"scheduler_cluster_set", "selector", doc{"match_expressions": list{doc{"key": "a", "operator": "Exists", "values": list{"x"}}}}, "selector.match_expressions[0].values"},
	{"scheduler_cluster_set", "clusters", list{"berlin"}, "clusters"},
	{"scheduler_cluster_set", "clusters", list{"Berlin"}, "clusters[0]"},
	{"scheduler_cluster_set", "namespaces", list{"shop", "shop"}, "namespaces[1]"},
	{"scheduler_cluster_set", "namespaces", list{"My Shop"}, "namespaces[0]"},

	{"scheduler_placement_score", "name", "A", "name"},
	{"scheduler_placement_score", "cluster", "", "cluster"},
	{"scheduler_placement_score", "cluster", "East", "cluster"},
	{"scheduler_placement_score", "scores", doc{"load": 101}, `scores["load"]`},
	{"scheduler_placement_score", "scores", doc{"load": -101}, `scores["load"]`},
	{"scheduler_placement_score", "scores", doc{"load": 1.5}, `scores["load"]`},
	{"scheduler_placement_score", "scores", doc{"-": 1}, `scores["-"]`},
	{"scheduler_placement_score", "scores", doc{"load": nil}, `scores["load"]`},
	{"scheduler_placement_score", "valid_until", "tomorrow", "valid_until"},

	{"scheduler_metrics_provider", "name", "-a", "name"},
	{"scheduler_metrics_provider", "namespace", "A", "namespace"},
	{"scheduler_metrics_provider", "type", "oracle", "type"},
	{"scheduler_metrics_provider", "prometheus", nil, "prometheus"},
	{"scheduler_metrics_provider", "prometheus", doc{"url": "ftp://x"}, "prometheus.url"},
	{"scheduler_metrics_provider", "static", doc{}, "static"},
	{"scheduler_metrics_provider", "static", doc{"metrics": doc{"a": nil}}, `static.metrics["a"]`},
	{"scheduler_metrics_provider", "interval", "1ms", "interval"},
	{"scheduler_metrics_provider", "timeout", "soon", "timeout"},
	{"scheduler_metrics_provider", "timeout", "", "timeout"},
	{"scheduler_metrics_provider", "headers_wo", doc{"a b": "x"}, "headers_wo"},
	{"scheduler_metrics_provider", "headers_wo", doc{"a": "b\n"}, `headers_wo["a"]`},
	{"scheduler_metrics_provider", "bearer_token_wo", "abc\n", "bearer_token_wo"},
	{"scheduler_metrics_provider", "ca_cert", "no certificate", "ca_cert"},

	{"scheduler_metric", "name", strings.Repeat("a", 64), "name"},
	{"scheduler_metric", "namespace", "A", "namespace"},
	{"scheduler_metric", "labels", doc{"/": "x"}, `labels["/"]`},
	{"scheduler_metric", "max", -1, "max"},
	{"scheduler_metric", "min", json.Number("-1e400"), "min"},
	{"scheduler_metric", "allowed_values", list{0.5, 7}, "allowed_values[1]"},
	{"scheduler_metric", "allowed_values", list{nil}, "allowed_values[0]"},
	{"scheduler_metric", "metrics_provider", doc{"name": "P", "metric": "m"}, "metrics_provider.name"},
	{"scheduler_metric", "metrics_provider", doc{"name": "p", "metric": ""}, "metrics_provider.metric"},
	{"scheduler_metric", "direction", "sideways", "direction"},
	{"scheduler_metric", "on_failure", "panic", "on_failure"},
	{"scheduler_metric", "max_age", "-1s", "max_age"},

	{"scheduler_placement", "name", "", "name"},
	{"scheduler_placement", "namespace", "", "namespace"},
	{"scheduler_placement", "labels", doc{"": "x"}, `labels[""]`},
	{"scheduler_placement", "number_of_clusters", -1, "number_of_clusters"},
	{"scheduler_placement", "number_of_clusters", 1.5, "number_of_clusters"},
	{"scheduler_placement", "number_of_clusters", json.Number("1e30"), "number_of_clusters"},
	{"scheduler_placement", "cluster_names", list{"berlin", "Berlin"}, "cluster_names[1]"},
	{"scheduler_placement", "exclude_clusters", list{"Berlin"}, "exclude_clusters[0]"},
	{"scheduler_placement", "kubernetes_version", "", "kubernetes_version"},
	{"scheduler_placement", "kubernetes_version", ">= 1.33 < 2", "kubernetes_version"},
	{"scheduler_placement", "label_constraints", list{"location is DE", "location >"}, "label_constraints[1]"},
	{"scheduler_placement", "label_constraints", list{nil}, "label_constraints[0]"},
	{"scheduler_placement", "metric_constraints", list{"load is a lot"}, "metric_constraints[0]"},
	{"scheduler_placement", "metric_constraint_basis", "guess", "metric_constraint_basis"},
	{"scheduler_placement", "custom_resources", list{"a.b", "a.b"}, "custom_resources[1]"},
	{"scheduler_placement", "resource_requests", doc{"cpu": "one"}, `resource_requests["cpu"]`},
	{"scheduler_placement", "strategy", "luck", "strategy"},
	{"scheduler_placement", "metrics", doc{"stickiness": -0.1}, "metrics.stickiness"},
	{"scheduler_placement", "reschedule_after", "later", "reschedule_after"},
	{"scheduler_placement", "min_improvement", -1, "min_improvement"},
	{"scheduler_placement", "cluster_sets", list{"eu", "eu"}, "cluster_sets[1]"},
	{"scheduler_placement", "cluster_sets", list{"EU"}, "cluster_sets[0]"},
	{"scheduler_placement", "predicates", list{doc{"label_selector": doc{"match_labels": doc{"a b": "x"}}}}, `predicates[0].label_selector.match_labels["a b"]`},
	{"scheduler_placement", "predicates", list{doc{}, doc{"claim_selector": doc{"match_expressions": list{doc{"key": "a", "operator": "NotIn"}}}}}, "predicates[1].claim_selector.match_expressions[0].values"},
	{"scheduler_placement", "predicates", list{doc{"cel": list{nil}}}, "predicates[0].cel[0]"},
	{"scheduler_placement", "predicates", list{doc{"cel": list{"true", "managedCluster.("}}}, "predicates[0].cel[1]"},
	{"scheduler_placement", "tolerations", list{doc{"operator": "Equal"}}, "tolerations[0].operator"},
	{"scheduler_placement", "tolerations", list{doc{"key": "a", "operator": "Like"}}, "tolerations[0].operator"},
	{"scheduler_placement", "tolerations", list{doc{"key": "a", "operator": "Exists", "value": "x"}}, "tolerations[0].value"},
	{"scheduler_placement", "tolerations", list{doc{"key": "a", "effect": "Never"}}, "tolerations[0].effect"},
	{"scheduler_placement", "tolerations", list{doc{"key": "a", "toleration_seconds": 0.5}}, "tolerations[0].toleration_seconds"},
	{"scheduler_placement", "spread_constraints", list{doc{"topology_key": "moon", "type": "Field"}}, "spread_constraints[0].topology_key"},
	{"scheduler_placement", "spread_constraints", list{doc{"topology_key": "a", "type": "Colour"}}, "spread_constraints[0].type"},
	{"scheduler_placement", "spread_constraints", list{doc{"topology_key": "a", "max_skew": 0}}, "spread_constraints[0].max_skew"},
	{"scheduler_placement", "spread_constraints", list{doc{"topology_key": "a", "when_unsatisfiable": "Cry"}}, "spread_constraints[0].when_unsatisfiable"},
	{"scheduler_placement", "spread_constraints", list{doc{"topology_key": "a"}, doc{"topology_key": "a"}}, "spread_constraints[1].topology_key"},
	{"scheduler_placement", "prioritizer_policy", doc{}, "prioritizer_policy"},
	{"scheduler_placement", "decision_strategy", doc{"clusters_per_decision_group": "0"}, "decision_strategy.clusters_per_decision_group"},
	{"scheduler_placement", "decision_strategy", doc{"decision_groups": list{doc{"name": "x"}}}, "decision_strategy.decision_groups[0].name"},

	{rated, "metrics", doc{}, "metrics"},
	{rated, "prioritizer_policy", doc{"mode": "both"}, "prioritizer_policy.mode"},
	{rated, "prioritizer_policy", doc{"configurations": list{doc{"name": "luck"}}}, "prioritizer_policy.configurations[0].name"},
	{rated, "prioritizer_policy", doc{"configurations": list{doc{"type": "oracle", "name": "steady"}}}, "prioritizer_policy.configurations[0].type"},
	{rated, "prioritizer_policy", doc{"configurations": list{doc{"name": "steady", "score_name": "x"}}}, "prioritizer_policy.configurations[0].score_name"},
	{rated, "prioritizer_policy", doc{"configurations": list{doc{"type": "addon", "score_name": "x"}}}, "prioritizer_policy.configurations[0].resource_name"},
	{rated, "prioritizer_policy", doc{"configurations": list{doc{"type": "addon", "resource_name": "x"}}}, "prioritizer_policy.configurations[0].score_name"},
	{rated, "prioritizer_policy", doc{"configurations": list{doc{"type": "metric", "name": "A"}}}, "prioritizer_policy.configurations[0].name"},
	{rated, "prioritizer_policy", doc{"configurations": list{doc{"name": "steady", "weight": 11}}}, "prioritizer_policy.configurations[0].weight"},
	{rated, "prioritizer_policy", doc{"configurations": list{doc{"name": "steady", "weight": -0.5}}}, "prioritizer_policy.configurations[0].weight"},

	{"scheduler_cluster", "api_resources", list{"Deployment"}, "api_resources[0]"},
	{"scheduler_cluster", "api_resources", list{"v1/ConfigMap", "apps/v1/"}, "api_resources[1]"},
	{"scheduler_cluster", "api_resources", list{"v1/Pod", "v1/Pod"}, "api_resources[1]"},

	{"scheduler_cluster", "spot", doc{"node_type_key": "a b"}, "spot.node_type_key"},
	{"scheduler_cluster", "spot", doc{"node_type_key": ""}, "spot.node_type_key"},
	{"scheduler_cluster", "spot", doc{"on_disable": "panic"}, "spot.on_disable"},
	{"scheduler_cluster", "spot", doc{"on_disable": ""}, "spot.on_disable"},

	{"scheduler_workload", "distribution", doc{"mode": "all-in-spot"}, "distribution.mode"},
	{"scheduler_workload", "distribution", doc{"mode": ""}, "distribution.mode"},
	{"scheduler_workload", "distribution", doc{"mode": "custom"}, "distribution.custom_on_demand"},
	{"scheduler_workload", "distribution", doc{"mode": "custom", "custom_on_demand": ""}, "distribution.custom_on_demand"},
	{"scheduler_workload", "distribution", doc{"mode": "custom", "custom_on_demand": "-1"}, "distribution.custom_on_demand"},
	{"scheduler_workload", "distribution", doc{"mode": "custom", "custom_on_demand": "101%"}, "distribution.custom_on_demand"},
	{"scheduler_workload", "distribution", doc{"mode": "all_in_spot", "custom_on_demand": "some"}, "distribution.custom_on_demand"},
	{allocated, "distribution", doc{}, "distribution"},

	{"scheduler_workload", "name", "Web", "name"},
	{"scheduler_workload", "namespace", "", "namespace"},
	{"scheduler_workload", "labels", doc{"a b": "x"}, `labels["a b"]`},
	{"scheduler_workload", "api_version", "", "api_version"},
	{"scheduler_workload", "api_version", "apps/", "api_version"},
	{"scheduler_workload", "kind", "deployment.apps", "kind"},
	{"scheduler_workload", "replicas", -1, "replicas"},
	{"scheduler_workload", "replicas", 1 << 31, "replicas"},
	{"scheduler_workload", "replicas", 1.5, "replicas"},
	{"scheduler_workload", "replica_requests", doc{"cpu": "some"}, `replica_requests["cpu"]`},
	{"scheduler_workload", "replica_requests", doc{"cpu": nil}, `replica_requests["cpu"]`},
	{"scheduler_workload", "priority", 0.5, "priority"},
	{"scheduler_workload", "wait", doc{"for": "godot"}, "wait.for"},
	{"scheduler_placement", "wait", doc{"for": "distributed"}, "wait.for"},
	{"scheduler_workload", "wait", doc{"on_timeout": "cry"}, "wait.on_timeout"},
	{"scheduler_workload", "preview_token_wo", "", "preview_token_wo"},

	{"scheduler_propagation_policy", "name", "", "name"},
	{"scheduler_propagation_policy", "namespace", "", "namespace"},
	{"scheduler_propagation_policy", "namespace", "My Shop", "namespace"},
	{"scheduler_propagation_policy", "labels", doc{"/": "x"}, `labels["/"]`},
	{"scheduler_propagation_policy", "resource_selectors", list{}, "resource_selectors"},
	{"scheduler_propagation_policy", "resource_selectors", list{doc{"api_version": "x/y/z", "kind": "Deployment"}}, "resource_selectors[0].api_version"},
	{"scheduler_propagation_policy", "resource_selectors", list{doc{"api_version": "v1", "kind": ""}}, "resource_selectors[0].kind"},
	{"scheduler_propagation_policy", "resource_selectors", list{doc{"api_version": "v1", "kind": "Pod", "namespace": "bank"}}, "resource_selectors[0].namespace"},
	{"scheduler_propagation_policy", "resource_selectors", list{doc{"api_version": "v1", "kind": "Pod", "namespace": ""}}, "resource_selectors[0].namespace"},
	{"scheduler_propagation_policy", "resource_selectors", list{doc{"api_version": "v1", "kind": "Pod", "name": "A"}}, "resource_selectors[0].name"},
	{"scheduler_propagation_policy", "resource_selectors", list{doc{"api_version": "v1", "kind": "Pod", "label_selector": doc{"match_labels": doc{"a b": "x"}}}}, `resource_selectors[0].label_selector.match_labels["a b"]`},
	{"scheduler_propagation_policy", "preemption", "Sometimes", "preemption"},
	{"scheduler_propagation_policy", "preemption", "Always", "resource_selectors[0].name"},
	{"scheduler_propagation_policy", "workload_preemption", "Always", "workload_preemption"},
	{"scheduler_propagation_policy", "priority", 0.5, "priority"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinity": doc{}, "cluster_affinities": list{doc{"affinity_name": "a"}}}, "placement.cluster_affinities"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinity": doc{"cluster_names": list{"A"}}}, "placement.cluster_affinity.cluster_names[0]"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinity": doc{"exclude_clusters": list{""}}}, "placement.cluster_affinity.exclude_clusters[0]"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinity": doc{"label_selector": doc{"match_expressions": list{doc{"key": "a", "operator": "Is"}}}}}, "placement.cluster_affinity.label_selector.match_expressions[0].operator"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinity": doc{"field_selector": list{doc{"key": "moon", "operator": "In", "values": list{"a"}}}}}, "placement.cluster_affinity.field_selector[0].key"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinity": doc{"field_selector": list{doc{"key": "zone", "operator": "Exists", "values": list{"a"}}}}}, "placement.cluster_affinity.field_selector[0].operator"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinity": doc{"field_selector": list{doc{"key": "zone", "operator": "In", "values": list{}}}}}, "placement.cluster_affinity.field_selector[0].values"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinities": list{doc{"affinity_name": ""}}}, "placement.cluster_affinities[0].affinity_name"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinities": list{doc{"affinity_name": strings.Repeat("a", 33)}}}, "placement.cluster_affinities[0].affinity_name"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinities": list{doc{"affinity_name": "a"}, doc{"affinity_name": "a"}}}, "placement.cluster_affinities[1].affinity_name"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinities": list{doc{"affinity_name": "a", "cluster_names": list{"No Name"}}}}, "placement.cluster_affinities[0].cluster_names[0]"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_affinities": list{doc{"affinity_name": "a", "cluster_names": list{"b"}, "overflow_affinities": list{doc{"affinity_name": "c"}}}}}, "placement.cluster_affinities[0].overflow_affinities"},
	{"scheduler_propagation_policy", "placement", doc{
		"cluster_affinities": list{doc{"affinity_name": "a", "overflow_affinities": list{doc{"affinity_name": "c"}}}}, "replica_scheduling": doc{"division_preference": "Aggregated"},
	}, "placement.cluster_affinities[0].overflow_affinities"},
	{"scheduler_propagation_policy", "placement", doc{
		"cluster_affinities": list{doc{"affinity_name": "a", "cluster_names": list{"b"}, "overflow_affinities": list{doc{"affinity_name": "a"}}}}, "replica_scheduling": doc{"division_preference": "Aggregated"},
	}, "placement.cluster_affinities[0].overflow_affinities[0].affinity_name"},
	{"scheduler_propagation_policy", "placement", doc{"cluster_tolerations": list{doc{"key": "a", "operator": "Like"}}}, "placement.cluster_tolerations[0].operator"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"spread_by_field": "moon"}}}, "placement.spread_constraints[0].spread_by_field"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"spread_by_field": ""}}}, "placement.spread_constraints[0].spread_by_field"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"spread_by_label": "a b"}}}, "placement.spread_constraints[0].spread_by_label"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"spread_by_label": ""}}}, "placement.spread_constraints[0].spread_by_label"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"spread_by_field": "cluster", "spread_by_label": "a"}}}, "placement.spread_constraints[0]"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{}, doc{}}}, "placement.spread_constraints[1]"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"spread_by_field": "zone"}}}, "placement.spread_constraints"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"min_groups": 0}}}, "placement.spread_constraints[0].min_groups"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"max_groups": -1}}}, "placement.spread_constraints[0].max_groups"},
	{"scheduler_propagation_policy", "placement", doc{"spread_constraints": list{doc{"min_groups": 3, "max_groups": 2}}}, "placement.spread_constraints[0].max_groups"},
	{"scheduler_propagation_policy", "placement", doc{"replica_scheduling": doc{"type": "Shared"}}, "placement.replica_scheduling.type"},
	{"scheduler_propagation_policy", "placement", doc{"replica_scheduling": doc{"division_preference": "Fair"}}, "placement.replica_scheduling.division_preference"},
	{"scheduler_propagation_policy", "placement", doc{"replica_scheduling": doc{"weight_preference": doc{"dynamic_weight": "Load"}}}, "placement.replica_scheduling.weight_preference.dynamic_weight"},
	{"scheduler_propagation_policy", "placement", doc{"replica_scheduling": doc{"weight_preference": doc{"static_weights": list{doc{"weight": 0}}}}}, "placement.replica_scheduling.weight_preference.static_weights[0].weight"},
	{"scheduler_propagation_policy", "placement", doc{"replica_scheduling": doc{"weight_preference": doc{"static_weights": list{doc{"weight": 1, "affinity": doc{"cluster_names": list{"A"}}}}}}}, "placement.replica_scheduling.weight_preference.static_weights[0].affinity.cluster_names[0]"},
	{"scheduler_propagation_policy", "placement", doc{"replica_scheduling": doc{"cluster_limits": list{doc{}}}}, "placement.replica_scheduling.cluster_limits[0]"},
	{"scheduler_propagation_policy", "placement", doc{"replica_scheduling": doc{"cluster_limits": list{doc{"min_replicas": -1}}}}, "placement.replica_scheduling.cluster_limits[0].min_replicas"},
	{"scheduler_propagation_policy", "placement", doc{"replica_scheduling": doc{"cluster_limits": list{doc{"min_replicas": 3, "max_replicas": 2}}}}, "placement.replica_scheduling.cluster_limits[0].max_replicas"},
	{"scheduler_propagation_policy", "failover", doc{"cluster": doc{"purge_mode": "Never"}}, "failover.cluster.purge_mode"},
	{"scheduler_propagation_policy", "failover", doc{"cluster": doc{"purge_mode": "Directly", "grace_period": "1m"}}, "failover.cluster.grace_period"},
	{"scheduler_propagation_policy", "failover", doc{"cluster": doc{"grace_period": "0s"}}, "failover.cluster.grace_period"},
	{"scheduler_propagation_policy", "failover", doc{"application": doc{"purge_mode": "Soon"}}, "failover.application.purge_mode"},
	{"scheduler_propagation_policy", "failover", doc{"application": doc{"toleration": "-1s"}}, "failover.application.toleration"},
	{"scheduler_propagation_policy", "failover", doc{"application": doc{"grace_period": ""}}, "failover.application.grace_period"},
	{"scheduler_propagation_policy", "fail_back", doc{"mode": "later"}, "fail_back.mode"},
	{"scheduler_propagation_policy", "fail_back", doc{"stabilization": "a while"}, "fail_back.stabilization"},

	{"scheduler_role", "name", "viewer", "name"},
	{"scheduler_role", "rules", list{}, "rules"},
	{"scheduler_role", "rules", list{doc{"verbs": list{}}}, "rules[0].verbs"},
	{"scheduler_role", "rules", list{doc{"verbs": list{"administer"}}}, "rules[0].verbs[0]"},
	{"scheduler_role", "rules", list{doc{"verbs": list{"read", "read"}}}, "rules[0].verbs[1]"},
	{"scheduler_role", "rules", list{doc{"verbs": list{"read"}, "kinds": list{"pod"}}}, "rules[0].kinds[0]"},
	{"scheduler_role", "rules", list{doc{"verbs": list{"read"}, "kinds": list{"role"}}}, "rules[0].kinds[0]"},
	{"scheduler_role", "rules", list{doc{"verbs": list{"read"}, "kinds": list{}}}, "rules[0].kinds"},
	{"scheduler_role", "rules", list{doc{"verbs": list{"read"}, "namespaces": list{}}}, "rules[0].namespaces"},
	{"scheduler_role", "rules", list{doc{"verbs": list{"read"}, "namespaces": list{"*"}}}, "rules[0].namespaces[0]"},

	{"scheduler_role_binding", "role", "Deployer", "role"},
	{"scheduler_role_binding", "namespaces", list{}, "namespaces"},
	{"scheduler_role_binding", "token_ids", list{"0123456789abcdef.secret"}, "token_ids[0]"},
	{"scheduler_role_binding", "token_ids", list{}, "token_ids"},
	{"scheduler_role_binding", "issuer", "github", "issuer"},
	{"scheduler_role_binding", "claims", doc{"sub": "x"}, "claims"},
	{claimed, "claims", doc{"sub": "**"}, "claims"},
	{claimed, "claims", doc{"sub": ""}, "claims"},
	{claimed, "issuer", "Git Hub", "issuer"},
	{claimed, "role", "admin", "namespaces"},

	{"scheduler_move_window", "name", "A", "name"},
	{"scheduler_move_window", "namespace", "My Shop", "namespace"},
	{"scheduler_move_window", "effect", "pause", "effect"},
	{"scheduler_move_window", "effect", "allow", "schedule"},
	{"scheduler_move_window", "duration", "1h", "duration"},
	{"scheduler_move_window", "time_zone", "Berlin", "time_zone"},
	{"scheduler_move_window", "time_zone", "Local", "time_zone"},
	{"scheduler_move_window", "ends_at", "2031-02-29T00:00:00Z", "ends_at"},
	{"scheduler_move_window", "label_selector", doc{"match_labels": doc{"a b": "x"}}, `label_selector.match_labels["a b"]`},
	{"scheduler_move_window", "description", "red: \x1b[31m", "description"},
	{scheduled, "schedule", "61 * * * *", "schedule"},
	{scheduled, "schedule", "* * * * * *", "schedule"},
	{scheduled, "schedule", "@daily", "schedule"},
	{scheduled, "schedule", "CRON_TZ=UTC * * * * *", "schedule"},
	{scheduled, "schedule", "0 0 30 2 *", "schedule"},
	{scheduled, "schedule", "", "duration"},
	{scheduled, "duration", "30s", "duration"},
	{scheduled, "duration", "169h", "duration"},
	{scheduled, "duration", nil, "duration"},
	{scheduled, "time_zone", "Europe/Bonn", "time_zone"},

	{"scheduler_cluster", "openstack", doc{"cloud": "A", "region": "r", "availability_zone": "z"}, "openstack.cloud"},
	{"scheduler_cluster", "openstack", doc{"cloud": "a", "region": "", "availability_zone": "z"}, "openstack.region"},
	{"scheduler_cluster", "openstack", doc{"cloud": "a", "region": "r", "availability_zone": ""}, "openstack.availability_zone"},
	{"scheduler_cluster", "cloud_constraints", doc{"label_constraints": list{"location is DE", "location"}}, "cloud_constraints.label_constraints[1]"},
	{"scheduler_cluster", "cloud_constraints", doc{"metric_constraints": list{"load is a lot"}}, "cloud_constraints.metric_constraints[0]"},
	{"scheduler_cluster", "flavors", list{doc{"name": ""}}, "flavors[0].name"},
	{"scheduler_cluster", "flavors", list{doc{"name": "m"}, doc{"name": "m"}}, "flavors[1]"},
	{"scheduler_cluster", "flavors", list{doc{"name": "m", "vcpus": -1}}, "flavors[0].vcpus"},
	{"scheduler_cluster", "flavors", list{doc{"name": "m", "vcpus": 0.5}}, "flavors[0].vcpus"},
	{"scheduler_cluster", "flavors", list{doc{"name": "m", "memory": "much"}}, "flavors[0].memory"},
	{"scheduler_cluster", "flavors", list{doc{"name": "m", "count": -1}}, "flavors[0].count"},
	{"scheduler_cluster", "kubernetes", doc{"kubeconfig_wo": "no kubeconfig"}, "kubernetes.kubeconfig_wo"},
	{"scheduler_cluster", "kubernetes", doc{"kubeconfig_wo": kubeconfigThatRunsPrograms}, "kubernetes.kubeconfig_wo"},
	{"scheduler_cluster", "wait", doc{"for": "godot"}, "wait.for"},

	{"scheduler_cloud", "name", "DE", "name"},
	{"scheduler_cloud", "namespace", "", "namespace"},
	{"scheduler_cloud", "namespace", "My Shop", "namespace"},
	{"scheduler_cloud", "labels", doc{"a b": "x"}, `labels["a b"]`},
	{"scheduler_cloud", "metrics", list{doc{"name": "a"}, doc{"name": "a"}}, "metrics[1].name"},
	{"scheduler_cloud", "metrics", list{doc{"name": "a", "weight": 0}}, "metrics"},
	{"scheduler_cloud", "metrics", list{doc{"name": "a", "namespace": "shop"}}, "metrics[0].namespace"},
	{"scheduler_cloud", "openstack", doc{"auth_url": "keystone:5000"}, "openstack.auth_url"},
	{"scheduler_cloud", "openstack", doc{"auth_url": "https://u:p@k:5000/v3"}, "openstack.auth_url"},
	{"scheduler_cloud", "openstack", access(doc{"username": "u", "user_id": "i", "project_name": "p"}), "openstack.user_id"},
	{"scheduler_cloud", "openstack", access(doc{"username": "u"}), "openstack.project_name"},
	{"scheduler_cloud", "openstack", access(doc{"username": ""}), "openstack.username"},
	{"scheduler_cloud", "openstack", access(doc{"password_wo": "secret", "project_id": "p"}), "openstack.username"},
	{"scheduler_cloud", "openstack", access(doc{"username": "u", "project_name": "p", "project_id": "i"}), "openstack.project_id"},
	{"scheduler_cloud", "openstack", access(doc{"application_credential_secret_wo": "secret"}), "openstack.application_credential_id"},
	{"scheduler_cloud", "openstack", access(doc{"application_credential_id": "a", "username": "u"}), "openstack.username"},
	{"scheduler_cloud", "openstack", access(doc{"application_credential_id": "a", "password_wo": "p"}), "openstack.password_wo"},
	{"scheduler_cloud", "openstack", access(doc{"application_credential_id": "a", "project_name": "p"}), "openstack.project_name"},
	{"scheduler_cloud", "openstack", access(doc{"regions": list{"a", "a"}}), "openstack.regions[1]"},
	{"scheduler_cloud", "openstack", access(doc{"regions": list{""}}), "openstack.regions[0]"},
	{"scheduler_cloud", "openstack", access(doc{"interval": "1ms"}), "openstack.interval"},
	{"scheduler_cloud", "openstack", access(doc{"timeout": "soon"}), "openstack.timeout"},
	{"scheduler_cloud", "openstack", access(doc{"ca_cert": "no certificate"}), "openstack.ca_cert"},
	{"scheduler_cloud", "openstack", access(doc{"password_wo_version": 1.5}), "openstack.password_wo_version"},

	{"scheduler_openstack_project", "name", "-a", "name"},
	{"scheduler_openstack_project", "namespace", "", "namespace"},
	{"scheduler_openstack_project", "metrics", list{doc{"name": "a", "weight": -1}}, "metrics[0].weight"},
	{"scheduler_openstack_project", "openstack", doc{"auth_url": "ftp://k"}, "openstack.auth_url"},
	{"scheduler_openstack_project", "openstack", access(doc{"user_id": "u"}), "openstack.project_name"},

	{"scheduler_magnum_cluster", "name", "A", "name"},
	{"scheduler_magnum_cluster", "namespace", "A", "namespace"},
	{"scheduler_magnum_cluster", "label_constraints", list{"location >"}, "label_constraints[0]"},
	{"scheduler_magnum_cluster", "metric_constraints", list{"load"}, "metric_constraints[0]"},
	{"scheduler_magnum_cluster", "metrics", list{doc{"name": "A"}}, "metrics[0].name"},
	{"scheduler_magnum_cluster", "wait", doc{"on_timeout": "cry"}, "wait.on_timeout"},

	{"scheduler_metrics_provider", "kafka", doc{"url": "http://k", "table": "t", "comparison_column": "c", "value_column": "v"}, "kafka"},
	{ksql, "kafka", nil, "kafka"},
	{ksql, "kafka", doc{"url": "k", "table": "t", "comparison_column": "c", "value_column": "v"}, "kafka.url"},
	{ksql, "kafka", doc{"url": "http://k", "table": "", "comparison_column": "c", "value_column": "v"}, "kafka.table"},
	{ksql, "kafka", doc{"url": "http://k", "table": "t", "comparison_column": "", "value_column": "v"}, "kafka.comparison_column"},
	{ksql, "kafka", doc{"url": "http://k", "table": "t", "comparison_column": "c", "value_column": ""}, "kafka.value_column"},
	{influx, "influx", nil, "influx"},
	{influx, "influx", doc{"url": "i", "bucket": "b"}, "influx.url"},
	{influx, "influx", doc{"url": "http://i", "bucket": ""}, "influx.bucket"},
	{influx, "influx", doc{"url": "http://i", "bucket": "b", "token_wo": "a\nb"}, "influx.token_wo"},

	{allocated, "replicas", nil, "replicas"},
	{"scheduler_workload", "allocation", doc{"flavors": list{"m", "m"}}, "allocation.flavors[1]"},
	{"scheduler_workload", "allocation", doc{"flavors": list{""}}, "allocation.flavors[0]"},
	{"scheduler_workload", "allocation", doc{"regions": list{doc{"region": ""}}}, "allocation.regions[0].region"},
	{"scheduler_workload", "allocation", doc{"location_strategy": "close"}, "allocation.location_strategy"},
	{"scheduler_workload", "allocation", doc{"region_strategy": "together"}, "allocation.region_strategy"},
	{"scheduler_workload", "allocation", doc{"stack_affinity": list{"A"}}, "allocation.stack_affinity[0]"},
	{"scheduler_workload", "allocation", doc{"stack_anti_affinity": list{""}}, "allocation.stack_anti_affinity[0]"},

	{"scheduler_placement", "wait", doc{"for": "godot"}, "wait.for"},
	{"scheduler_placement", "wait", doc{"on_timeout": "cry"}, "wait.on_timeout"},
}

type (
	doc  = map[string]any
	list = []any
)

// valid is a valid configuration of each resource, with every field whose validity depends on another.
var valid = map[string]doc{
	"scheduler_cluster":          {"name": "east"},
	"scheduler_metrics_provider": {"name": "p", "type": "prometheus", "prometheus": doc{"url": "http://p"}},
	"scheduler_metric":           {"name": "m", "min": 0, "max": 1, "metrics_provider": doc{"name": "p", "metric": "m"}},
	"scheduler_cluster_set":      {"name": "eu", "selector": doc{}},
	"scheduler_placement_score":  {"name": "agent", "cluster": "east", "scores": doc{"load": -7}, "valid_until": "2031-01-01T00:00:00+02:00"},
	"scheduler_placement":        {"name": "web", "namespace": "shop"},
	"scheduler_move_window":      {"name": "freeze", "ends_at": "2199-01-01T00:00:00+02:00"},
	"scheduler_role":             {"name": "deployer", "rules": list{doc{"verbs": list{"read"}}}},
	"scheduler_role_binding":     {"name": "ci", "role": "deployer", "token_ids": list{"0123456789abcdef"}},
	claimed:                      {"name": "ci", "role": "deployer", "namespaces": list{"shop"}, "issuer": "github", "claims": doc{"sub": "repo:shop/*"}},
	scheduled:                    {"name": "weekend", "schedule": "0 18 * * FRI", "duration": "60h", "time_zone": "Europe/Berlin"},
	rated:                        {"name": "web", "namespace": "shop", "strategy": "prioritizers"},
	"scheduler_workload":         {"name": "web", "namespace": "shop", "api_version": "apps/v1", "kind": "Deployment", "replicas": 3},
	allocated:                    {"name": "web", "namespace": "shop", "api_version": "v1", "kind": "Pod", "replicas": 3, "allocation": doc{}},
	"scheduler_cloud":            {"name": "de", "openstack": access(doc{"username": "u", "password_wo": "secret", "project_name": "p"})},
	"scheduler_openstack_project": {
		"name": "p", "namespace": "shop", "openstack": access(doc{"application_credential_id": "a", "application_credential_secret_wo": "s"}),
	},
	"scheduler_magnum_cluster": {"name": "k", "namespace": "shop"},
	ksql:                       {"name": "p", "type": "kafka", "kafka": doc{"url": "http://k", "table": "t", "comparison_column": "c", "value_column": "v"}},
	influx:                     {"name": "p", "type": "influx", "influx": doc{"url": "http://i", "bucket": "b", "org": "o", "token_wo": "t"}},
	"scheduler_propagation_policy": {
		"name": "web", "namespace": "shop", "resource_selectors": list{doc{"api_version": "apps/v1", "kind": "Deployment"}},
	},
}

// Resources with more than one valid configuration.
const (
	// rated is a placement with the prioritizers strategy.
	rated     = "scheduler_placement by prioritizers"
	ksql      = "scheduler_metrics_provider of ksqlDB"
	influx    = "scheduler_metrics_provider of InfluxDB"
	allocated = "scheduler_workload with an allocation"
	claimed   = "scheduler_role_binding by claims"
	scheduled = "scheduler_move_window with a schedule"
)

// access returns an OpenStack access with additional attributes.
func access(more doc) doc {
	access := doc{"auth_url": "https://keystone:5000/v3"}
	maps.Copy(access, more)
	return access
}

const kubeconfigThatRunsPrograms = `
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {exec: {command: aws}}}]
`

// typeName returns the resource type of an entry in valid.
func typeName(resource string) string {
	name, _, _ := strings.Cut(resource, " ")
	return name
}

// validation calls the provider's validation as Terraform does.
type validation struct {
	server tfprotov6.ProviderServer
	types  map[string]tftypes.Type
}

func newValidation(t *testing.T) *validation {
	t.Helper()
	server := NewServer("test")()
	schema, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	v := &validation{server: server, types: map[string]tftypes.Type{}}
	for name, s := range schema.ResourceSchemas {
		v.types[name] = s.ValueType()
	}
	return v
}

// check validates a configuration and returns the attributes named by errors, with their text.
func (v *validation) check(ctx context.Context, resourceType string, config tftypes.Value) (map[string]string, error) {
	value, err := tfprotov6.NewDynamicValue(v.types[resourceType], config)
	if err != nil {
		return nil, err
	}
	resp, err := v.server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: resourceType, Config: &value,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		return nil, err
	}
	errs := map[string]string{}
	for _, d := range resp.Diagnostics {
		at := ""
		if d.Attribute != nil {
			at = renderPath(d.Attribute)
		}
		errs[at] = d.Summary + ": " + d.Detail
	}
	return errs, nil
}

// renderPath formats a path like the framework does in messages.
func renderPath(p *tftypes.AttributePath) string {
	var b strings.Builder
	for _, step := range p.Steps() {
		switch s := step.(type) {
		case tftypes.AttributeName:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(string(s))
		case tftypes.ElementKeyInt:
			fmt.Fprintf(&b, "[%d]", int64(s))
		case tftypes.ElementKeyString:
			fmt.Fprintf(&b, "[%q]", string(s))
		}
	}
	return b.String()
}

func TestValidateNamesTheAttribute(t *testing.T) {
	v := newValidation(t)
	for name, document := range valid {
		errs, err := v.check(t.Context(), typeName(name), terraformtest.ConfigValue(t, v.types[typeName(name)], document))
		if err != nil || len(errs) > 0 {
			t.Fatalf("the valid %s is refused: %v %v", name, errs, err)
		}
	}
	for _, test := range badFields {
		t.Run(fmt.Sprintf("%s %s %v", test.resource, test.at, test.value), func(t *testing.T) {
			document := maps.Clone(valid[test.resource])
			document[test.attribute] = test.value
			errs, err := v.check(t.Context(), typeName(test.resource), terraformtest.ConfigValue(t, v.types[typeName(test.resource)], document))
			if err != nil {
				t.Fatal(err)
			}
			if errs[test.at] == "" {
				t.Errorf("no error names %s: %v", test.at, errs)
			}
			if errs[""] != "" {
				t.Errorf("an error names no attribute: %s", errs[""])
			}
		})
	}
}

// If any part of an invalid configuration is unknown, the rules that depend on it are not applied.
func TestValidateSkipsUnknownValues(t *testing.T) {
	v := newValidation(t)
	for _, test := range badFields {
		if test.value == nil {
			continue
		}
		t.Run(fmt.Sprintf("%s %s %v", test.resource, test.at, test.value), func(t *testing.T) {
			document := maps.Clone(valid[test.resource])
			document[test.attribute] = test.value
			known := terraformtest.ConfigValue(t, v.types[typeName(test.resource)], document)
			if errs := check(t, v, typeName(test.resource), withUnknown(known, test.attribute, false)); len(errs) > 0 {
				t.Errorf("%s is unknown as a whole and refused: %v", test.attribute, errs)
			}
			if errs := check(t, v, typeName(test.resource), withUnknown(known, test.attribute, true)); len(errs) > 0 && !strings.Contains(test.at, " ") && test.at != `labels[""]` && test.at != `labels["/"]` {
				t.Errorf("the values in %s are unknown and refused: %v", test.attribute, errs)
			}
		})
	}
}

// Whether an attribute is allowed is not decided while another one that it depends on is unknown.
func TestValidateWaitsForCompanions(t *testing.T) {
	v := newValidation(t)
	for _, test := range []struct {
		resource string
		config   doc
		unknown  string
	}{
		{"scheduler_cluster_set", doc{"name": "eu"}, "clusters"},
		{"scheduler_cluster_set", doc{"name": "eu"}, "selector"},
		{"scheduler_cluster_set", doc{"name": "eu", "clusters": list{"a"}}, "selector"},
		{"scheduler_metrics_provider", doc{"name": "p", "prometheus": doc{"url": "http://p"}}, "type"},
		{"scheduler_metrics_provider", doc{"name": "p", "type": "static"}, "static"},
		{"scheduler_cloud", doc{"name": "de", "metrics": list{doc{"name": "price", "namespace": "shop"}}}, "namespace"},
		{"scheduler_metrics_provider", doc{"name": "p", "type": "influx"}, "influx"},
		{"scheduler_metrics_provider", doc{"name": "p", "type": "kafka"}, "kafka"},
		{"scheduler_placement", doc{"name": "web", "prioritizer_policy": doc{"mode": "exact"}}, "strategy"},
		{"scheduler_placement", doc{"name": "web", "metrics": doc{}}, "strategy"},
		{"scheduler_placement", doc{"name": "web"}, "prioritizer_policy"},
		{"scheduler_workload", doc{"name": "web", "api_version": "apps/v1", "kind": "Job", "distribution": doc{}}, "kind"},
		{"scheduler_workload", doc{"name": "web", "api_version": "v1", "kind": "Deployment", "distribution": doc{}}, "api_version"},
	} {
		config := terraformtest.ConfigValue(t, v.types[test.resource], test.config)
		if errs := check(t, v, test.resource, withUnknown(config, test.unknown, false)); len(errs) > 0 {
			t.Errorf("%s %v is refused although %s is unknown: %v", test.resource, test.config, test.unknown, errs)
		}
	}
	broken := doc{"name": "web", "prioritizer_policy": doc{"mode": "both"}, "metrics": doc{"stickiness": -1}}
	errs := check(t, v, "scheduler_placement", withUnknown(terraformtest.ConfigValue(t, v.types["scheduler_placement"], broken), "strategy", false))
	if len(errs) != 2 || errs["metrics.stickiness"] == "" || errs["prioritizer_policy.mode"] == "" {
		t.Errorf("what is wrong under any strategy is not refused: %v", errs)
	}
}

// A user of an OpenStack can be specified in two ways: while one is unknown, the other is not required.
func TestValidateWaitsForAccess(t *testing.T) {
	v := newValidation(t)
	typ := v.types["scheduler_cloud"]
	for _, test := range []struct {
		name    string
		access  doc
		unknown string
		want    string // the attribute that is rejected nevertheless; "" = none
	}{
		{"the user", access(doc{"password_wo": "p", "project_id": "p"}), "user_id", ""},
		{"the project", access(doc{"username": "u"}), "project_id", ""},
		{"the password", access(doc{"username": "u", "project_id": "p"}), "password", ""},
		{"the application credential", access(doc{"application_credential_secret_wo": "s"}), "application_credential_id", ""},
		{"a user without a project", access(doc{"password_wo": "p"}), "user_id", "openstack.project_name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := terraformtest.ConfigValue(t, typ, doc{"name": "de", "openstack": test.access})
			unknown, err := tftypes.Transform(config, func(at *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
				if renderPath(at) == "openstack."+test.unknown {
					return tftypes.NewValue(value.Type(), tftypes.UnknownValue), nil
				}
				return value, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			errs := check(t, v, "scheduler_cloud", unknown)
			if test.want == "" && len(errs) > 0 || test.want != "" && errs[test.want] == "" {
				t.Errorf("errors are %v, expected %q", errs, test.want)
			}
		})
	}
}

// Elements of a list that differ only in an unknown value are not reported as duplicates. Errors that do not depend on
// the unknown value are.
func TestValidateTellsUnknownElementsApart(t *testing.T) {
	v := newValidation(t)
	typ := v.types["scheduler_cluster"]
	for _, test := range []struct {
		name     string
		position int // of the metric whose namespace is unknown
	}{{"the first", 0}, {"the second", 1}} {
		t.Run(test.name, func(t *testing.T) {
			config := terraformtest.ConfigValue(t, typ, doc{"name": "east", "metrics": list{doc{"name": "a"}, doc{"name": "a"}, doc{"name": "B"}}})
			unknown, err := tftypes.Transform(config, func(at *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
				if renderPath(at) == fmt.Sprintf("metrics[%d].namespace", test.position) {
					return tftypes.NewValue(value.Type(), tftypes.UnknownValue), nil
				}
				return value, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			errs := check(t, v, "scheduler_cluster", unknown)
			if len(errs) != 1 || errs["metrics[2].name"] == "" {
				t.Errorf("errors are %v, expected one about metrics[2].name", errs)
			}
		})
	}
}

// A fraction in place of an integer is a user's mistake and gives one error.
func TestValidateWholeNumbers(t *testing.T) {
	v := newValidation(t)
	config := terraformtest.ConfigValue(t, v.types["scheduler_placement"], doc{"name": "web", "number_of_clusters": 1.5})
	errs := check(t, v, "scheduler_placement", config)
	want := "Invalid number_of_clusters: number_of_clusters: 1.5 is not a whole number of at most 64 bits."
	if len(errs) != 1 || errs["number_of_clusters"] != want {
		t.Errorf("errors are %v, expected %q", errs, want)
	}
}

func check(t *testing.T, v *validation, resourceType string, config tftypes.Value) map[string]string {
	t.Helper()
	errs, err := v.check(t.Context(), resourceType, config)
	if err != nil {
		t.Fatal(err)
	}
	return errs
}

// withUnknown makes an attribute unknown: as a whole, or every string and number in it.
func withUnknown(config tftypes.Value, attribute string, inside bool) tftypes.Value {
	attributes := terraform.AttributesOf(config)
	value := attributes[attribute]
	unknown := tftypes.NewValue(value.Type(), tftypes.UnknownValue)
	if inside {
		unknown, _ = tftypes.Transform(value, func(_ *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if v.Type().Is(tftypes.String) || v.Type().Is(tftypes.Number) || v.Type().Is(tftypes.Bool) {
				return tftypes.NewValue(v.Type(), tftypes.UnknownValue), nil
			}
			return v, nil
		})
	}
	attributes[attribute] = unknown
	return tftypes.NewValue(config.Type(), attributes)
}

// A plan with Terraform itself, with an invalid field in every resource.
func TestPlanNamesTheAttribute(t *testing.T) {
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){
			"scheduler": providerserver.NewProtocol6WithError(New("test")()),
		},
		ErrorCheck: func(err error) error {
			for _, want := range []string{
				`labels\["team"\]: the\s+value`,
				`metrics_provider.metric: is\s+required`,
				`static: is\s+required\s+because type is\s+"static"`,
				`label_constraints\[0\]`,
				`spot.on_disable:\s+"drop"`,
				`distribution.custom_on_demand:\s+"half"\s+is\s+neither`,
			} {
				if !regexp.MustCompile(want).MatchString(err.Error()) {
					return fmt.Errorf("%q is not in: %w", want, err)
				}
			}
			return nil
		},
		Steps: []resource.TestStep{{
			PlanOnly: true,
			Config: `
				resource "scheduler_cluster" "c" {
				  name   = "c"
				  labels = { team = "no label value!" }
				  spot   = { on_disable = "drop" }
				}
				resource "scheduler_workload" "d" {
				  name         = "d"
				  api_version  = "apps/v1"
				  kind         = "Deployment"
				  distribution = { mode = "custom", custom_on_demand = "half" }
				}
				resource "scheduler_metrics_provider" "p" {
				  name = "p"
				  type = "static"
				}
				resource "scheduler_metric" "m" {
				  name             = "m"
				  min              = 0
				  max              = 1
				  metrics_provider = { name = "p", metric = "" }
				}
				resource "scheduler_placement" "w" {
				  name              = "w"
				  label_constraints = ["location is"]
				}`,
		}},
	})
}

// An invalid expiry of scores gives one error, in plain words.
func TestValidUntilGivesOneError(t *testing.T) {
	v := newValidation(t)
	typ := v.types["scheduler_placement_score"]
	for _, text := range []string{"soon", "", "2026-13-01T00:00:00Z", "2026-11-22 10:00:00", "2026-11-22"} {
		config := terraformtest.ConfigValue(t, typ, doc{"name": "s", "cluster": "c", "scores": doc{"a": 1}, "valid_until": text})
		value, err := tfprotov6.NewDynamicValue(typ, config)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := v.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: "scheduler_placement_score", Config: &value})
		if err != nil {
			t.Fatal(err)
		}
		if d := resp.Diagnostics; len(d) != 1 || renderPath(d[0].Attribute) != "valid_until" || !strings.Contains(d[0].Detail, "2026-01-31T00:00:00Z") || strings.Contains(d[0].Detail, "2006") {
			t.Errorf("%q gives %v", text, d)
		}
	}
}
