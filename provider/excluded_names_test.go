package provider

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// A configuration is warned of that asks for what it cannot get.
func TestWarnOfWhatCannotBe(t *testing.T) {
	types := newValidation(t).types
	for _, test := range []struct {
		kind   string
		config doc
		at     string // attribute of the warning, "" = none
	}{
		{"placement", doc{"cluster_names": list{"a", "b"}, "exclude_clusters": list{"c"}, "number_of_clusters": 2, "kubernetes_version": ">= 1, < 2"}, ""},
		{"placement", doc{"cluster_names": list{"a", "b"}, "exclude_clusters": list{"b"}}, "exclude_clusters"},
		{"placement", doc{"kubernetes_version": ">= 2, < 1"}, "kubernetes_version"},
		{"placement", doc{"cluster_names": list{"a", "b", "a"}, "number_of_clusters": 3}, "number_of_clusters"},
		{"propagation_policy", doc{"placement": doc{"cluster_affinity": doc{"cluster_names": list{"a"}, "exclude_clusters": list{"a"}}}}, "placement.cluster_affinity.exclude_clusters"},
		{"propagation_policy", doc{"placement": doc{"cluster_affinities": list{doc{"affinity_name": "x", "cluster_names": list{"a"}, "exclude_clusters": list{"a"}}}}}, "placement.cluster_affinities[0].exclude_clusters"},
	} {
		typ := types["scheduler_"+test.kind]
		config := doc{"name": "x"}
		maps.Copy(config, test.config)
		r := newPlacementResource()
		if test.kind != "placement" {
			r = newPropagationPolicyResource()
		}
		var diags diag.Diagnostics
		r.Warn(terraform.AttributesOf(terraformtest.ConfigValue(t, typ, config)), &diags)
		got := ""
		for _, d := range diags {
			if with, ok := d.(diag.DiagnosticWithPath); ok {
				got += with.Path().String()
			}
		}
		if got != test.at {
			t.Errorf("%v: warned of %q, expected %q", test.config, got, test.at)
		}
	}
}
