package terraform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
	"github.com/scheduler/terraform-provider-scheduler/provider"
	"pgregory.net/rapid"
)

// configured returns a provider configured for a server.
func configured(t testing.TB, endpoint string) *terraform.Server {
	t.Helper()
	server, ok := provider.NewServer("test")().(*terraform.Server)
	if !ok {
		t.Fatalf("the server has the type %T", server)
	}
	described, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ := described.Provider.ValueType()
	config := dynamic(t, typ, terraformtest.ConfigValue(t, typ, doc{"endpoint": endpoint, "warn_unsatisfied": false, "check_connection": false, "namespace": "shop"}))
	resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: config})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(resp, err)
	}
	return server
}

type fataler interface{ Fatal(args ...any) }

func dynamic(t fataler, typ tftypes.Type, value tftypes.Value) *tfprotov6.DynamicValue {
	encoded, err := tfprotov6.NewDynamicValue(typ, value)
	if err != nil {
		t.Fatal(err)
	}
	return &encoded
}

// A plan without the framework equals the framework's plan, for every resource, whatever the configuration omits and
// the state has instead.
func TestSteadyPlansEqualTheFrameworks(t *testing.T) {
	server := configured(t, "http://127.0.0.1:9") // never called
	for kind, r := range objectResources(t) {
		described := schemaOf(t.Context(), r)
		typ, _ := described.Type().TerraformType(t.Context()).(tftypes.Object)
		answered, all := 0, 0
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				req := drawPlan(t, kind, r, described, typ)
				again := *req
				got, err := server.PlanResourceChange(context.Background(), req)
				if err != nil {
					t.Fatal(err)
				}
				if all++; got.PlannedState != req.PriorState {
					return // answered by the framework
				}
				answered++
				want, err := server.ProviderServer.PlanResourceChange(context.Background(), &again)
				if err != nil {
					t.Fatal(err)
				}
				samePlan(t, r, typ, got, want)
			})
		})
		t.Logf("%s: %d of %d plans without the framework", kind, answered, all)
		if answered == 0 {
			t.Errorf("%s: no plan was answered without the framework", kind)
		}
	}
}

// A plan needs the framework if the state differs from what follows from its other attributes.
func TestUnsteadyPlans(t *testing.T) {
	server := configured(t, "http://127.0.0.1:9") // never called
	policy := func(purge, period any) doc {
		return doc{
			"name": "p", "namespace": "shop", "priority": 0, "preemption": "Never", "workload_preemption": "Never", "bindings": doc{},
			"resource_selectors": list{doc{"api_version": "v1", "kind": "ConfigMap"}},
			"failover":           doc{"cluster": doc{"purge_mode": purge, "grace_period": period}},
		}
	}
	for _, test := range []struct {
		name          string
		config, state doc
		private       string
		steady        bool
	}{
		{"derived value", policy("Gracefully", nil), policy("Gracefully", "10m"), "", true},
		{"other default of another attribute", policy("Gracefully", nil), policy("Gracefully", "5m"), "", false},
		{"no default of another attribute", policy("Gracefully", nil), policy("Gracefully", nil), "", false},
		{"default without a reason", policy("Directly", nil), policy("Directly", "10m"), "", false},
		{"no default, without a reason", policy("Directly", nil), policy("Directly", nil), "", true},
		{"own default", policy(nil, "1m"), policy("Directly", "1m"), "", false},
		{"finished", policy("Directly", nil), policy("Directly", nil), `["u",1,"7",false,false,""]`, true},
		{"unfinished", policy("Directly", nil), policy("Directly", nil), `["u",1,"7",true,false,""]`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := resourceOf(t, api.KindPropagationPolicy)
			typ, _ := schemaOf(t.Context(), r).Type().TerraformType(t.Context()).(tftypes.Object)
			delete(test.config, "bindings")
			state := dynamic(t, typ, terraformtest.ConfigValue(t, typ, test.state))
			req := &tfprotov6.PlanResourceChangeRequest{
				TypeName: "scheduler_propagation_policy", PriorState: state, ProposedNewState: state, Config: dynamic(t, typ, terraformtest.ConfigValue(t, typ, test.config)),
			}
			if test.private != "" {
				private, err := json.Marshal(map[string][]byte{"version": []byte(test.private)})
				if err != nil {
					t.Fatal(err)
				}
				req.PriorPrivate = private
			}
			resp, err := server.PlanResourceChange(t.Context(), req)
			if err != nil || len(resp.Diagnostics) > 0 {
				t.Fatal(resp, err)
			}
			planned, err := resp.PlannedState.Unmarshal(typ)
			if err != nil {
				t.Fatal(err)
			}
			same := planned.Equal(terraformtest.ConfigValue(t, typ, test.state))
			if steady := resp.PlannedState == req.PriorState; steady != test.steady || same != test.steady {
				t.Errorf("answered without the framework: %v, planned %s", steady, planned)
			}
		})
	}
}

