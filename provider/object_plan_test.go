package provider

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// planOf plans a resource as Terraform does. config and state are documents; without a state, the resource is created.
func planOf(t *testing.T, resourceType string, config tftypes.Value, state doc) map[string]tftypes.Value {
	t.Helper()
	planned, diags := planWith(t, resourceType, config, state)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	return planned
}

// planWith is planOf with the diagnostics of the plan.
func planWith(t *testing.T, resourceType string, config tftypes.Value, state doc) (map[string]tftypes.Value, []*tfprotov6.Diagnostic) {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	block := schema.ResourceSchemas[resourceType]
	before := tftypes.NewValue(block.ValueType(), nil)
	if state != nil {
		before = terraformtest.ConfigValue(t, block.ValueType(), state)
	}
	// Terraform proposes the configuration, with the state's values for computed attributes that it omits.
	given, prior := terraform.AttributesOf(config), terraform.AttributesOf(before)
	proposed := maps.Clone(given)
	for _, a := range block.Block.Attributes {
		if value := given[a.Name]; a.Computed && value.IsKnown() && value.IsNull() && prior != nil {
			proposed[a.Name] = prior[a.Name]
		}
	}
	dynamic := func(v tftypes.Value) *tfprotov6.DynamicValue {
		value, err := tfprotov6.NewDynamicValue(v.Type(), v)
		if err != nil {
			t.Fatal(err)
		}
		return &value
	}
	resp, err := server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: resourceType, Config: dynamic(config), PriorState: dynamic(before),
		ProposedNewState: dynamic(tftypes.NewValue(config.Type(), proposed)),
	})
	if err != nil {
		t.Fatal(err)
	}
	planned, err := resp.PlannedState.Unmarshal(config.Type())
	if err != nil {
		t.Fatal(err)
	}
	return terraform.AttributesOf(planned), resp.Diagnostics
}

// unknown stands for a value that is known only after apply.
type unknown struct{}

func placementState(changes doc) doc {
	state := doc{
		"name": "web", "namespace": "shop", "metric_constraint_basis": "raw", "strategy": "metrics", "metrics": doc{"stickiness": 0.1},
		"migration": true, "reschedule_after": "60s", "min_improvement": 0, "clusters": list{"east"},
	}
	maps.Copy(state, changes)
	return state
}

