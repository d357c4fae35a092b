package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// BenchmarkPlanPlacement is what Terraform asks of the provider to validate and plan one
// placement: one that does not change, reading apart, and a new one.
func BenchmarkPlanPlacement(b *testing.B) {
	state := doc{
		"name": "web", "namespace": "shop", "number_of_clusters": 2, "label_constraints": list{"location is DE"}, "labels": doc{"a": "b"},
		"metric_constraint_basis": "raw", "strategy": "metrics", "metrics": doc{"stickiness": 0.1}, "migration": true,
		"reschedule_after": "60s", "min_improvement": 0, "clusters": list{"east", "west"},
	}
	b.Run("unchanged", func(b *testing.B) { benchmarkPlan(b, state) })
	b.Run("new", func(b *testing.B) { benchmarkPlan(b, nil) })
}

// benchmarkPlan plans a placement that has this state, nil = none.
func benchmarkPlan(b *testing.B, state doc) {
	b.Setenv("TF_LOG_SDK", "OFF")
	server := NewServer("test")()
	ctx := b.Context()
	schema, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		b.Fatal(err)
	}
	settings := schema.Provider.ValueType()
	config, err := tfprotov6.NewDynamicValue(settings, terraformtest.ConfigValue(b, settings, doc{"check_connection": false}))
	if err != nil {
		b.Fatal(err)
	}
	if resp, err := server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: &config}); err != nil || len(resp.Diagnostics) > 0 {
		b.Fatal(resp, err)
	}
	typ := schema.ResourceSchemas["scheduler_placement"].ValueType()
	value := func(document doc) *tfprotov6.DynamicValue {
		decoded := tftypes.NewValue(typ, nil)
		if document != nil {
			decoded = terraformtest.ConfigValue(b, typ, document)
		}
		dynamic, err := tfprotov6.NewDynamicValue(typ, decoded)
		if err != nil {
			b.Fatal(err)
		}
		return &dynamic
	}
	written := doc{"name": "web", "namespace": "shop", "number_of_clusters": 2, "label_constraints": list{"location is DE"}, "labels": doc{"a": "b"}}
	given, before, proposed := value(written), value(state), value(state)
	if state == nil {
		proposed = given
	}
	b.ReportAllocs()
	for b.Loop() {
		valid, err := server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: "scheduler_placement", Config: given})
		if err != nil || len(valid.Diagnostics) > 0 {
			b.Fatal(valid, err)
		}
		planned, err := server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
			TypeName: "scheduler_placement", Config: given, PriorState: before, ProposedNewState: proposed,
		})
		if err != nil || len(planned.Diagnostics) > 0 {
			b.Fatal(planned, err)
		}
		if state != nil && planned.PlannedState != before {
			b.Fatal("the plan is not empty")
		}
	}
}
