package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newCloudResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindCloud,
		Unsettled: openStackUnsettled,
		Description: "An OpenStack cloud: its labels, the metrics that rate it, and how to access it. " +
			"With credentials, the server collects the capacity of its availability zones. Without them, a collector that runs elsewhere can push it. " +
			"Use the data source `scheduler_cloud` to read the capacity.",
		Attributes: terraform.SpecAttributes(api.KindCloud),
	}
}