// A read without the framework equals the framework's, for every resource: the unchanged state if it was made from the
// listed object, and otherwise the state that follows from the object.
func TestSteadyReadsEqualTheFrameworks(t *testing.T) {
	var object api.Object // the server's object
	shelf := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}))
	defer shelf.Close()
	for kind, r := range objectResources(t) {
		described := schemaOf(t.Context(), r)
		typ, _ := described.Type().TerraformType(t.Context()).(tftypes.Object)
		asIs, anew, all := 0, 0, 0
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				server := configured(t, shelf.URL)
				object = drawObject(rt, kind, 1)
				object.SetDefaults()
				meta := object.Meta()
				meta.UID, meta.Generation = "u", 2
				meta.ResourceVersion = rapid.SampledFrom([]string{"7", "7", "8"}).Draw(rt, "version")
				if meta.Namespace == "" && r.Scope() == api.Namespaced {
					meta.Namespace = "shop"
				}
				state, err := r.Values(context.Background(), typ, object, nullAttributes(typ))
				if err != nil {
					rt.Fatal(err)
				}
				private := privateVersion(rt, rapid.SampledFrom([]string{
					`["u",2,"7",false,false,"EXACT"]`, `["u",2,"7",false,false,"EXACT"]`, `["u",2,"7",false,false,"EXACT"]`, `["u",2,"7",true,false,"EXACT"]`, `["v",2,"7",false,false,"EXACT"]`,
					`["u",2,"7",false,true,"EXACT"]`, `["u",1,"7",false,false,"EXACT"]`, `["u",2,"7",false,false,"other"]`, `["u",2,"7",false,false,""]`,
				}).Draw(rt, "private"))
				if private = server.Exact(kind, typ, private); rapid.IntRange(0, 9).Draw(rt, "no private state") == 0 {
					private = nil
				}
				// This private state says that the rest was made from this object.
				exact := meta.ResourceVersion == "7" && string(private) == string(server.Exact(kind, typ, privateVersion(rt, `["u",2,"7",false,false,"EXACT"]`)))
				if !exact && rapid.Bool().Draw(rt, "drifted") {
					state = drift(rt, "state", state)
				}
				if limit := rapid.SampledFrom([]string{"", "", "", "30s", "soon"}).Draw(rt, "timeouts.read"); limit != "" && (!exact || limit != "soon") {
					limits, _ := typ.AttributeTypes["timeouts"].(tftypes.Object)
					of := nullAttributes(limits)
					of["read"] = tftypes.NewValue(tftypes.String, limit)
					state["timeouts"] = tftypes.NewValue(limits, of)
				}
				server.List(object)
				req := &tfprotov6.ReadResourceRequest{
					TypeName: "scheduler_" + string(kind), CurrentState: dynamic(rt, typ, tftypes.NewValue(typ, state)), Private: private,
				}
				again := *req
				got, err := server.ReadResource(context.Background(), req)
				if err != nil {
					rt.Fatal(err)
				}
				all++
				switch {
				case !server.ReadsDirectly(req):
					return // answered by the framework
				case exact:
					asIs++
				default:
					anew++
				}
				want, err := server.ProviderServer.ReadResource(context.Background(), &again)
				if err != nil {
					rt.Fatal(err)
				}
				if len(want.Diagnostics) > 0 || want.NewState == nil {
					rt.Fatalf("the framework returned %v", want.Diagnostics)
				}
				is, err := want.NewState.Unmarshal(typ)
				if err != nil {
					rt.Fatal(err)
				}
				has, err := got.NewState.Unmarshal(typ)
				if err != nil {
					rt.Fatal(err)
				}
				if !is.Equal(has) {
					rt.Fatalf("state %s, want the framework's %s", has, is)
				}
				if a, b := shownIdentity(rt, r, got.NewIdentity), shownIdentity(rt, r, want.NewIdentity); a != b || string(got.Private) != string(want.Private) {
					rt.Fatalf("identity %s, want the framework's %s; private %s, want %s", a, b, got.Private, want.Private)
				}
			})
		})
		t.Logf("%s: of %d reads, %d unchanged and %d changed were answered without the framework", kind, all, asIs, anew)
		if asIs == 0 || anew == 0 {
			t.Errorf("%s: no unchanged or no changed read was answered without the framework", kind)
		}
	}
}

