package provider

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// distribution is the attribute that asks for a split.
const distribution = "distribution"

// distributionAttribute says how replicas are split over on-demand and spot nodes.
func distributionAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How the replicas are split over on-demand and spot nodes, inside each cluster that has `spot` enabled. For `Deployment` and `StatefulSet` of `apps/v1`. It goes before labels of the same purpose in the cluster; `{}` is the default split.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"mode": schema.StringAttribute{
				MarkdownDescription: "`all_in_on_demand`, `all_in_spot`, `majority_in_on_demand` (more than half of the replicas in each cluster) or `custom`. Default: a Deployment goes to spot nodes, a StatefulSet of one replica to an on-demand node, and of a larger one more than half of the replicas.",
				Optional:            true,
				Validators:          terraform.NotEmpty,
			},
			"custom_on_demand": schema.StringAttribute{
				MarkdownDescription: "Replicas on on-demand nodes under `custom`: a number (`\"3\"`), which holds over all clusters together, or a percentage (`\"30%\"`), rounded up in each cluster. Required under `custom`, and without effect otherwise.",
				Optional:            true,
				Validators:          terraform.NotEmpty,
			},
		},
	}
}

// clampedDistribution warns of more replicas on on-demand nodes than there are: all
// of them go there, and after a scale-up as many as asked for.
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

// distributionUnsettled reports that at is about the distribution of a workload,
// and that what the workload is is not known yet: only some kinds may have one.
func distributionUnsettled(base, at path.Path, unknown []path.Path) bool {
	return terraform.Related(base.AtName(distribution), at) && slices.ContainsFunc(unknown, func(p path.Path) bool {
		return p.Equal(base.AtName("api_version")) || p.Equal(base.AtName("kind"))
	})
}
