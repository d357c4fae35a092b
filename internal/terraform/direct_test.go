package terraform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"pgregory.net/rapid"
)

// framework counts calls to the framework.
type framework struct {
	tfprotov6.ProviderServer
	asked int
}

func (f *framework) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	f.asked++
	return f.ProviderServer.ValidateResourceConfig(ctx, req)
}

func (f *framework) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	f.asked++
	return f.ProviderServer.UpgradeResourceState(ctx, req)
}

func (f *framework) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	f.asked++
	return f.ProviderServer.PlanResourceChange(ctx, req)
}

// All resources can be answered without the framework.
func TestEveryResourceIsDirect(t *testing.T) {
	server := configured(t, "http://127.0.0.1:9") // never called
	for kind := range objectResources(t) {
		if err := server.Direct(kind); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// eachDirect runs a property test for every resource. draw calls the server, which calls the framework if it cannot
// answer on its own, and reports in answered whether it did not.
func eachDirect(t *testing.T, draw func(t *rapid.T, server *terraform.Server, f *framework, d drawn) (answered bool)) {
	t.Helper()
	server := configured(t, "http://127.0.0.1:9") // never called
	f := &framework{ProviderServer: server.ProviderServer}
	server.ProviderServer = f
	for kind, r := range objectResources(t) {
		d := drawn{kind: kind, resource: r, schema: schemaOf(t.Context(), r)}
		d.typ, _ = d.schema.Type().TerraformType(t.Context()).(tftypes.Object)
		answered, all := 0, 0
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				all++
				if draw(t, server, f, d) {
					answered++
				}
			})
		})
		t.Logf("%s: %d of %d without the framework", kind, answered, all)
		if answered == 0 {
			t.Errorf("%s: nothing is answered without the framework", kind)
		}
	}
}

type drawn struct {
	kind     api.Kind
	resource *terraform.Resource
	schema   schema.Schema
	typ      tftypes.Object
}