// privateVersion returns private state with a version.
func privateVersion(t fataler, version string) []byte {
	private, err := json.Marshal(map[string][]byte{"version": []byte(version)})
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// drawPlan draws a plan that usually proposes the present state.
func drawPlan(t *rapid.T, kind api.Kind, r *terraform.Resource, described schema.Schema, typ tftypes.Object) *tfprotov6.PlanResourceChangeRequest {
	object := drawObject(t, kind, 1)
	object.SetDefaults()
	state, err := r.Values(context.Background(), typ, object, nullAttributes(typ))
	if err != nil {
		t.Fatal(err)
	}
	if rapid.IntRange(0, 2).Draw(t, "drifted") == 0 {
		state = drift(t, "state", state)
	}
	leaveOut := max(rapid.IntRange(-2, 3).Draw(t, "leaves out"), 0) // leave out nothing, everything, or some
	config := drawConfig(t, "config", described.Attributes, state, leaveOut)
	proposed := state
	if rapid.IntRange(0, 9).Draw(t, "changes") == 0 {
		proposed = drift(t, "proposed", state)
	}
	req := &tfprotov6.PlanResourceChangeRequest{
		TypeName:         "scheduler_" + string(kind),
		PriorState:       dynamic(t, typ, tftypes.NewValue(typ, state)),
		ProposedNewState: dynamic(t, typ, tftypes.NewValue(typ, proposed)),
		Config:           dynamic(t, typ, tftypes.NewValue(typ, config)),
	}
	private := rapid.SampledFrom([]string{
		"", "", "", `["u",2,"7",false,false,"x"]`, `["u",2,"7",false,false,""]`,
		`["u",2,"7",true,false,""]`, `{"uid":"u"}`, `"not a version"`,
	}).Draw(t, "private")
	if private != "" {
		req.PriorPrivate, err = json.Marshal(map[string][]byte{"version": []byte(private)})
		if err != nil {
			t.Fatal(err)
		}
	}
	return req
}

// drift changes some values in a state.
func drift(t *rapid.T, at string, state map[string]tftypes.Value) map[string]tftypes.Value {
	drifted := maps.Clone(state)
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if rapid.IntRange(0, 7).Draw(t, at+"."+name+" drifts") == 0 {
			drifted[name] = driftedValue(t, at+"."+name, state[name])
		}
	}
	return drifted
}

func driftedValue(t *rapid.T, at string, v tftypes.Value) tftypes.Value {
	typ := v.Type()
	switch {
	case rapid.IntRange(0, 3).Draw(t, at+" is gone") == 0:
		return tftypes.NewValue(typ, nil)
	case typ.Is(tftypes.String):
		return tftypes.NewValue(typ, rapid.StringMatching(`[a-zA-Z0-9]{0,4}`).Draw(t, at))
	case typ.Is(tftypes.Number):
		return tftypes.NewValue(typ, rapid.IntRange(-3, 3).Draw(t, at))
	case typ.Is(tftypes.Bool):
		return tftypes.NewValue(typ, rapid.Bool().Draw(t, at))
	case typ.Is(tftypes.Object{}) && !v.IsNull():
		return tftypes.NewValue(typ, drift(t, at, terraform.AttributesOf(v)))
	case typ.Is(tftypes.List{}) && !v.IsNull():
		elements := slices.Clone(terraform.ElementsOf(v))
		for i := range elements {
			elements[i] = driftedValue(t, fmt.Sprint(at, i), elements[i])
		}
		return tftypes.NewValue(typ, elements)
	}
	return v
}

