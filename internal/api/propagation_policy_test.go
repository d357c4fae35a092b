package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// testPolicy returns a valid policy in the namespace shop, modified by change.
func testPolicy(change func(p *PropagationPolicy, place *PropagationPlacement)) *PropagationPolicy {
	p := &PropagationPolicy{Metadata: Metadata{Name: "p", Namespace: "shop"}}
	p.Spec.ResourceSelectors = []ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	change(p, &p.Spec.Placement)
	p.SetDefaults()
	return p
}

// term returns an affinity group of named clusters.
func term(name string, clusters ...string) AffinityTerm {
	return AffinityTerm{AffinityName: name, ClusterAffinity: ClusterAffinity{ClusterNames: clusters}}
}

func TestPropagationPolicyValidate(t *testing.T) {
	type (
		policy    = PropagationPolicy
		placement = PropagationPlacement
	)
	dynamic := &ReplicaScheduling{WeightPreference: &WeightPreference{DynamicWeight: DynamicWeightAvailable}}
	overflowing := func(names ...string) AffinityTerm {
		group := term("primary", "c1")
		for _, name := range names {
			group.OverflowAffinities = append(group.OverflowAffinities, OverflowAffinity{AffinityName: name, ClusterAffinity: ClusterAffinity{ClusterNames: []string{"c2"}}})
		}
		return group
	}
	const at = "spec.placement."
	for _, tt := range []struct {
		name   string
		change func(p *policy, s *placement)
		fields []string
	}{
		{"selector only", func(*policy, *placement) {}, nil},
		{"global", func(p *policy, _ *placement) {
			p.Metadata.Namespace = ""
			p.Spec.ResourceSelectors[0].Namespace = "bank"
		}, nil},
		{"no selector", func(p *policy, _ *placement) { p.Spec.ResourceSelectors = nil }, []string{"spec.resource_selectors"}},
		{"selectors", func(p *policy, _ *placement) {
			p.Spec.ResourceSelectors = []ResourceSelector{
				{APIVersion: "apps", Kind: "", Name: "W"},
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: "bank"},
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: &LabelSelector{MatchExpressions: []SelectorRequirement{{Key: "a", Operator: "Is"}}}},
			}
		}, []string{
			"spec.resource_selectors[0].api_version", "spec.resource_selectors[0].kind", "spec.resource_selectors[0].name",
			"spec.resource_selectors[1].namespace", "spec.resource_selectors[2].label_selector.match_expressions[0].operator",
		}},
		{"preemption of all workloads of a kind", func(p *policy, _ *placement) { p.Spec.Preemption = PreemptAlways }, []string{"spec.resource_selectors[0].name"}},
		{"preemption of one workload", func(p *policy, _ *placement) {
			p.Spec.Preemption, p.Spec.ResourceSelectors[0].Name = PreemptAlways, "web"
		}, nil},
		{"enumerations", func(p *policy, _ *placement) {
			p.Spec.Preemption, p.Spec.WorkloadPreemption = "always", "lower"
			p.Spec.FailBack = &FailBack{Mode: "Automatic", Stabilization: "10"}
		}, []string{"spec.preemption", "spec.workload_preemption", "spec.fail_back.mode", "spec.fail_back.stabilization"}},

		{"both forms of affinity", func(_ *policy, s *placement) {
			s.ClusterAffinity = &ClusterAffinity{ClusterNames: []string{"c1"}}
			s.ClusterAffinities = []AffinityTerm{term("a")}
		}, []string{at + "cluster_affinities"}},
		{"empty affinity", func(_ *policy, s *placement) { s.ClusterAffinity = &ClusterAffinity{} }, nil},
		{"affinity", func(_ *policy, s *placement) {
			s.ClusterAffinity = &ClusterAffinity{
				ClusterNames: []string{"c1", "C2"}, ExcludeClusters: []string{""},
				LabelSelector: &LabelSelector{MatchLabels: map[string]string{"-": ""}},
				FieldSelector: []FieldRequirement{
					{Key: "provider", Operator: SelectorIn, Values: []string{"aws"}}, {Key: "cloud_provider", Operator: SelectorIn, Values: []string{"aws"}},
					{Key: "zone", Operator: SelectorExists}, {Key: "region", Operator: SelectorNotIn},
				},
			}
		}, []string{
			at + "cluster_affinity.cluster_names[1]", at + "cluster_affinity.exclude_clusters[0]", at + `cluster_affinity.label_selector.match_labels["-"]`,
			at + "cluster_affinity.field_selector[1].key", at + "cluster_affinity.field_selector[2].operator",
			at + "cluster_affinity.field_selector[3].values",
		}},
		{"groups in order, a cluster in two", func(_ *policy, s *placement) {
			s.ClusterAffinities = []AffinityTerm{term("local", "c1", "c2"), term("Cloud_1.eu", "c2"), term("rest")}
		}, nil},
		{"names of groups", func(_ *policy, s *placement) {
			s.ClusterAffinities = []AffinityTerm{term(""), term("a"), term("a"), term("-a"), term(strings.Repeat("a", 33)), term(strings.Repeat("b", 32)), term("a b")}
		}, []string{
			at + "cluster_affinities[0].affinity_name", at + "cluster_affinities[2].affinity_name", at + "cluster_affinities[3].affinity_name",
			at + "cluster_affinities[4].affinity_name", at + "cluster_affinities[6].affinity_name",
		}},
		{"selector of a group", func(_ *policy, s *placement) {
			group := term("a")
			group.FieldSelector = []FieldRequirement{{Key: "foo", Operator: SelectorIn, Values: []string{"x"}}}
			s.ClusterAffinities = []AffinityTerm{group}
		}, []string{at + "cluster_affinities[0].field_selector[0].key"}},
		{"too many groups", func(_ *policy, s *placement) {
			for i := range maxAffinities + 1 {
				s.ClusterAffinities = append(s.ClusterAffinities, term(fmt.Sprintf("g%d", i), "c1"))
			}
		}, []string{at + "cluster_affinities"}},

		{"overflow by room", func(_ *policy, s *placement) {
			s.ReplicaScheduling, s.ClusterAffinities = dynamic, []AffinityTerm{overflowing("o1", "o2")}
		}, nil},
		{"overflow aggregated", func(_ *policy, s *placement) {
			s.ReplicaScheduling, s.ClusterAffinities = &ReplicaScheduling{DivisionPreference: Aggregated}, []AffinityTerm{overflowing("o1")}
		}, nil},
		{"overflow of duplicated replicas", func(_ *policy, s *placement) { s.ClusterAffinities = []AffinityTerm{overflowing("o1")} }, []string{at + "cluster_affinities[0].overflow_affinities"}},
		{"overflow by static weights", func(_ *policy, s *placement) {
			s.ReplicaScheduling = &ReplicaScheduling{WeightPreference: &WeightPreference{StaticWeights: []StaticWeight{{Weight: 1}}}}
			s.ClusterAffinities = []AffinityTerm{overflowing("o1")}
		}, []string{at + "cluster_affinities[0].overflow_affinities"}},
		{"overflow from everything", func(_ *policy, s *placement) {
			group := overflowing("o1")
			group.ClusterNames, group.ExcludeClusters = nil, []string{"c9"}
			s.ReplicaScheduling, s.ClusterAffinities = dynamic, []AffinityTerm{group}
		}, []string{at + "cluster_affinities[0].overflow_affinities"}},
		{"names of overflow", func(_ *policy, s *placement) {
			s.ReplicaScheduling, s.ClusterAffinities = dynamic, []AffinityTerm{overflowing("o", "o", "primary", "")}
		}, []string{
			at + "cluster_affinities[0].overflow_affinities[1].affinity_name", at + "cluster_affinities[0].overflow_affinities[2].affinity_name",
			at + "cluster_affinities[0].overflow_affinities[3].affinity_name",
		}},
		{"one name in the overflow of two groups", func(_ *policy, s *placement) {
			second := overflowing("o")
			second.AffinityName = "second"
			s.ReplicaScheduling, s.ClusterAffinities = dynamic, []AffinityTerm{overflowing("o"), second}
		}, nil},

		{"tolerations", func(_ *policy, s *placement) {
			s.ClusterTolerations = []Toleration{{Key: "k"}, {Value: "v"}, {Key: "k", Operator: "Lt", Value: "5"}}
		}, []string{at + "cluster_tolerations[1].operator", at + "cluster_tolerations[2].operator"}},

		{"spread by default", func(_ *policy, s *placement) { s.SpreadConstraints = []GroupConstraint{{}} }, nil},
		{"spread without an upper bound", func(_ *policy, s *placement) {
			s.SpreadConstraints = []GroupConstraint{{MinGroups: new(int64(5)), MaxGroups: new(int64(0))}}
		}, nil},
		{"spread over everything", func(_ *policy, s *placement) {
			s.SpreadConstraints = []GroupConstraint{
				{SpreadByField: GroupByRegion, MinGroups: new(int64(2)), MaxGroups: new(int64(2))}, {SpreadByField: GroupByZone}, {SpreadByField: GroupByProvider},
				{SpreadByField: GroupByCluster}, {SpreadByLabel: "tier"}, {SpreadByLabel: "rack"},
			}
		}, nil},
		{"spread by a label alone", func(_ *policy, s *placement) { s.SpreadConstraints = []GroupConstraint{{SpreadByLabel: "tier"}} }, nil},
		{"spread over regions alone", func(_ *policy, s *placement) {
			s.SpreadConstraints = []GroupConstraint{{SpreadByField: GroupByRegion}}
		}, []string{at + "spread_constraints"}},
		{"spread by a field and a label", func(_ *policy, s *placement) {
			s.SpreadConstraints = []GroupConstraint{{SpreadByField: GroupByCluster, SpreadByLabel: "tier"}}
		}, []string{at + "spread_constraints[0]"}},
		{"spread twice", func(_ *policy, s *placement) {
			s.SpreadConstraints = []GroupConstraint{{}, {SpreadByLabel: "tier"}, {SpreadByField: GroupByCluster}, {SpreadByLabel: "tier"}}
		}, []string{at + "spread_constraints[2]", at + "spread_constraints[3]"}},
		{"bounds of groups", func(_ *policy, s *placement) {
			s.SpreadConstraints = []GroupConstraint{
				{MinGroups: new(int64(-1))}, {SpreadByLabel: "a", MaxGroups: new(int64(-1))}, {SpreadByLabel: "b", MinGroups: new(int64(3)), MaxGroups: new(int64(2))},
				{SpreadByLabel: "c", MinGroups: new(int64(0)), MaxGroups: new(int64(1))},
			}
		}, []string{at + "spread_constraints[0].min_groups", at + "spread_constraints[1].max_groups", at + "spread_constraints[2].max_groups"}},
		{"fields to spread by", func(_ *policy, s *placement) {
			s.SpreadConstraints = []GroupConstraint{{}, {SpreadByField: "rack"}, {SpreadByLabel: "a/b/c"}}
		}, []string{at + "spread_constraints[1].spread_by_field", at + "spread_constraints[2].spread_by_label"}},

		{"replica scheduling", func(_ *policy, s *placement) {
			s.ReplicaScheduling = &ReplicaScheduling{Type: "Split", DivisionPreference: "Even", WeightPreference: &WeightPreference{
				DynamicWeight: "available", StaticWeights: []StaticWeight{{Weight: 1}, {Weight: 0}, {Weight: 1 << 31}, {Weight: 1, Affinity: ClusterAffinity{ClusterNames: []string{"C"}}}},
			}}
		}, []string{
			at + "replica_scheduling.type", at + "replica_scheduling.division_preference",
			at + "replica_scheduling.weight_preference.static_weights[1].weight", at + "replica_scheduling.weight_preference.static_weights[2].weight",
			at + "replica_scheduling.weight_preference.static_weights[3].affinity.cluster_names[0]",
			at + "replica_scheduling.weight_preference.dynamic_weight",
		}},
		{"limits", func(_ *policy, s *placement) {
			s.ReplicaScheduling = &ReplicaScheduling{ClusterLimits: []ClusterLimit{
				{MinReplicas: new(int64(1))}, {MaxReplicas: new(int64(0))}, {MinReplicas: new(int64(2)), MaxReplicas: new(int64(2))},
				{}, {MinReplicas: new(int64(3)), MaxReplicas: new(int64(2))}, {MinReplicas: new(int64(-1))}, {MaxReplicas: new(int64(1 << 31))},
				{MinReplicas: new(int64(1)), Affinity: ClusterAffinity{FieldSelector: []FieldRequirement{{Key: "name", Operator: SelectorIn, Values: []string{"x"}}}}},
			}}
		}, []string{
			at + "replica_scheduling.cluster_limits[3]", at + "replica_scheduling.cluster_limits[4].max_replicas", at + "replica_scheduling.cluster_limits[5].min_replicas",
			at + "replica_scheduling.cluster_limits[6].max_replicas", at + "replica_scheduling.cluster_limits[7].affinity.field_selector[0].key",
		}},

		{"failover by default", func(p *policy, _ *placement) {
			p.Spec.Failover = &Failover{Cluster: &ClusterFailover{}, Application: &ApplicationFailover{}}
		}, nil},
		{"failover at once", func(p *policy, _ *placement) {
			p.Spec.Failover = &Failover{Cluster: &ClusterFailover{PurgeMode: PurgeDirectly}, Application: &ApplicationFailover{PurgeMode: PurgeNever, Toleration: "0s"}}
		}, nil},
		{"grace period without a graceful purge", func(p *policy, _ *placement) {
			p.Spec.Failover = &Failover{
				Cluster:     &ClusterFailover{PurgeMode: PurgeDirectly, GracePeriod: "1m"},
				Application: &ApplicationFailover{PurgeMode: PurgeNever, GracePeriod: "1m"},
			}
		}, []string{"spec.failover.cluster.grace_period", "spec.failover.application.grace_period"}},
		{"graceful purge without a grace period", func(p *policy, _ *placement) {
			p.Spec.Failover = &Failover{Cluster: &ClusterFailover{GracePeriod: "0s"}, Application: &ApplicationFailover{GracePeriod: "-1s", Toleration: "-1s"}}
		}, []string{"spec.failover.cluster.grace_period", "spec.failover.application.toleration", "spec.failover.application.grace_period"}},
		{"invalid durations", func(p *policy, _ *placement) {
			p.Spec.Failover = &Failover{Cluster: &ClusterFailover{GracePeriod: "ten minutes"}, Application: &ApplicationFailover{GracePeriod: "600"}}
		}, []string{"spec.failover.cluster.grace_period", "spec.failover.application.grace_period"}},
		{"lost clusters cannot be kept for ever", func(p *policy, _ *placement) {
			p.Spec.Failover = &Failover{Cluster: &ClusterFailover{PurgeMode: PurgeNever}, Application: &ApplicationFailover{PurgeMode: "never"}}
		}, []string{"spec.failover.cluster.purge_mode", "spec.failover.application.purge_mode"}},
	} {
		errs := testPolicy(tt.change).Validate()
		if got := paths(errs); !slices.Equal(got, tt.fields) {
			t.Errorf("%s: errors in\n%q, want\n%q\n%v", tt.name, got, tt.fields, errs)
		}
		for _, e := range errs {
			if e.Message == "" || strings.Contains(e.Message, "%!") {
				t.Errorf("%s: unexpected message %q", tt.name, e.Error())
			}
		}
	}
}

