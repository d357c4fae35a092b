package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// plansAs checks attributes of a plan. unknown{} stands for a value known only after apply.
func plansAs(t *testing.T, typ tftypes.Type, planned map[string]tftypes.Value, want doc) {
	t.Helper()
	for name, value := range want {
		if value == (unknown{}) {
			if planned[name].IsKnown() {
				t.Errorf("%s is %s, expected to be unknown", name, planned[name])
			}
			continue
		}
		if got := terraform.AttributesOf(terraformtest.ConfigValue(t, typ, doc{name: value}))[name]; !planned[name].Equal(got) {
			t.Errorf("%s is %s, expected %s", name, planned[name], got)
		}
	}
}

// The binding is unknown only if something that it depends on changes. This includes the labels, because policies
// select by them.
func TestPlanWorkload(t *testing.T) {
	state := func(changes doc) doc {
		s := doc{
			"name": "web", "namespace": "shop", "api_version": "apps/v1", "kind": "Deployment", "replicas": 3, "priority": 0,
			"clusters": doc{"member1": 2, "member2": 1}, "evicting": doc{"member3": 2},
		}
		maps.Copy(s, changes)
		return s
	}
	moves := doc{"clusters": unknown{}, "evicting": unknown{}}
	stays := doc{"clusters": doc{"member1": 2, "member2": 1}, "evicting": doc{"member3": 2}}
	for _, test := range []struct {
		name   string
		config doc
		state  doc
		want   doc
	}{
		{"created", doc{}, nil, doc{"priority": 0, "clusters": unknown{}, "evicting": unknown{}}},
		{"no change", doc{}, state(nil), state(nil)},
		{"how long to wait", doc{"wait": doc{"for": "none"}}, state(nil), stays},
		{"a time limit", doc{"timeouts": doc{"update": "5m"}}, state(nil), stays},
		{"a label", doc{"labels": doc{"team": "a"}}, state(nil), moves},
		{"more replicas", doc{"replicas": 4}, state(nil), moves},
		{"none at all", doc{"replicas": 0}, state(nil), moves},
		{"no longer replicated", doc{"replicas": nil}, state(nil), moves},
		{"requests", doc{"replica_requests": doc{"cpu": "1"}}, state(nil), moves},
		{"a priority", doc{"priority": 7}, state(nil), moves},
		{"another kind", doc{"kind": "StatefulSet"}, state(nil), moves},
		{"replicas changed outside Terraform", doc{}, state(doc{"replicas": 9}), moves},
		{"another name", doc{"name": "api"}, state(nil), doc{"replicas": 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			typ := newValidation(t).types["scheduler_workload"]
			config := doc{"name": "web", "namespace": "shop", "api_version": "apps/v1", "kind": "Deployment", "replicas": 3}
			maps.Copy(config, test.config)
			plansAs(t, typ, planOf(t, "scheduler_workload", terraformtest.ConfigValue(t, typ, config), test.state), test.want)
		})
	}
}

