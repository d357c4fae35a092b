package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// namedByFields lists every field that refers to objects, with the kind. The test fails if a field
// loses its ref tag or gets one.
var namedByFields = []string{
	"role_binding spec.role role optional",
	"cloud spec.metrics[].name metric sibling optional",
	"cluster spec.metrics[].name metric sibling optional",
	"cluster spec.openstack.cloud cloud",
	"cluster status.cloud cloud optional",
	"cluster status.observed_zone.cloud cloud",
	"cluster_set spec.clusters[] cluster",
	"magnum_cluster spec.metrics[].name metric sibling optional",
	"magnum_cluster status.project openstack_project own optional",
	"metric spec.metrics_provider.name metrics_provider own optional",
	"openstack_project spec.metrics[].name metric sibling optional",
	"placement spec.cluster_names[] cluster",
	"placement spec.cluster_sets[] cluster_set",
	"placement spec.exclude_clusters[] cluster optional",
	"placement status.clusters[] cluster optional",
	"placement status.decision_groups[].clusters[] cluster optional",
	"placement status.decisions[].cluster cluster optional",
	"propagation_policy spec.placement.cluster_affinities[].cluster_names[] cluster",
	"propagation_policy spec.placement.cluster_affinities[].exclude_clusters[] cluster optional",
	"propagation_policy spec.placement.cluster_affinities[].overflow_affinities[].cluster_names[] cluster",
	"propagation_policy spec.placement.cluster_affinities[].overflow_affinities[].exclude_clusters[] cluster optional",
	"propagation_policy spec.placement.cluster_affinity.cluster_names[] cluster",
	"propagation_policy spec.placement.cluster_affinity.exclude_clusters[] cluster optional",
	"propagation_policy spec.placement.replica_scheduling.cluster_limits[].affinity.cluster_names[] cluster",
	"propagation_policy spec.placement.replica_scheduling.cluster_limits[].affinity.exclude_clusters[] cluster optional",
	"propagation_policy spec.placement.replica_scheduling.weight_preference.static_weights[].affinity.cluster_names[] cluster",
	"propagation_policy spec.placement.replica_scheduling.weight_preference.static_weights[].affinity.exclude_clusters[] cluster optional",
	"propagation_policy spec.resource_selectors[].name workload sibling optional",
	"propagation_policy status.bindings[].clusters[].name cluster optional",
	"workload spec.allocation.stack_affinity[] workload own optional",
	"workload spec.allocation.stack_anti_affinity[] workload own optional",
	"workload status.clusters[].name cluster optional",
	"workload status.distribution[].cluster cluster optional",
	"workload status.evictions[].cluster cluster optional",
	"workload status.health[].cluster cluster optional",
	"workload status.policy propagation_policy path optional",
	"workload status.preemptions[].cluster cluster optional",
	"workload status.preemptions[].workload workload path optional",
}

func TestReferenceFields(t *testing.T) {
	var got []string
	for _, f := range api.ReferenceFields() {
		text := fmt.Sprintf("%s %s %s %s", f.Kind, f.Field, f.To, f.In)
		if f.Optional {
			text = strings.TrimSpace(text) + " optional"
		}
		got = append(got, strings.TrimSpace(text))
		if _, ok := api.LookupKind(f.To); !ok {
			t.Errorf("%s %s refers to %q, which is not a kind", f.Kind, f.Field, f.To)
		}
		info, _ := api.LookupKind(f.To)
		if known := []api.ReferenceNamespace{api.InNone, api.InOwn, api.InSibling, api.InPath}; !slices.Contains(known, f.In) || (f.In == api.InNone) != (info.Scope == api.Global) {
			t.Errorf("%s %s: %q is not a valid namespace for a reference to a %s", f.Kind, f.Field, f.In, f.To)
		}
	}
	for _, missing := range namedByFields {
		if !slices.Contains(got, missing) {
			t.Errorf("missing: %s", missing)
		}
	}
	for _, more := range got {
		if !slices.Contains(namedByFields, more) {
			t.Errorf("unexpected: %s", more)
		}
	}
}

