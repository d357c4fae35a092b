package terraform_test

import (
	"context"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
	"pgregory.net/rapid"
)

// Every attribute is a field of the API, and every field is an attribute.
func TestAttributesMatchTheAPI(t *testing.T) {
	for kind, r := range objectResources(t) {
		info, _ := api.LookupKind(kind)
		want := jsonFields(reflect.TypeOf(info.New().SpecPart()).Elem())
		want["name"], want["labels"] = nil, nil
		if parent := terraform.ParentAttribute(info.Scope); parent != "" {
			want[parent] = nil
		}
		for name := range r.Local {
			want[name] = nil
		}
		if r.Decision != nil {
			for name := range r.Decision(info.New()) {
				want[name] = nil
			}
		}
		want["timeouts"] = nil
		compareFields(t, string(kind), schemaOf(t.Context(), r).Attributes, want)
	}
}

func compareFields(t *testing.T, at string, attributes map[string]schema.Attribute, fields map[string]reflect.Type) {
	t.Helper()
	for _, secret := range terraform.SecretNames(attributes) {
		delete(fields, secret)
		for _, suffix := range []string{terraform.WriteOnlySuffix, terraform.VersionSuffix, terraform.StoredSuffix} {
			fields[secret+suffix] = nil
		}
	}
	for name := range attributes {
		if _, ok := fields[name]; !ok {
			t.Errorf("%s.%s is an attribute, but not a field of the API", at, name)
		}
	}
	for name, field := range fields {
		attribute, ok := attributes[name]
		if !ok {
			t.Errorf("%s.%s is a field of the API, but not an attribute", at, name)
			continue
		}
		if field == nil {
			continue
		}
		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			compareFields(t, at+"."+name, a.Attributes, jsonFields(field))
		case schema.ListNestedAttribute:
			compareFields(t, at+"."+name, a.NestedObject.Attributes, jsonFields(field.Elem()))
		case schema.SetNestedAttribute:
			compareFields(t, at+"."+name, a.NestedObject.Attributes, jsonFields(field.Elem()))
		}
	}
}

func jsonFields(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			maps.Copy(fields, jsonFields(field.Type))
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = field.Type
	}
	return fields
}

// The schema's default for an absent attribute equals the server's default for an absent field.
func TestDefaultsMatchTheAPI(t *testing.T) {
	resources := objectResources(t)
	for _, test := range []struct {
		kind  api.Kind
		given doc
	}{
		{api.KindCluster, doc{"name": "x", "health": doc{}, "metrics": list{doc{"name": "m"}}}},
		{api.KindCluster, doc{"name": "x", "cloud_constraints": doc{}, "openstack": doc{"cloud": "c", "region": "r", "availability_zone": "z"}, "flavors": list{doc{"name": "m"}}}},
		{api.KindCloud, doc{"name": "x", "openstack": doc{"auth_url": "https://keystone:5000/v3", "username": "u", "project_name": "p"}, "metrics": list{doc{"name": "m"}}}},
		{api.KindOpenStackProject, doc{"name": "x", "openstack": doc{"auth_url": "https://keystone:5000/v3"}, "metrics": list{doc{"name": "m"}}}},
		{api.KindMagnumCluster, doc{"name": "x", "metrics": list{doc{"name": "m"}}}},
		{api.KindClusterSet, doc{"name": "x", "selector": doc{}}},
		{api.KindMetricsProvider, doc{"name": "p", "type": "prometheus", "prometheus": doc{"url": "http://p"}}},
		{api.KindMetric, doc{"name": "m", "min": 0, "max": 1, "metrics_provider": doc{"name": "p", "metric": "m"}}},
		{api.KindPlacementScore, doc{"name": "agent", "cluster": "east", "scores": doc{"load": -7}, "valid_until": "2031-01-01T00:00:00+02:00"}},
		{api.KindPlacement, doc{
			"name": "x", "metrics": doc{}, "decision_strategy": doc{},
			"tolerations": list{doc{"key": "a"}}, "spread_constraints": list{doc{"topology_key": "a"}},
		}},
		{api.KindPlacement, doc{"name": "x", "strategy": "prioritizers", "prioritizer_policy": doc{"configurations": list{doc{"name": "steady"}}}}},
		{api.KindWorkload, validWorkload},
		{api.KindWorkload, doc{"name": "web", "namespace": "shop", "api_version": "v1", "kind": "Pod", "replicas": 3, "allocation": doc{}}},
		{api.KindPropagationPolicy, doc{
			"name": "x", "resource_selectors": list{doc{"api_version": "v1", "kind": "ConfigMap"}},
			"placement": doc{"cluster_tolerations": list{doc{"key": "a"}}, "spread_constraints": list{doc{}}, "replica_scheduling": doc{}},
			"failover":  doc{"cluster": doc{}, "application": doc{}}, "fail_back": doc{},
		}},
	} {
		object, err := terraform.Unflatten(test.kind, test.given)
		if err != nil {
			t.Fatal(err)
		}
		document, err := terraform.Flatten(object)
		if err != nil {
			t.Fatal(err)
		}
		attributes := maps.Clone(schemaOf(t.Context(), resources[test.kind]).Attributes)
		if test.given["strategy"] != nil {
			delete(attributes, "strategy") // it is required, not a default
		}
		compareDefaults(t, string(test.kind), attributes, document)
	}
}