// Absent attributes are planned as the server will set them, also where the default depends on other attributes. The
// bindings are unknown only if something that they depend on changes.
func TestPlanPropagationPolicy(t *testing.T) {
	state := func(changes doc) doc {
		s := doc{
			"name": "web", "namespace": "shop", "resource_selectors": list{doc{"api_version": "apps/v1", "kind": "Deployment"}},
			"priority": 0, "preemption": "Never", "workload_preemption": "Never",
			"bindings": doc{"shop/web": doc{"member1": 3}, "shop/api": doc{}},
		}
		maps.Copy(s, changes)
		return s
	}
	scheduling := func(given doc) doc { return doc{"placement": doc{"replica_scheduling": given}} }
	spread := func(given ...any) doc { return doc{"placement": doc{"spread_constraints": given}} }
	planned := func(key string, value any) doc {
		return doc{"placement": doc{"empty_clusters": false, key: value}}
	}
	for _, test := range []struct {
		name   string
		config doc
		state  doc
		want   doc
	}{
		{"created", doc{}, nil, doc{"priority": 0, "preemption": "Never", "workload_preemption": "Never", "placement": nil, "failover": nil, "fail_back": nil, "bindings": unknown{}}},
		{"no change", doc{}, state(nil), state(nil)},
		{"a label of the policy moves nothing", doc{"labels": doc{"team": "a"}}, state(nil), doc{"bindings": doc{"shop/web": doc{"member1": 3}, "shop/api": doc{}}}},
		{"a placement of nothing", doc{"placement": doc{}}, state(nil), doc{"placement": doc{"empty_clusters": false}, "bindings": doc{"shop/web": doc{"member1": 3}, "shop/api": doc{}}}},
		{"a priority", doc{"priority": 1}, state(nil), doc{"bindings": unknown{}}},
		{"another selector", doc{"resource_selectors": list{doc{"api_version": "v1", "kind": "ConfigMap"}}}, state(nil), doc{"bindings": unknown{}}},

		{"divided by weight", scheduling(doc{}), nil, planned("replica_scheduling", doc{"type": "Divided", "division_preference": "Weighted"})},
		{"duplicated", scheduling(doc{"type": "Duplicated"}), nil, planned("replica_scheduling", doc{"type": "Duplicated"})},
		{"aggregated", scheduling(doc{"division_preference": "Aggregated"}), nil, planned("replica_scheduling", doc{"type": "Divided", "division_preference": "Aggregated"})},
		{
			"from divided to duplicated", scheduling(doc{"type": "Duplicated"}),
			state(planned("replica_scheduling", doc{"type": "Divided", "division_preference": "Weighted"})),
			planned("replica_scheduling", doc{"type": "Duplicated"}),
		},
		{
			"spread over clusters, and by a label", spread(doc{}, doc{"spread_by_label": "tier", "min_groups": 2}), nil,
			planned("spread_constraints", list{doc{"spread_by_field": "cluster", "min_groups": 1}, doc{"spread_by_label": "tier", "min_groups": 2}}),
		},
		{
			"a label in the place of a field", spread(doc{"spread_by_label": "tier"}),
			state(planned("spread_constraints", list{doc{"spread_by_field": "cluster", "min_groups": 1}})),
			planned("spread_constraints", list{doc{"spread_by_label": "tier", "min_groups": 1}}),
		},
		{
			"failover", doc{"failover": doc{"cluster": doc{}, "application": doc{}}, "fail_back": doc{}}, nil,
			doc{
				"failover": doc{
					"cluster":     doc{"purge_mode": "Gracefully", "grace_period": "10m"},
					"application": doc{"toleration": "5m", "purge_mode": "Gracefully", "grace_period": "10m"},
				},
				"fail_back": doc{"mode": "automatic", "stabilization": "10m"},
			},
		},
		{
			"no grace period without grace", doc{"failover": doc{"cluster": doc{"purge_mode": "Directly"}, "application": doc{"purge_mode": "Never"}}},
			state(doc{"failover": doc{
				"cluster":     doc{"purge_mode": "Gracefully", "grace_period": "10m"},
				"application": doc{"toleration": "5m", "purge_mode": "Gracefully", "grace_period": "1m"},
			}}),
			doc{"failover": doc{"cluster": doc{"purge_mode": "Directly"}, "application": doc{"toleration": "5m", "purge_mode": "Never"}}, "bindings": unknown{}},
		},
		{
			"a given grace period stays", doc{"failover": doc{"cluster": doc{"grace_period": "30s"}}}, nil,
			doc{"failover": doc{"cluster": doc{"purge_mode": "Gracefully", "grace_period": "30s"}}},
		},
		{
			"somebody else changed what has a default", doc{"failover": doc{"cluster": doc{}}},
			state(doc{"failover": doc{"cluster": doc{"purge_mode": "Gracefully", "grace_period": "1h"}}}),
			doc{"failover": doc{"cluster": doc{"purge_mode": "Gracefully", "grace_period": "10m"}}, "bindings": unknown{}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			typ := newValidation(t).types["scheduler_propagation_policy"]
			config := doc{"name": "web", "namespace": "shop", "resource_selectors": list{doc{"api_version": "apps/v1", "kind": "Deployment"}}}
			maps.Copy(config, test.config)
			plansAs(t, typ, planOf(t, "scheduler_propagation_policy", terraformtest.ConfigValue(t, typ, config), test.state), test.want)
		})
	}
}

