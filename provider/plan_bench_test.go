package provider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// BenchmarkPlanPlacement measures the provider's part of validating and planning a placement: one that does not change,
// without the read, and a new one.
func BenchmarkPlanPlacement(b *testing.B) {
	state := doc{
		"name": "web", "namespace": "shop", "number_of_clusters": 2, "label_constraints": list{"location is DE"}, "labels": doc{"a": "b"},
		"metric_constraint_basis": "raw", "strategy": "metrics", "metrics": doc{"stickiness": 0.1}, "migration": true,
		"reschedule_after": "60s", "min_improvement": 0, "clusters": list{"east", "west"},
	}
	b.Run("unchanged", func(b *testing.B) { benchmarkPlan(b, state) })
	b.Run("new", func(b *testing.B) { benchmarkPlan(b, nil) })
}

// writtenPlacement is its configuration.
var writtenPlacement = doc{"name": "web", "namespace": "shop", "number_of_clusters": 2, "label_constraints": list{"location is DE"}, "labels": doc{"a": "b"}}

// BenchmarkCreatePlacement measures the provider's part of creating a planned placement, including the server's time.
func BenchmarkCreatePlacement(b *testing.B) {
	answer := `{"kind":"placement","metadata":{"name":"web","namespace":"shop","labels":{"a":"b"},"uid":"u","generation":1,"resource_version":"7",` +
		`"created_at":"2026-01-01T00:00:00Z","modified_at":"2026-01-01T00:00:00Z"},"spec":{"number_of_clusters":2,"label_constraints":["location is DE"],` +
		`"metric_constraint_basis":"raw","strategy":"metrics","metrics":{"stickiness":0.1},"migration":true,"reschedule_after":"60s","min_improvement":0},` +
		`"status":{"observed_generation":1,"clusters":["east","west"],"conditions":[{"type":"Scheduled","status":"True","reason":"Scheduled"}]}}`
	shelf := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer shelf.Close()
	ctx := b.Context()
	server, typ := benchmarked(b, doc{"endpoint": shelf.URL, "check_connection": false})
	given, before := encoded(b, typ, writtenPlacement), encoded(b, typ, nil)
	planned, err := server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{TypeName: "scheduler_placement", Config: given, PriorState: before, ProposedNewState: given})
	if err != nil || len(planned.Diagnostics) > 0 {
		b.Fatal(planned, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		applied, err := server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
			TypeName: "scheduler_placement", Config: given, PriorState: before, PlannedState: planned.PlannedState, PlannedPrivate: planned.PlannedPrivate, PlannedIdentity: planned.PlannedIdentity,
		})
		if err != nil || len(applied.Diagnostics) > 0 {
			b.Fatal(applied, err)
		}
	}
}

// benchmarked returns a configured provider and the type of a placement.
func benchmarked(b *testing.B, settings doc) (tfprotov6.ProviderServer, tftypes.Type) {
	b.Helper()
	b.Setenv("TF_LOG_SDK", "OFF")
	server := NewServer("test")()
	schema, err := server.GetProviderSchema(b.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		b.Fatal(err)
	}
	config := encoded(b, schema.Provider.ValueType(), settings)
	if resp, err := server.ConfigureProvider(b.Context(), &tfprotov6.ConfigureProviderRequest{Config: config}); err != nil || len(resp.Diagnostics) > 0 {
		b.Fatal(resp, err)
	}
	return server, schema.ResourceSchemas["scheduler_placement"].ValueType()
}

// encoded encodes a value of a type as Terraform sends it, nil = null.
func encoded(b *testing.B, typ tftypes.Type, document doc) *tfprotov6.DynamicValue {
	b.Helper()
	value := tftypes.NewValue(typ, nil)
	if document != nil {
		value = terraformtest.ConfigValue(b, typ, document)
	}
	dynamic, err := tfprotov6.NewDynamicValue(typ, value)
	if err != nil {
		b.Fatal(err)
	}
	return &dynamic
}

// benchmarkPlan plans a placement with this state, nil = none.
func benchmarkPlan(b *testing.B, state doc) {
	ctx := b.Context()
	server, typ := benchmarked(b, doc{"check_connection": false})
	given, before, proposed := encoded(b, typ, writtenPlacement), encoded(b, typ, state), encoded(b, typ, state)
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