func compareDefaults(t *testing.T, at string, attributes map[string]schema.Attribute, document map[string]any) {
	t.Helper()
	for name, attribute := range attributes {
		at := at + "." + name
		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			if inner, ok := document[name].(map[string]any); ok {
				compareDefaults(t, at, a.Attributes, inner)
			}
		case schema.ListNestedAttribute:
			if items, ok := document[name].([]any); ok {
				for _, item := range items {
					compareDefaults(t, at, a.NestedObject.Attributes, item.(map[string]any))
				}
			}
		}
		want, ok, err := terraform.DefaultOf(t.Context(), attribute)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		if document[name] == nil {
			if !terraform.IsEmpty(want) {
				t.Errorf("%s has the default %s, which the API does not have", at, want)
			}
			continue
		}
		got, err := terraform.Value(want.Type(), document[name])
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if !got.Equal(want) {
			t.Errorf("%s has the default %s, want the API's %s", at, want, got)
		}
	}
}

// A round trip through Terraform does not change an object, and the resulting state does not change either.
func TestObjectRoundTrip(t *testing.T) {
	for kind, r := range objectResources(t) {
		stateType := schemaOf(t.Context(), r).Type().TerraformType(t.Context())
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				object := drawObject(t, kind, 3)
				object.SetDefaults()
				none := tftypes.NewValue(stateType, nil)
				first, err := r.Values(context.Background(), stateType, object, nullAttributes(stateType))
				if err != nil {
					t.Fatal(err)
				}
				state := tftypes.NewValue(stateType, first)
				var d terraform.ConfigDocument
				document, err := r.Document(&d, state)
				if err != nil {
					t.Fatal(err)
				}
				if len(d.Unknown)+len(d.Nulls) > 0 {
					t.Fatalf("the state has unknown or null elements: %v %v", d.Unknown, d.Nulls)
				}
				back, err := terraform.Unflatten(kind, document)
				if err != nil {
					t.Fatal(err)
				}
				if !api.SameIntent(object, back) || api.KeyOf(object) != api.KeyOf(back) {
					t.Fatalf("%+v became %+v after a round trip", object, back)
				}
				second, err := r.Values(context.Background(), stateType, back, first)
				if err != nil {
					t.Fatal(err)
				}
				if again := tftypes.NewValue(stateType, second); !again.Equal(state) || again.Equal(none) {
					t.Fatalf("state %s, but %s after a round trip", state, again)
				}
			})
		})
	}
}

func nullAttributes(t tftypes.Type) map[string]tftypes.Value {
	attributes := map[string]tftypes.Value{}
	for name, attributeType := range t.(tftypes.Object).AttributeTypes {
		attributes[name] = tftypes.NewValue(attributeType, nil)
	}
	return attributes
}

