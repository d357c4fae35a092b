package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newCloudResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindCloud,
		Unsettled: openStackUnsettled,
		Description: "An OpenStack that clusters are created on: its labels, the metrics that rate it, and the access to it. " +
			"With credentials the server collects what its availability zones have; without, a collector that runs elsewhere pushes it. " +
			"The figures are read with the data source `scheduler_cloud`.",
		Attributes: terraform.SpecAttributes(api.KindCloud),
		Local:      map[string]bool{terraform.SecretsVersion: true},
	}
}
