package provider

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// splitAttributes are the attributes with the split of each cluster's replicas.
func splitAttributes() map[string]schema.Attribute {
	part := func(nodes string) schema.Attribute {
		return schema.MapAttribute{
			MarkdownDescription: fmt.Sprintf("The decision: replicas for %s nodes, by cluster. To see what actually runs, use the data source `scheduler_workload`. Null without a `distribution`.", nodes),
			ElementType:         types.Int64Type,
			Computed:            true,
		}
	}
	return map[string]schema.Attribute{"on_demand": part("on-demand"), "spot": part("spot")}
}

// splitOf returns these attributes for a workload: null if there is no distribution.
func splitOf(workload *api.Workload) map[string]any {
	if workload.Spec.Distribution == nil {
		return map[string]any{"on_demand": nil, "spot": nil}
	}
	onDemand, onSpot := map[string]any{}, map[string]any{}
	for _, c := range workload.Status.Clusters {
		if c.OnDemand != nil {
			onDemand[c.Name] = replicaCount(*c.OnDemand)
		}
		if c.Spot != nil {
			onSpot[c.Name] = replicaCount(*c.Spot)
		}
	}
	return map[string]any{"on_demand": onDemand, "spot": onSpot}
}

// planSplit plans these attributes: null if no split is requested; unknown if the replicas by
// cluster are unknown, or the split changes; otherwise unchanged. If the replicas are new and known
// because of a preview, the split is computed by the server's rules.
func planSplit(plan, before map[string]tftypes.Value, replanned bool) error {
	wanted := plan[distribution]
	previewed := replanned && plan["clusters"].IsFullyKnown()
	var split map[string]any
	if previewed {
		split = splitOfPlan(plan)
	}
	for name := range splitAttributes() {
		t := plan[name].Type()
		switch {
		case wanted.IsKnown() && wanted.IsNull():
			plan[name] = tftypes.NewValue(t, nil)
		case split != nil:
			value, err := terraform.Value(t, split[name])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			plan[name] = value
		case replanned || !wanted.Equal(before[distribution]):
			plan[name] = tftypes.NewValue(t, tftypes.UnknownValue)
		default:
			plan[name] = before[name]
		}
	}
	return nil
}

// splitOfPlan returns the split of the replicas in a plan, or nil if they are unknown or the
// workload is not replicated.
func splitOfPlan(plan map[string]tftypes.Value) map[string]any {
	wanted, replicas, kind := plan[distribution], plan["replicas"], plan["kind"]
	if !wanted.IsFullyKnown() || !kind.IsKnown() || !replicas.IsKnown() || replicas.IsNull() {
		return nil
	}
	var bound map[string]tftypes.Value
	if plan["clusters"].As(&bound) != nil {
		return nil
	}
	clusters := slices.Sorted(maps.Keys(bound)) // the server's order
	shares := make([]int64, len(clusters))
	for i, cluster := range clusters {
		shares[i] = terraform.WholeOf(bound[cluster])
	}
	spec := api.DistributionSpec{
		Mode:           api.DistributionMode(terraform.TextOf(terraform.AttributesOf(wanted)["mode"])),
		CustomOnDemand: api.OnDemandAmount(terraform.TextOf(terraform.AttributesOf(wanted)["custom_on_demand"])),
	}
	onDemand, onSpot := map[string]any{}, map[string]any{}
	for i, target := range split.Divide(terraform.TextOf(kind), terraform.WholeOf(replicas), shares, spec) {
		onDemand[clusters[i]], onSpot[clusters[i]] = replicaCount(target.OnDemand), replicaCount(target.Spot)
	}
	return map[string]any{"on_demand": onDemand, "spot": onSpot}
}
