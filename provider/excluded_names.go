package provider

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// warnOfExcluded warns about clusters that a part of a configuration both names and excludes: they
// are never chosen.
func warnOfExcluded(attributes map[string]tftypes.Value, at path.Path, diags *diag.Diagnostics) {
	excluded := namesIn(attributes["exclude_clusters"])
	for _, name := range namesIn(attributes["cluster_names"]) {
		if slices.Contains(excluded, name) {
			in := at.AtName("exclude_clusters")
			diags.AddAttributeWarning(in, "A cluster is both named and excluded", fmt.Sprintf("%s: %q is also in %s. It is never chosen: remove it from one of the two.", in, name, at.AtName("cluster_names")))
		}
	}
}

// warnOfAffinities warns about them in every affinity of a policy.
func warnOfAffinities(config map[string]tftypes.Value, diags *diag.Diagnostics) {
	var visit func(v tftypes.Value, at path.Path)
	visit = func(v tftypes.Value, at path.Path) {
		attributes := terraform.AttributesOf(v)
		warnOfExcluded(attributes, at, diags)
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			visit(attributes[name], at.AtName(name))
		}
		if v.Type().Is(tftypes.List{}) {
			for i, element := range terraform.ElementsOf(v) {
				visit(element, at.AtListIndex(i))
			}
		}
	}
	visit(config["placement"], path.Root("placement"))
}

// namesIn returns the known texts of a list.
func namesIn(list tftypes.Value) []string {
	var names []string
	for _, element := range terraform.ElementsOf(list) {
		if text := terraform.TextOf(element); text != "" && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names
}
