package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMoveWindowResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindMoveWindow,
		Unsettled: terraform.Companions("schedule", "duration"),
		Description: "When decisions may move. While a window holds a decision that answers its spec, better scores, a return to an earlier group and another division of replicas wait; " +
			"what has to move moves all the same: clusters that are offline, evict or no longer fit, workloads that a higher priority displaces, and decisions for a changed spec. " +
			"With a `namespace`, the window is for the placements and workloads in it, otherwise for all.",
		Attributes: terraform.SpecAttributes(api.KindMoveWindow),
	}
}