// drawObject draws an object with any subset of its fields. Lists have at most longest elements.
func drawObject(t *rapid.T, kind api.Kind, longest int) api.Object {
	info, _ := api.LookupKind(kind)
	object := info.New()
	meta := object.Meta()
	meta.Name = drawName(t, "name")
	switch info.Scope {
	case api.Global:
	case api.OfCluster:
		meta.Cluster = drawName(t, "cluster")
	case api.Namespaced, api.GlobalOrNamespaced:
		if rapid.Bool().Draw(t, "namespaced") {
			meta.Namespace = drawName(t, "namespace")
		}
	}
	meta.Labels = rapid.MapOf(rapid.StringN(1, 5, 9), rapid.String()).Draw(t, "labels")
	drawFields(t, "spec", reflect.ValueOf(object.SpecPart()).Elem(), longest)
	if p, ok := object.(*api.Placement); ok { // each strategy only has its own settings
		if p.Spec.Strategy == api.StrategyMetrics {
			p.Spec.PrioritizerPolicy = nil
		} else {
			p.Spec.Metrics = nil
		}
	}
	return object
}

func drawName(t *rapid.T, label string) string {
	return rapid.StringMatching(`[a-z][a-z0-9]{0,5}`).Draw(t, label)
}

var secretType = reflect.TypeFor[api.Secret]()

// drawFields fills an API struct with random values, except for secrets.
func drawFields(t *rapid.T, at string, v reflect.Value, longest int) {
	switch {
	case v.Type() == secretType:
	case v.Type() == reflect.TypeFor[time.Time]():
		moment := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, at), rapid.Int64Range(0, 999_999_999).Draw(t, at+" nanoseconds"))
		v.Set(reflect.ValueOf(moment.In(time.FixedZone("", 3600*rapid.IntRange(-12, 12).Draw(t, at+" zone")))))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if enum := field.Tag.Get("enum"); enum != "" {
				v.Field(i).SetString(rapid.SampledFrom(strings.Split(enum, ",")).Draw(t, at+"."+field.Name))
				continue
			}
			drawFields(t, at+"."+field.Name, v.Field(i), longest)
		}
	case v.Kind() == reflect.Pointer:
		if rapid.Bool().Draw(t, at+" present") {
			v.Set(reflect.New(v.Type().Elem()))
			drawFields(t, at, v.Elem(), longest)
		}
	case v.Kind() == reflect.Slice:
		n := rapid.IntRange(0, longest).Draw(t, at+" length")
		for range n {
			e := reflect.New(v.Type().Elem()).Elem()
			drawFields(t, at, e, longest)
			v.Set(reflect.Append(v, e))
		}
	case v.Kind() == reflect.Map && v.Type().Elem() == secretType:
	case v.Kind() == reflect.Map:
		for _, key := range rapid.SliceOfN(rapid.String(), 0, longest).Draw(t, at+" keys") {
			if v.IsNil() {
				v.Set(reflect.MakeMap(v.Type()))
			}
			e := reflect.New(v.Type().Elem()).Elem()
			drawFields(t, at, e, longest)
			v.SetMapIndex(reflect.ValueOf(key), e)
		}
	case v.Kind() == reflect.String:
		v.SetString(rapid.String().Draw(t, at))
	case v.Kind() == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, at))
	case v.CanInt():
		v.SetInt(rapid.Int64().Draw(t, at))
	case v.CanFloat():
		v.SetFloat(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, at))
	default:
		t.Fatalf("%s: the test cannot generate a %s", at, v.Type())
	}
}