// plainTexts lists the text fields that do not refer to objects. Every text field must be in one of
// the two lists. A field that refers to an object needs a ref tag; otherwise anyone could refer to
// objects that they may not read.
var plainTexts = []string{
	// Namespaces that own an object or may use it. The writer's access to them is checked
	// separately.
	"cloud spec.namespace", "cluster spec.namespace", "cluster spec.namespaces[]", "cluster_set spec.namespaces[]",
	// Only administrators write these.
	"role spec.rules[].verbs[]", "role spec.rules[].kinds[]", "role spec.rules[].namespaces[]", "role spec.description",
	"role_binding spec.namespaces[]", "role_binding spec.token_ids[]", "role_binding spec.issuer", "role_binding spec.description",
	"move_window spec.schedule", "move_window spec.time_zone", "move_window spec.description",
	// The namespace next to a name with a tag.
	"cloud spec.metrics[].namespace", "cluster spec.metrics[].namespace", "magnum_cluster spec.metrics[].namespace",
	"openstack_project spec.metrics[].namespace", "propagation_policy spec.resource_selectors[].namespace",
	// Names that resolve among objects that the reader can see anyway: metrics and scores of
	// clusters, and their flavors and sites.
	"cluster spec.cloud_constraints.metric_constraints[]", "magnum_cluster spec.metric_constraints[]", "placement spec.metric_constraints[]",
	"placement spec.prioritizer_policy.configurations[].name", "placement spec.prioritizer_policy.configurations[].resource_name",
	"placement spec.prioritizer_policy.configurations[].score_name",
	"workload spec.allocation.flavors[]", "workload spec.allocation.site_id",
	// Facts about clusters, and conditions on them.
	"cluster spec.description", "cluster spec.cloud_provider", "cluster spec.region", "cluster spec.zones[]", "cluster spec.custom_resources[]", "cluster spec.api_resources[]",
	"cluster spec.taints[].key", "cluster spec.taints[].value", "cluster spec.flavors[].name", "cluster spec.flavors[].memory",
	"cluster spec.openstack.region", "cluster spec.openstack.availability_zone", "cluster spec.spot.node_type_key",
	"cluster spec.cloud_constraints.label_constraints[]", "magnum_cluster spec.label_constraints[]", "placement spec.label_constraints[]",
	"placement spec.custom_resources[]", "placement spec.kubernetes_version", "placement spec.predicates[].cel[]", "placement spec.spread_constraints[].topology_key",
	"propagation_policy spec.placement.spread_constraints[].spread_by_label",
	"workload spec.allocation.geo_location.area", "workload spec.allocation.geo_location.city", "workload spec.allocation.geo_location.country",
	"workload spec.allocation.geo_location.province", "workload spec.allocation.operator", "workload spec.allocation.regions[].region",
	"workload spec.allocation.regions[].availability_zones[]",
	// Addresses, and names in other systems.
	"cluster spec.health.url", "metrics_provider spec.ca_cert", "metrics_provider spec.influx.bucket", "metrics_provider spec.influx.org",
	"metrics_provider spec.influx.url", "metrics_provider spec.http_json.url", "metrics_provider spec.http_json.value", "metrics_provider spec.kafka.comparison_column", "metrics_provider spec.kafka.table",
	"metrics_provider spec.kafka.url", "metrics_provider spec.kafka.value_column", "metrics_provider spec.prometheus.url",
	"metric spec.metrics_provider.metric", "magnum_cluster spec.template_id",
	"openstack_project spec.project_id", "openstack_project spec.template_id", "openstack_project spec.user_id",
	"workload spec.api_version", "workload spec.kind", "propagation_policy spec.resource_selectors[].api_version", "propagation_policy spec.resource_selectors[].kind",
	// Names of parts of the object itself.
	"placement spec.decision_strategy.decision_groups[].name", "placement spec.decision_strategy.clusters_per_decision_group",
	"propagation_policy spec.placement.cluster_affinities[].affinity_name",
	"propagation_policy spec.placement.cluster_affinities[].overflow_affinities[].affinity_name",
	"workload spec.distribution.custom_on_demand",
}

// plainParts are suffixes of fields that never refer to objects.
var plainParts = []string{
	".match_expressions[].key", ".match_expressions[].values[]", ".field_selector[].values[]", ".openstack.auth_url", ".openstack.ca_cert",
	".openstack.username", ".openstack.user_id", ".openstack.user_domain_name", ".openstack.project_name", ".openstack.project_id",
	".openstack.project_domain_name", ".openstack.application_credential_id", ".openstack.regions[]",
	".tolerations[].key", ".tolerations[].value", ".cluster_tolerations[].key", ".cluster_tolerations[].value",
}

// TestEveryTextFieldIsClassified makes sure that each new text field is classified as one or the
// other.
func TestEveryTextFieldIsClassified(t *testing.T) {
	known := map[string]bool{}
	for _, f := range api.ReferenceFields() {
		known[string(f.Kind)+" "+f.Field] = true
	}
	seen := map[string]bool{}
	for _, info := range api.Kinds {
		for _, field := range textsOf(reflect.TypeOf(info.New().SpecPart()).Elem(), string(info.Kind)+" spec") {
			seen[field] = true
			plain := slices.Contains(plainTexts, field) || slices.ContainsFunc(plainParts, func(end string) bool { return strings.HasSuffix(field, end) })
			switch {
			case known[field] && plain:
				t.Errorf("%s is a reference, but is listed among the plain texts", field)
			case !known[field] && !plain:
				t.Errorf("%s: if it names an object, add the tag ref; otherwise, add it to the plain texts", field)
			}
		}
	}
	for _, field := range plainTexts {
		if !seen[field] {
			t.Errorf("%s is not a field", field)
		}
	}
}

