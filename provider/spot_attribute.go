package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// spotWithoutKubeconfig warns about a cluster with spot enabled but without a kubeconfig in the
// configuration. The server may still have one that was written elsewhere.
func spotWithoutKubeconfig(config map[string]tftypes.Value, diags *diag.Diagnostics) {
	var enabled bool
	given := terraform.AttributesOf(config["spot"])["enabled"]
	if !given.IsKnown() || given.IsNull() || given.As(&enabled) != nil || !enabled {
		return
	}
	kubernetes := config["kubernetes"]
	if !kubernetes.IsKnown() || !terraform.AttributesOf(kubernetes)["kubeconfig"+terraform.WriteOnlySuffix].IsNull() {
		return
	}
	diags.AddAttributeWarning(path.Root("spot").AtName("enabled"), "Nothing is split without a kubeconfig",
		"spot.enabled is true, and there is no kubernetes.kubeconfig_wo: unless the server has a kubeconfig already, it cannot reach the cluster to split workloads over its nodes. Add the kubeconfig, or set spot.enabled to false.")
}
