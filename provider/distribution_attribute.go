package provider

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// distribution is the attribute that requests a split.
const distribution = "distribution"

// clampedDistribution warns if more on-demand replicas are requested than there are replicas: all
// of them run on on-demand nodes, and after a scale-up as many as requested.
func clampedDistribution(config map[string]tftypes.Value, diags *diag.Diagnostics) {
	wanted := terraform.AttributesOf(config[distribution])
	if terraform.TextOf(wanted["mode"]) != string(api.ModeCustom) {
		return
	}
	count, percent, err := api.OnDemandAmount(terraform.TextOf(wanted["custom_on_demand"])).Parse()
	var number big.Float
	replicas := config["replicas"]
	if err != nil || percent || !replicas.IsKnown() || replicas.IsNull() || replicas.As(&number) != nil || number.Cmp(big.NewFloat(float64(count))) >= 0 {
		return
	}
	diags.AddAttributeWarning(path.Root(distribution).AtName("custom_on_demand"), "More on-demand replicas than there are",
		fmt.Sprintf("distribution.custom_on_demand: %d of %s replicas are to be on on-demand nodes. All of them go there; with more replicas it will be %d.", count, terraform.NumberText(&number), count))
}

// distributionUnsettled reports whether at is about the distribution of a workload whose kind is
// not known yet: only some kinds may have one.
func distributionUnsettled(base, at path.Path, unknown []path.Path) bool {
	return terraform.Related(base.AtName(distribution), at) && slices.ContainsFunc(unknown, func(p path.Path) bool {
		return p.Equal(base.AtName("api_version")) || p.Equal(base.AtName("kind"))
	})
}