func TestSettle(t *testing.T) {
	text := func(s any) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
	names := func(s ...tftypes.Value) tftypes.Value {
		return tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, s)
	}
	unknownNames := tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, tftypes.UnknownValue)
	object := func(a tftypes.Value) tftypes.Value {
		return tftypes.NewValue(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"a": tftypes.String}}, map[string]tftypes.Value{"a": a})
	}
	unknown := text(tftypes.UnknownValue)
	for name, test := range map[string]struct{ plan, server, want tftypes.Value }{
		"known stays planned":         {text("plan"), text("server"), text("plan")},
		"null is known":               {text(nil), text("server"), text(nil)},
		"unknown is the server's":     {unknown, text("server"), text("server")},
		"unknown list":                {unknownNames, names(text("a")), names(text("a"))},
		"unknown in an object":        {object(unknown), object(text("server")), object(text("server"))},
		"unknown in a list":           {names(text("plan"), unknown), names(text("x"), text("server")), names(text("plan"), text("server"))},
		"a list of another length":    {names(unknown), names(text("x"), text("y")), names(text("x"), text("y"))},
		"known beside an unknown one": {names(text("plan")), names(text("server")), names(text("plan"))},
	} {
		if got := terraform.SettleValue(test.plan, test.server); !got.Equal(test.want) {
			t.Errorf("%s: got %s, expected %s", name, got, test.want)
		}
	}
}

func TestAttributePath(t *testing.T) {
	metric := objectResources(t)[api.KindCluster]
	typ := schemaOf(t.Context(), metric).Type().TerraformType(t.Context())
	for field, want := range map[string]string{
		"spec.metrics[0].weight":              "metrics[0].weight",
		`metadata.labels["team/a.b"]`:         `labels["team/a.b"]`,
		"metadata.name":                       "name",
		"spec.health.interval":                "health.interval",
		`spec.capacity["nvidia.com/gpu"]`:     `capacity["nvidia.com/gpu"]`,
		"spec.health.something_newer.than_us": "health",
		"spec.zones[1]":                       "zones[*]",
		"spec.taints[1].effect":               "taints[*].effect",
		"spec.taints[1].something_newer":      "taints[*]",
		"kind":                                "",
		"":                                    "",
	} {
		got, ok := terraform.AttributePath(typ, field)
		if _, name := terraform.ShownPath(got); name != want || ok != (want != "") {
			t.Errorf("%s is the attribute %q (%v), want %q", field, name, ok, want)
		}
	}
}

func FuzzAttributePath(f *testing.F) {
	for _, seed := range []string{"spec.metrics[0].weight", `metadata.labels["a"]`, "[", `["`, "spec..", "spec.zones[-1]"} {
		f.Add(seed)
	}
	r := resourceOf(f, api.KindCluster)
	typ := schemaOf(context.Background(), r).Type().TerraformType(context.Background())
	f.Fuzz(func(t *testing.T, field string) {
		p, ok := terraform.AttributePath(typ, field)
		if ok != (len(p.Steps()) > 0) {
			t.Errorf("%q has the path %q, ok = %v", field, p, ok)
		}
	})
}

// The order in which the server returns the elements of a set does not matter: each keeps its spelling.
func TestSetsKeepTheirSpelling(t *testing.T) {
	r := objectResources(t)[api.KindCluster]
	typ := schemaOf(t.Context(), r).Type().TerraformType(t.Context())
	prior := terraform.AttributesOf(terraformtest.ConfigValue(t, typ, doc{"name": "east", "taints": list{
		doc{"key": "a", "value": "", "effect": "NoSelect"}, doc{"key": "b", "effect": "NoSelect"}, doc{"key": "c", "value": "x", "effect": "NoExecute"},
	}}))
	cluster := &api.Cluster{Metadata: api.Metadata{Name: "east"}, Spec: api.ClusterSpec{Taints: []api.Taint{
		{Key: "d", Effect: api.EffectNoSelect},
		{Key: "c", Value: "x", Effect: api.EffectNoExecute},
		{Key: "b", Effect: api.EffectNoSelect},
		{Key: "a", Effect: api.EffectNoSelect},
	}}}
	values, err := r.Values(t.Context(), typ, cluster, prior)
	if err != nil {
		t.Fatal(err)
	}
	got := terraform.ElementsOf(values["taints"])
	if len(got) != 4 {
		t.Fatalf("unexpected taints %s", values["taints"])
	}
	for _, taint := range terraform.ElementsOf(prior["taints"]) {
		if !slices.ContainsFunc(got, taint.Equal) {
			t.Errorf("%s is missing in %s", taint, values["taints"])
		}
	}
}