// While it is unknown whether replicas are purged gracefully, so is the grace period.
func TestPlanDefaultOfUnknown(t *testing.T) {
	typ := newValidation(t).types["scheduler_propagation_policy"]
	config := terraformtest.ConfigValue(t, typ, doc{
		"name": "web", "resource_selectors": list{doc{"api_version": "v1", "kind": "Pod"}}, "failover": doc{"cluster": doc{"purge_mode": "Directly"}},
	})
	config, err := tftypes.Transform(config, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if renderPath(at) == "failover.cluster.purge_mode" {
			return tftypes.NewValue(v.Type(), tftypes.UnknownValue), nil
		}
		return v, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	planned := planOf(t, "scheduler_propagation_policy", config, nil)
	if period := terraform.AttributesOf(terraform.AttributesOf(planned["failover"])["cluster"])["grace_period"]; period.IsKnown() {
		t.Errorf("the grace period is %s", period)
	}
}

// Overflow affinities require a limited group and a division by capacity. While either is unknown, they are not
// rejected.
func TestValidateOverflowWaits(t *testing.T) {
	v := newValidation(t)
	const policy = "scheduler_propagation_policy"
	config := func(unknownAt string, placement doc) tftypes.Value {
		document := maps.Clone(valid[policy])
		document["placement"] = placement
		value, err := tftypes.Transform(terraformtest.ConfigValue(t, v.types[policy], document), func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			if unknownAt != "" && renderPath(at) == unknownAt {
				return tftypes.NewValue(v.Type(), tftypes.UnknownValue), nil
			}
			return v, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	group := doc{"affinity_name": "private", "overflow_affinities": list{doc{"affinity_name": "managed"}}}
	bounded := maps.Clone(group)
	bounded["cluster_names"] = list{"member1"}
	aggregated := doc{"division_preference": "Aggregated"}
	for _, test := range []struct {
		name      string
		unknown   string
		placement doc
		refused   bool
	}{
		{"valid", "", doc{"cluster_affinities": list{bounded}, "replica_scheduling": aggregated}, false},
		{"the names are unknown", "placement.cluster_affinities[0].cluster_names", doc{"cluster_affinities": list{group}, "replica_scheduling": aggregated}, false},
		{"the division is unknown", "placement.replica_scheduling", doc{"cluster_affinities": list{bounded}}, false},
		{"the preference is unknown", "placement.replica_scheduling.division_preference", doc{"cluster_affinities": list{bounded}, "replica_scheduling": doc{}}, false},
		{"another attribute is unknown", "placement.cluster_tolerations", doc{"cluster_affinities": list{bounded}}, true},
		{"another group is unknown", "placement.cluster_affinities[1].cluster_names", doc{"cluster_affinities": list{group, doc{"affinity_name": "b"}}, "replica_scheduling": aggregated}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			errs := check(t, v, policy, config(test.unknown, test.placement))
			if refused := len(errs) > 0; refused != test.refused {
				t.Errorf("errors are %v", errs)
			}
		})
	}
}

// The plan shows the preview's result.
func TestPreviewedBindings(t *testing.T) {
	preview := &api.Preview{
		Replicas: map[string]int64{"member1": 2, "member2": 0},
		Evicting: map[string]int64{"member3": 1},
		Bindings: []api.PreviewedBinding{
			{Workload: "shop/web", Claimed: true, Replicas: map[string]int64{"member1": 3}},
			{Workload: "shop/pending", Claimed: true},
			{Workload: "shop/let-go", CurrentReplicas: map[string]int64{"member1": 1}, Replicas: map[string]int64{"member1": 1}},
		},
	}
	workload, policy := newValidation(t).types["scheduler_workload"], newValidation(t).types["scheduler_propagation_policy"]
	values := func(typ tftypes.Type, document doc) map[string]tftypes.Value {
		value, err := terraform.Value(typ, document)
		if err != nil {
			t.Fatal(err)
		}
		return terraform.AttributesOf(value)
	}
	plansAs(t, workload, values(workload, previewedWorkload(preview)), doc{"clusters": doc{"member1": 2, "member2": 0}, "evicting": doc{"member3": 1}})
	plansAs(t, workload, values(workload, previewedWorkload(&api.Preview{})), doc{"clusters": doc{}, "evicting": doc{}})
	plansAs(t, policy, values(policy, previewedBindings(preview)), doc{"bindings": doc{"shop/web": doc{"member1": 3}, "shop/pending": doc{}}})
}

// The state contains only the replicas that still run on a cluster that the workload is leaving.
func TestEvictingReplicas(t *testing.T) {
	workload := &api.Workload{Status: api.WorkloadStatus{
		Clusters: []api.WorkloadCluster{{Name: "member2", Replicas: 5}},
		Evictions: []api.Eviction{
			{Cluster: "member1", Replicas: 3, PurgeMode: api.PurgeGracefully},
			{Cluster: "member3", Replicas: 2, PurgeMode: api.PurgeNever},
			{Cluster: "member4", Replicas: 1, PurgeMode: api.PurgeDirectly},
		},
	}}
	typ := newValidation(t).types["scheduler_workload"]
	value, err := terraform.Value(typ, workloadBinding(workload))
	if err != nil {
		t.Fatal(err)
	}
	plansAs(t, typ, terraform.AttributesOf(value), doc{"clusters": doc{"member2": 5}, "evicting": doc{"member1": 3, "member3": 2}})
}

// The warning about workloads without clusters names them and says why. If there are many, it names the first ones.
func TestReportBindings(t *testing.T) {
	binding := func(name string, status api.ConditionStatus) api.Binding {
		return api.Binding{Workload: "shop/" + name, Conditions: []api.Condition{{Type: api.ConditionScheduled, Status: status, Message: "room for 2 of 3"}}}
	}
	report := func(bindings ...api.Binding) (diags diag.Diagnostics) {
		reportBindings(&api.PropagationPolicy{Metadata: api.Metadata{Name: "web"}, Status: api.PropagationPolicyStatus{Bindings: bindings}}, &diags)
		return diags
	}
	if diags := report(binding("a", api.ConditionTrue), binding("b", api.ConditionUnknown), api.Binding{Workload: "shop/c"}); len(diags) > 0 {
		t.Errorf("nothing waits, and the diagnostics are %v", diags)
	}
	diags := report(binding("a", api.ConditionTrue), binding("b", api.ConditionFalse))
	if len(diags) != 1 || diags[0].Severity() != diag.SeverityWarning || diags[0].Summary() != `1 of the 2 workloads of propagation_policy "web" wait for clusters` ||
		diags[0].Detail() != "shop/b: Room for 2 of 3." {
		t.Errorf("diagnostics are %v", diags)
	}
	var many []api.Binding
	for range 25 {
		many = append(many, binding("w", api.ConditionFalse))
	}
	if diags := report(many...); len(diags) != 1 || !strings.HasSuffix(diags[0].Detail(), "Room for 2 of 3.\nAnd 15 more.") {
		t.Errorf("diagnostics are %v", diags)
	}
}