// If all attributes of a configuration are valid, the framework reports only violations of the object's rules, for
// every resource.
func TestDirectValidationsEqualTheFrameworks(t *testing.T) {
	eachDirect(t, func(t *rapid.T, server *terraform.Server, f *framework, d drawn) bool {
		config := drawNew(t, d)
		req := &tfprotov6.ValidateResourceConfigRequest{TypeName: "scheduler_" + string(d.kind), Config: dynamic(t, d.typ, config)}
		writeOnly := rapid.IntRange(0, 9).Draw(t, "old Terraform") > 0
		if writeOnly {
			req.ClientCapabilities = &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true}
		}
		config, err := req.Config.Unmarshal(d.typ) // numbers as they are transmitted
		if err != nil {
			t.Fatal(err)
		}
		valid := server.Valid(d.kind, config, writeOnly)
		var rules resource.ValidateConfigResponse
		d.resource.ValidateConfig(context.Background(), resource.ValidateConfigRequest{Config: tfsdk.Config{Raw: config, Schema: d.schema}}, &rules)
		var want []string
		for _, diagnostic := range rules.Diagnostics {
			want = append(want, diagnostic.Summary()+": "+diagnostic.Detail())
		}
		all, err := f.ProviderServer.ValidateResourceConfig(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if more := slices.DeleteFunc(all.Diagnostics, func(d *tfprotov6.Diagnostic) bool { return slices.Contains(want, d.Summary+": "+d.Detail) }); valid && len(more) > 0 {
			t.Fatalf("the framework returned %s", shownDiagnostics(more))
		}
		before := f.asked
		got, err := server.ValidateResourceConfig(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if direct := f.asked == before; direct != (valid && len(want) == 0) || direct && len(got.Diagnostics) > 0 {
			t.Fatalf("answered without the framework: %v, with diagnostics %s", direct, shownDiagnostics(got.Diagnostics))
		}
		return valid
	})
}

// The plan of a new object without the framework equals the framework's, for every resource.
func TestDirectCreationsEqualTheFrameworks(t *testing.T) {
	eachDirect(t, func(t *rapid.T, server *terraform.Server, f *framework, d drawn) bool {
		config := drawNew(t, d)
		proposed := config
		if rapid.Bool().Draw(t, "without write-only values") {
			proposed = tftypes.NewValue(d.typ, withoutWriteOnly(d.schema.Attributes, terraform.AttributesOf(config)))
		}
		req := &tfprotov6.PlanResourceChangeRequest{
			TypeName: "scheduler_" + string(d.kind), PriorState: dynamic(t, d.typ, tftypes.NewValue(d.typ, nil)),
			ProposedNewState: dynamic(t, d.typ, proposed), Config: dynamic(t, d.typ, config),
		}
		before, again := f.asked, *req
		got, err := server.PlanResourceChange(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if f.asked > before {
			return false
		}
		want, err := f.ProviderServer.PlanResourceChange(context.Background(), &again)
		if err != nil {
			t.Fatal(err)
		}
		samePlan(t, d.resource, d.typ, got, want)
		return true
	})
}

// Reading a stored state without the framework gives the framework's result.
func TestDirectUpgradesEqualTheFrameworks(t *testing.T) {
	eachDirect(t, func(t *rapid.T, server *terraform.Server, f *framework, d drawn) bool {
		object := drawObject(t, d.kind, 1)
		state, err := d.resource.Values(context.Background(), d.typ, object, nullAttributes(d.typ))
		if err != nil {
			t.Fatal(err)
		}
		read := terraform.ConfigDocument{}
		document, _ := read.Read(tftypes.NewValue(d.typ, drift(t, "state", state)), path.Empty())
		stored, _ := document.(map[string]any)
		switch rapid.IntRange(0, 9).Draw(t, "odd") {
		case 0:
			stored["no such attribute"] = 1
		case 1:
			stored["name"] = []any{}
		case 2, 3, 4:
			misplace(t, stored, rapid.SampledFrom([]any{
				nil, true, "true", "1", "", 1, 0.1, json.Number("1e3"), json.Number("1e400"), []any{}, []any{nil}, []any{"x", "x"}, map[string]any{}, map[string]any{"odd": nil},
			}).Draw(t, "odd value"))
		}
		data, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		req := &tfprotov6.UpgradeResourceStateRequest{
			TypeName: "scheduler_" + string(d.kind), RawState: &tfprotov6.RawState{JSON: data}, Version: int64(max(rapid.IntRange(-9, 1).Draw(t, "version"), 0)),
		}
		before := f.asked
		got, err := server.UpgradeResourceState(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if f.asked > before {
			return false
		}
		want, err := f.ProviderServer.UpgradeResourceState(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Diagnostics) > 0 {
			t.Fatal("the framework returned diagnostics:", shownDiagnostics(want.Diagnostics))
		}
		a, errA := got.UpgradedState.Unmarshal(d.typ)
		b, errB := want.UpgradedState.Unmarshal(d.typ)
		if errA != nil || errB != nil || !a.Equal(b) {
			t.Fatalf("state %s (%v), want the framework's %s (%v)", a, errA, b, errB)
		}
		return true
	})
}

// misplace replaces a random value in a document by another one, or adds it next to one.
func misplace(t *rapid.T, document any, value any) {
	deeper := func(inner any, put func(any)) {
		switch inner.(type) {
		case map[string]any, []any:
			if rapid.IntRange(0, 3).Draw(t, "deeper") > 0 {
				misplace(t, inner, value)
				return
			}
		}
		put(value)
	}
	switch document := document.(type) {
	case map[string]any:
		names := append(slices.Sorted(maps.Keys(document)), "beside")
		name := rapid.SampledFrom(names).Draw(t, "place")
		deeper(document[name], func(v any) { document[name] = v })
	case []any:
		if len(document) > 0 {
			i := rapid.IntRange(0, len(document)-1).Draw(t, "element")
			deeper(document[i], func(v any) { document[i] = v })
		}
	}
}

func shownDiagnostics(diagnostics []*tfprotov6.Diagnostic) string {
	text := ""
	for _, d := range diagnostics {
		text += fmt.Sprintf("%s %s: %s\n", d.Attribute, d.Summary, d.Detail)
	}
	return text
}

// drawNew draws the configuration of a new object, which is usually valid.
func drawNew(t *rapid.T, d drawn) tftypes.Value {
	object := drawObject(t, d.kind, 1)
	object.SetDefaults()
	attributes, err := d.resource.Values(context.Background(), d.typ, object, nullAttributes(d.typ))
	if err != nil {
		t.Fatal(err)
	}
	leaveOut := max(rapid.IntRange(-2, 3).Draw(t, "leaves out"), 0) // leave out nothing, everything, or some
	config := drawConfig(t, "config", d.schema.Attributes, attributes, leaveOut)
	switch rapid.IntRange(0, 3).Draw(t, "is odd") {
	case 0:
		config = drift(t, "config", config)
	case 1:
		config = unknowns(t, "config", config)
	}
	return tftypes.NewValue(d.typ, config)
}

// unknowns makes some values of a configuration unknown, and some numbers fractional.
func unknowns(t *rapid.T, at string, config map[string]tftypes.Value) map[string]tftypes.Value {
	changed := maps.Clone(config)
	for _, name := range slices.Sorted(maps.Keys(config)) {
		changed[name] = unknownValue(t, at+"."+name, config[name])
	}
	return changed
}

func unknownValue(t *rapid.T, at string, v tftypes.Value) tftypes.Value {
	typ := v.Type()
	switch draw := rapid.IntRange(0, 19).Draw(t, at+" is unknown"); {
	case draw == 0:
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	case draw == 1 && typ.Is(tftypes.Number):
		return tftypes.NewValue(typ, 1.5)
	case v.IsNull():
	case typ.Is(tftypes.Object{}):
		return tftypes.NewValue(typ, unknowns(t, at, terraform.AttributesOf(v)))
	case typ.Is(tftypes.List{}), typ.Is(tftypes.Set{}):
		elements := slices.Clone(terraform.ElementsOf(v))
		for i := range elements {
			elements[i] = unknownValue(t, fmt.Sprint(at, i), elements[i])
		}
		if draw == 2 && len(elements) > 0 {
			elements = append(elements, elements[0])
		}
		return tftypes.NewValue(typ, elements)
	}
	return v
}

// withoutWriteOnly replaces write-only values by null.
func withoutWriteOnly(attributes map[string]schema.Attribute, config map[string]tftypes.Value) map[string]tftypes.Value {
	without := maps.Clone(config)
	for name, attribute := range attributes {
		v := config[name]
		nested, ok := attribute.(schema.SingleNestedAttribute)
		switch {
		case attribute.IsWriteOnly():
			without[name] = tftypes.NewValue(v.Type(), nil)
		case ok && v.IsKnown() && !v.IsNull():
			without[name] = tftypes.NewValue(v.Type(), withoutWriteOnly(nested.Attributes, terraform.AttributesOf(v)))
		}
	}
	return without
}