// The defaults of a strategy are known in the plan, whatever the state had. The decision is unknown only if something
// that it depends on changes.
func TestPlanPlacement(t *testing.T) {
	byPrioritizers := doc{
		"strategy": "prioritizers", "metrics": nil, "reschedule_after": "0s", "prioritizer_policy": doc{"mode": "additive"},
	}
	for _, test := range []struct {
		name   string
		config doc
		state  doc
		want   doc
	}{
		{"created with metrics", doc{}, nil,
			doc{"reschedule_after": "60s", "metrics": doc{"stickiness": 0.1}, "prioritizer_policy": nil, "clusters": unknown{}}},
		{"created with prioritizers", doc{"strategy": "prioritizers"}, nil,
			doc{"reschedule_after": "0s", "metrics": nil, "prioritizer_policy": doc{"mode": "additive"}, "clusters": unknown{}}},
		{"explicit values are kept", doc{"strategy": "prioritizers", "reschedule_after": "5m", "prioritizer_policy": doc{"mode": "exact"}}, nil,
			doc{"reschedule_after": "5m", "prioritizer_policy": doc{"mode": "exact"}}},
		{"a weight of 0 is kept", doc{"strategy": "prioritizers", "prioritizer_policy": doc{"configurations": list{doc{"name": "balance", "weight": 0}, doc{"name": "steady"}}}}, nil,
			doc{"prioritizer_policy": doc{"mode": "additive", "configurations": list{
				doc{"type": "builtin", "name": "balance", "weight": 0}, doc{"type": "builtin", "name": "steady", "weight": 1},
			}}}},
		{"no change", doc{}, placementState(nil), placementState(nil)},
		{"no change with prioritizers", doc{"strategy": "prioritizers"}, placementState(byPrioritizers), placementState(byPrioritizers)},
		{"a label", doc{"labels": doc{"team": "a"}}, placementState(nil),
			doc{"reschedule_after": "60s", "metrics": doc{"stickiness": 0.1}, "clusters": list{"east"}}},
		{"how long to wait", doc{"wait": doc{"for": "none"}}, placementState(nil), doc{"clusters": list{"east"}}},
		{"another strategy", doc{"strategy": "prioritizers"}, placementState(nil),
			doc{"reschedule_after": "0s", "metrics": nil, "prioritizer_policy": doc{"mode": "additive"}, "clusters": unknown{}}},
		{"back to metrics", doc{}, placementState(byPrioritizers),
			doc{"reschedule_after": "60s", "metrics": doc{"stickiness": 0.1}, "prioritizer_policy": nil, "clusters": unknown{}}},
		{"default changed outside Terraform", doc{}, placementState(doc{"reschedule_after": "1s"}),
			doc{"reschedule_after": "60s", "clusters": unknown{}}},
		{"a strategy known after apply", doc{"strategy": unknown{}}, placementState(nil),
			doc{"reschedule_after": unknown{}, "metrics": unknown{}, "prioritizer_policy": unknown{}, "clusters": unknown{}}},
		{"a strategy known after apply, and given values", doc{"strategy": unknown{}, "reschedule_after": "1m"}, nil,
			doc{"reschedule_after": "1m", "metrics": unknown{}, "prioritizer_policy": unknown{}}},
		{"a taint tolerated", doc{"tolerations": list{doc{"key": "a", "value": "b"}}}, placementState(nil),
			doc{"tolerations": list{doc{"key": "a", "operator": "Equal", "value": "b"}}, "clusters": unknown{}}},
		{"a set", doc{"cluster_sets": list{"eu"}}, placementState(nil), doc{"clusters": unknown{}}},
		{"groups", doc{"decision_strategy": doc{}}, placementState(nil),
			doc{"decision_strategy": doc{"clusters_per_decision_group": "100%"}, "clusters": unknown{}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			typ := newValidation(t).types["scheduler_placement"]
			config := doc{"name": "web", "namespace": "shop"}
			maps.Copy(config, test.config)
			strategy := config["strategy"]
			if strategy == (unknown{}) {
				delete(config, "strategy")
			}
			value := terraformtest.ConfigValue(t, typ, config)
			if strategy == (unknown{}) {
				value = withUnknown(value, "strategy", false)
			}
			plansAs(t, typ, planOf(t, "scheduler_placement", value, test.state), test.want)
		})
	}
}

// Another spelling of the same time is not a change; another time is.
func TestPlanInstant(t *testing.T) {
	typ := newValidation(t).types["scheduler_placement_score"]
	state := doc{"name": "agent", "cluster": "east", "scores": doc{"load": 1}, "valid_until": "2031-01-01T12:00:00Z"}
	for _, test := range []struct{ config, want string }{
		{"2031-01-01T12:00:00Z", "2031-01-01T12:00:00Z"},
		{"2031-01-01T14:00:00+02:00", "2031-01-01T12:00:00Z"},
		{"2031-01-01T12:00:00.000Z", "2031-01-01T12:00:00Z"},
		{"2031-01-01T12:00:00+02:00", "2031-01-01T12:00:00+02:00"},
		{"2031-01-01T12:00:00.001Z", "2031-01-01T12:00:00.001Z"},
	} {
		config := maps.Clone(state)
		config["valid_until"] = test.config
		planned := planOf(t, "scheduler_placement_score", terraformtest.ConfigValue(t, typ, config), state)
		if got := terraform.TextOf(planned["valid_until"]); got != test.want {
			t.Errorf("%s is planned as %q, expected %q", test.config, got, test.want)
		}
	}
}