// drawConfig draws a configuration that leads to a state. leaveOut says how many optional values it omits: 0 = none, 1
// = all, else some.
func drawConfig(t *rapid.T, at string, attributes map[string]schema.Attribute, state map[string]tftypes.Value, leaveOut int) map[string]tftypes.Value {
	config := map[string]tftypes.Value{}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		attribute := attributes[name]
		at := at + "." + name
		typ := attribute.GetType().TerraformType(context.Background())
		is, ok := state[name]
		if !ok {
			is = tftypes.NewValue(typ, nil)
		}
		switch {
		case attribute.IsWriteOnly():
			is = drawWriteOnly(t, at, typ)
		case !attribute.IsOptional() && !attribute.IsRequired(),
			attribute.IsOptional() && attribute.IsComputed() && (leaveOut == 1 || leaveOut > 1 && rapid.Bool().Draw(t, at+" is left out")):
			is = tftypes.NewValue(typ, nil)
		}
		if is.IsKnown() && !is.IsNull() {
			switch a := attribute.(type) {
			case schema.SingleNestedAttribute:
				is = tftypes.NewValue(typ, drawConfig(t, at, a.Attributes, terraform.AttributesOf(is), leaveOut))
			case schema.ListNestedAttribute:
				elements := slices.Clone(terraform.ElementsOf(is))
				for i := range elements {
					elements[i] = tftypes.NewValue(elements[i].Type(), drawConfig(t, fmt.Sprint(at, i), a.NestedObject.Attributes, terraform.AttributesOf(elements[i]), leaveOut))
				}
				is = tftypes.NewValue(typ, elements)
			}
		}
		config[name] = is
	}
	return config
}

func drawWriteOnly(t *rapid.T, at string, typ tftypes.Type) tftypes.Value {
	given := rapid.IntRange(0, 29).Draw(t, at+" is given")
	switch {
	case given == 0:
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	case given == 1 && typ.Is(tftypes.String):
		return tftypes.NewValue(typ, rapid.SampledFrom([]string{"", "secret"}).Draw(t, at))
	case given == 1 && typ.Is(tftypes.Map{}):
		return tftypes.NewValue(typ, map[string]tftypes.Value{"a": tftypes.NewValue(tftypes.String, "secret")})
	}
	return tftypes.NewValue(typ, nil)
}

// samePlan compares two responses as Terraform reads them.
func samePlan(t *rapid.T, r *terraform.Resource, typ tftypes.Object, got, want *tfprotov6.PlanResourceChangeResponse) {
	decode := func(resp *tfprotov6.PlanResourceChangeResponse) (state tftypes.Value) {
		state, err := resp.PlannedState.Unmarshal(typ)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	if a, b := decode(got), decode(want); !a.Equal(b) {
		t.Fatalf("plan %s, want the framework's %s", a, b)
	}
	show := func(resp *tfprotov6.PlanResourceChangeResponse) string {
		text := fmt.Sprintf("replace %v, deferred %v, private %s, identity %s", resp.RequiresReplace, resp.Deferred, resp.PlannedPrivate, shownIdentity(t, r, resp.PlannedIdentity))
		for _, d := range resp.Diagnostics {
			text += fmt.Sprintf("\n%s %s %s %s", d.Severity, d.Attribute, d.Summary, d.Detail)
		}
		return text
	}
	if a, b := show(got), show(want); a != b {
		t.Fatalf("response %s\nwant the framework's %s", a, b)
	}
}

func shownIdentity(t *rapid.T, r *terraform.Resource, identity *tfprotov6.ResourceIdentityData) string {
	if identity == nil {
		return "none"
	}
	value, err := identity.IdentityData.Unmarshal(r.IdentityType())
	if err != nil {
		t.Fatal(err)
	}
	return value.String()
}