// TestMalformedPeriod checks that a malformed period and one that is too short get
// different errors.
func TestMalformedPeriod(t *testing.T) {
	for period, want := range map[Duration]string{"600": "is not a duration: write", "0s": "must be longer than 0"} {
		errs := testPolicy(func(p *PropagationPolicy, _ *PropagationPlacement) {
			p.Spec.Failover = &Failover{Cluster: &ClusterFailover{GracePeriod: period}}
		}).Validate()
		if len(errs) != 1 || !strings.Contains(errs[0].Message, want) {
			t.Errorf("%q: got %v, want a message that it %s", period, errs, want)
		}
	}
}

// TestPropagationPolicyDefaults checks the defaults of absent fields.
func TestPropagationPolicyDefaults(t *testing.T) {
	for _, tt := range []struct{ name, given, want string }{
		{"empty", `{}`, `{"resource_selectors":null,"preemption":"Never","workload_preemption":"Never"}`},
		{"replica scheduling divides by weight", `{"placement":{"replica_scheduling":{}}}`,
			`{"resource_selectors":null,"placement":{"replica_scheduling":{"type":"Divided","division_preference":"Weighted"}},"preemption":"Never","workload_preemption":"Never"}`},
		{"duplicated has no preference", `{"placement":{"replica_scheduling":{"type":"Duplicated"}}}`,
			`{"resource_selectors":null,"placement":{"replica_scheduling":{"type":"Duplicated"}},"preemption":"Never","workload_preemption":"Never"}`},
		{"spread over at least one cluster, without an upper bound", `{"placement":{"spread_constraints":[{},{"spread_by_label":"tier","min_groups":0},{"spread_by_field":"region","min_groups":2,"max_groups":0}]}}`,
			`{"resource_selectors":null,"placement":{"spread_constraints":[{"spread_by_field":"cluster","min_groups":1},{"spread_by_label":"tier","min_groups":1},{"spread_by_field":"region","min_groups":2,"max_groups":0}]},"preemption":"Never","workload_preemption":"Never"}`},
		{"tolerations compare the value", `{"placement":{"cluster_tolerations":[{"key":"k"}]}}`,
			`{"resource_selectors":null,"placement":{"cluster_tolerations":[{"key":"k","operator":"Equal"}]},"preemption":"Never","workload_preemption":"Never"}`},
		{"failover is graceful", `{"failover":{"cluster":{},"application":{}}}`,
			`{"resource_selectors":null,"preemption":"Never","workload_preemption":"Never","failover":{"cluster":{"purge_mode":"Gracefully","grace_period":"10m"},"application":{"toleration":"5m","purge_mode":"Gracefully","grace_period":"10m"}}}`},
		{"a direct purge has no grace period", `{"failover":{"cluster":{"purge_mode":"Directly"},"application":{"purge_mode":"Never","toleration":"0s"}}}`,
			`{"resource_selectors":null,"preemption":"Never","workload_preemption":"Never","failover":{"cluster":{"purge_mode":"Directly"},"application":{"toleration":"0s","purge_mode":"Never"}}}`},
		{"unhealthy applications stay by default", `{"failover":{}}`,
			`{"resource_selectors":null,"preemption":"Never","workload_preemption":"Never","failover":{}}`},
		{"a fail-back is automatic", `{"fail_back":{}}`,
			`{"resource_selectors":null,"preemption":"Never","workload_preemption":"Never","fail_back":{"mode":"automatic","stabilization":"10m"}}`},
		{"given values stay", `{"preemption":"Always","fail_back":{"mode":"never","stabilization":"0s"}}`,
			`{"resource_selectors":null,"preemption":"Always","workload_preemption":"Never","fail_back":{"mode":"never","stabilization":"0s"}}`},
	} {
		o, err := Decode([]byte(`{"kind":"propagation_policy","metadata":{"name":"p"},"spec":` + tt.given + `}`))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for _, when := range []string{"once", "twice"} {
			if got, err := json.Marshal(o.SpecPart()); err != nil || string(got) != tt.want {
				t.Errorf("%s: defaults %s give\n%s, want\n%s (%v)", tt.name, when, got, tt.want, err)
			}
			o.SetDefaults()
		}
	}
}

