package terraform_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/provider"
)

// ownDescriptions lists the attributes with their own description in the provider, and why. A path ends with one of
// them, or, if it starts with "resource " or "data ", equals one of them. All others use the API's description.
var ownDescriptions = map[string]string{
	".timeouts":        "a block of Terraform",
	".timeouts.create": "a block of Terraform",
	".timeouts.read":   "a block of Terraform",
	".timeouts.update": "a block of Terraform",
	".timeouts.delete": "a block of Terraform",
	".wait":            "what an apply waits for",
	".wait.for":        "what an apply waits for",
	".wait.on_timeout": "what an apply waits for",
	"_wo":              "how Terraform keeps secrets out of state",
	"_wo_version":      "how Terraform keeps secrets out of state",
	"_stored":          "how Terraform keeps secrets out of state",

	// The identity of an object; changing it replaces the object.
	".name":      "changing it makes a new object",
	".namespace": "changing it makes a new object",
	".cluster":   "changing it makes a new object",
	".labels":    "the labels that the kind's reader cares about",

	// Decisions, with where else to look.
	"resource cluster.cloud":                       "a decision in state",
	"resource magnum_cluster.project":              "a decision in state",
	"resource magnum_cluster.project_id":           "a decision in state",
	"resource magnum_cluster.selected_template_id": "a decision in state",
	"resource placement.clusters":                  "a decision in state",
	"resource propagation_policy.bindings":         "a decision in state",
	"resource workload.clusters":                   "a decision in state",
	"resource workload.evicting":                   "a decision in state",
	"resource workload.on_demand":                  "a decision in state",
	"resource workload.spot":                       "a decision in state",

	// Arguments and results that only data sources have.
	".status":                                      "the status as a block",
	"data cluster_distributions.workloads":         "the list itself",
	"data clusters.clusters":                       "the list itself",
	"data clusters.names":                          "the list itself",
	"data clusters.label_selector":                 "an argument",
	"data clusters.label_constraints":              "an argument",
	"data openstack_projects.cloud":                "an argument",
	"data placement_preview.token":                 "for preview_token_wo",
	"data propagation_bindings.bindings.message":   "taken out of a condition",
	"data propagation_bindings.bindings.scheduled": "taken out of a condition",
	"data propagation_bindings.bindings.clusters":  "replicas alone",
	"data propagation_bindings.bindings":           "replicas alone",
	"data propagation_preview.workload":            "an object as an argument",
	"data propagation_preview.policy":              "an object as an argument",
	"data propagation_preview.policy_name":         "of a workload or a policy",
	"data propagation_preview.satisfied":           "of a workload or a policy",
	"data propagation_preview.bindings":            "of a workload or a policy",
	"data propagation_preview.workloads":           "of a workload or a policy",
	"data propagation_preview.token":               "for preview_token_wo",
	"data openstack_projects.tags":                 "an argument",
	"data openstack_projects.disabled":             "an argument",
	"data simulation.result":                       "the answer as a block",
	"data simulation.result.objects":               "JSON in Terraform",
	"data workload.explain":                        "an argument",
	"data workload.explanation":                    "null unless explain is set",
	"data workload.clusters":                       "replicas alone",
	"data workload.evicting":                       "replicas alone",
	"data workload.on_demand":                      "replicas alone",
	"data workload.spot":                           "replicas alone",
	"data workload.summary":                        "taken out of the explanation",
}

// Every attribute has a description, which is that of the API's field unless it is listed as the provider's own.
func TestDescriptionsMatchTheAPI(t *testing.T) {
	texts := apiTexts()
	used := map[string]bool{}
	check := func(names []string, a schema.Attribute) {
		at, text := strings.Join(names, "."), a.GetMarkdownDescription()
		if text == "" {
			text = a.GetDescription()
		}
		if text == "" {
			t.Errorf("%s has no description", at)
		}
		if !strings.HasSuffix(text, ".") {
			t.Errorf("the description of %s is not a sentence: %s", at, text)
		}
		if slices.ContainsFunc(texts, func(api string) bool { return text == api || strings.HasPrefix(text, api+" ") }) {
			return
		}
		for own := range ownDescriptions {
			if at == own || !strings.Contains(own, " ") && strings.HasSuffix(at, own) {
				used[own] = true
				return
			}
		}
		t.Errorf("the description of %s is neither the API's nor listed as the provider's own: %s", at, text)
	}
	for kind, r := range objectResources(t) {
		terraform.Walk(schemaOf(t.Context(), r).Attributes, []string{"resource " + string(kind)}, check)
	}
	for _, newSource := range (&provider.Provider{}).DataSources(t.Context()) {
		source, ok := newSource().(*terraform.DataSource)
		if !ok {
			t.Fatalf("%T is not a terraform.DataSource", newSource())
		}
		var resp datasource.SchemaResponse
		source.Schema(context.Background(), datasource.SchemaRequest{}, &resp)
		terraform.Walk(resp.Schema.Attributes, []string{"data " + source.Name}, check)
	}
	for own := range ownDescriptions {
		if !used[own] {
			t.Errorf("%s is listed as the provider's own, but is not used", own)
		}
	}
}

// apiTexts returns the descriptions of all fields of the API.
func apiTexts() []string {
	roots := []reflect.Type{
		reflect.TypeFor[api.Metadata](), reflect.TypeFor[api.Explanation](), reflect.TypeFor[api.Preview](), reflect.TypeFor[api.ServerInfo](),
		reflect.TypeFor[api.LiveOpenStack](), reflect.TypeFor[api.DistributedWorkload](), reflect.TypeFor[api.Simulation](), reflect.TypeFor[api.SimulationResult](),
	}
	for _, info := range api.Kinds {
		roots = append(roots, reflect.TypeOf(info.New()))
	}
	var texts []string
	for _, f := range fieldsUnder(roots...) {
		texts = append(texts, f.Describe(), f.DescribeValue())
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// fieldsUnder returns the fields of API types, including nested ones.
func fieldsUnder(roots ...reflect.Type) []api.Field {
	var all []api.Field
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for _, f := range api.Fields(t) {
			all = append(all, f)
			visit(f.Type)
		}
	}
	for _, root := range roots {
		visit(root)
	}
	return all
}

// Every field in ownTraits exists in the API.
func TestTraitsNameFields(t *testing.T) {
	var specs []reflect.Type
	for _, info := range api.Kinds {
		specs = append(specs, reflect.TypeOf(info.New().SpecPart()))
	}
	fields := map[string]bool{}
	for _, f := range fieldsUnder(specs...) {
		fields[f.Of.Name()+"."+f.Name] = true
	}
	for _, name := range terraform.OwnTraits() {
		if !fields[name] {
			t.Errorf("traits for %s, which is not a field of a spec", name)
		}
	}
}