// textsOf returns the free-text fields of a type. Enumerations, durations, quantities and secrets
// cannot refer to objects.
func textsOf(t reflect.Type, at string) []string {
	switch t {
	case reflect.TypeFor[api.Secret](), reflect.TypeFor[api.Duration](), reflect.TypeFor[json.RawMessage]():
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		return []string{at}
	case reflect.Pointer:
		return textsOf(t.Elem(), at)
	case reflect.Slice:
		return textsOf(t.Elem(), at+"[]")
	case reflect.Struct:
		var out []string
		for i := range t.NumField() {
			field := t.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.IsExported() || field.Tag.Get("enum") != "" && field.Type.Kind() == reflect.String {
				continue
			}
			if name != "" {
				name = "." + name
			}
			out = append(out, textsOf(field.Type, at+name)...)
		}
		return out
	default: // other types contain no references
		return nil
	}
}

// TestReferences sets each field on its own and expects exactly the object that it refers to.
func TestReferences(t *testing.T) {
	for _, f := range api.ReferenceFields() {
		for _, beside := range []string{"", "elsewhere"} {
			if beside != "" && f.In != api.InSibling {
				continue
			}
			object, field := naming(f, "thing", beside)
			info, _ := api.LookupKind(f.Kind)
			own := ""
			if info.Scope == api.Namespaced || info.Scope == api.GlobalOrNamespaced {
				own = "shop"
				object.Meta().Namespace = own
			}
			want := api.Reference{Field: field, Key: api.Key{Kind: f.To, Name: "thing"}, Optional: f.Optional}
			switch f.In {
			case api.InOwn:
				want.Key.Namespace = own
			case api.InSibling:
				want.Key.Namespace = beside
			case api.InNone, api.InPath:
			}
			expected := []api.Reference{want}
			if to, _ := api.LookupKind(f.To); to.Scope == api.Namespaced && want.Key.Namespace == "" {
				expected = nil // refers to all namespaces, or is a path without a namespace
			}
			if got := append(api.References(object), api.StatusReferences(object)...); !slices.Equal(got, expected) {
				t.Errorf("%s %s: got %v, want %v", f.Kind, f.Field, got, expected)
			}
		}
	}
	named := &api.Workload{Status: api.WorkloadStatus{Policy: "stock/p", Preemptions: []api.PreemptedBy{{Workload: "stock/w"}, {}}}}
	want := []api.Reference{
		{"status.policy", api.Key{api.KindPropagationPolicy, "stock", "p"}, true},
		{"status.preemptions[0].workload", api.Key{api.KindWorkload, "stock", "w"}, true},
	}
	if got := api.StatusReferences(named); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	all := &api.PropagationPolicy{Spec: api.PropagationPolicySpec{ResourceSelectors: []api.ResourceSelector{{Namespace: "stock"}, {Name: "w"}, {}}}}
	if got := api.References(all); !slices.Equal(got, []api.Reference{{"spec.resource_selectors[0].name", api.Key{api.KindWorkload, "stock", ""}, true}}) {
		t.Errorf("reference to all workloads of a namespace: got %v", got)
	}
}

// naming returns an object of a kind that has a reference in one field and is otherwise empty.
// namespace is set in the sibling field, if there is one. It also returns the path of the field.
func naming(f api.ReferenceField, name, namespace string) (object api.Object, field string) {
	info, _ := api.LookupKind(f.Kind)
	object = info.New()
	part, rest, _ := strings.Cut(f.Field, ".")
	at := object.SpecPart()
	if part == "status" {
		at = object.StatusPart()
	}
	setName(reflect.ValueOf(at).Elem(), strings.Split(rest, "."), name, namespace)
	return object, strings.ReplaceAll(f.Field, "[]", "[0]")
}

func setName(v reflect.Value, path []string, name, namespace string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setName(v.Elem(), path, name, namespace)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setName(v.Index(0), path, name, namespace)
	case reflect.String:
		v.SetString(name)
	case reflect.Struct:
		step := strings.TrimSuffix(path[0], "[]")
		for i := range v.NumField() {
			field := v.Type().Field(i)
			json, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case json == step:
				setName(v.Field(i), path[1:], name, namespace)
				if beside := v.FieldByName("Namespace"); len(path) == 1 && namespace != "" && beside.IsValid() {
					beside.SetString(namespace)
				}
				return
			case field.Anonymous:
				setName(v.Field(i), path, name, namespace)
			}
		}
	default: // other types contain no references
	}
}