// TestNamespaceOfPolicies checks that a policy without a namespace is global and named without one.
func TestNamespaceOfPolicies(t *testing.T) {
	for text, path := range map[string]string{`{"name":"p"}`: "p", `{"name":"p","namespace":"shop"}`: "shop/p"} {
		o, err := Decode([]byte(`{"kind":"propagation_policy","metadata":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		p := o.(*PropagationPolicy)
		if p.Path() != path || PolicyKey(path) != KeyOf(p) {
			t.Errorf("%s has the path %q, but PolicyKey(%q) = %s", text, p.Path(), path, PolicyKey(path))
		}
	}
	w := &Workload{}
	w.SetDefaults()
	if w.Metadata.Namespace != "default" {
		t.Errorf("namespace of a workload without one is %q, want default", w.Metadata.Namespace)
	}
}

// TestAffinityGroupsOnTheWire checks that the selector fields of a group are next to its name in
// JSON, and survive a round trip.
func TestAffinityGroupsOnTheWire(t *testing.T) {
	const text = `[{"affinity_name":"a","cluster_names":["c"],"exclude_clusters":["d"],"label_selector":{"match_labels":{"k":"v"}},` +
		`"field_selector":[{"key":"zone","operator":"NotIn","values":["z"]}],"overflow_affinities":[{"affinity_name":"b","cluster_names":["e"]}]}]`
	o, err := Decode([]byte(policyWith(`"cluster_affinities":` + text)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(o.(*PropagationPolicy).Spec.Placement.ClusterAffinities)
	if err != nil || string(got) != text {
		t.Errorf("encoded as\n%s, want\n%s (%v)", got, text, err)
	}
}

func TestGroupConstraint(t *testing.T) {
	for _, tt := range []struct {
		constraint GroupConstraint
		by         string
		most       int64
		limited    bool
	}{
		{GroupConstraint{SpreadByField: GroupByRegion}, "region", 0, false},
		{GroupConstraint{SpreadByField: GroupByZone, MaxGroups: new(int64(0))}, "zone", 0, false},
		{GroupConstraint{SpreadByLabel: "tier", MaxGroups: new(int64(2))}, `label "tier"`, 2, true},
	} {
		most, limited := tt.constraint.Max()
		if tt.constraint.By() != tt.by || most != tt.most || limited != tt.limited {
			t.Errorf("%+v: by %s, at most %d (%t)", tt.constraint, tt.constraint.By(), most, limited)
		}
	}
}

func TestAPIResourcesOfClusters(t *testing.T) {
	c := &Cluster{Metadata: Metadata{Name: "c"}}
	c.Spec.APIResources = []string{"apps/v1/Deployment", "v1/ConfigMap", "Deployment", "apps/Deployment", "apps/v1/Deployment", "/v1/X", "v1/"}
	want := []string{"spec.api_resources[2]", "spec.api_resources[3]", "spec.api_resources[4]", "spec.api_resources[5]", "spec.api_resources[6]"}
	if got := paths(c.Validate()); !slices.Equal(got, want) {
		t.Errorf("errors in %q, want %q", got, want)
	}
}
