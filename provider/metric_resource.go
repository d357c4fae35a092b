package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMetricResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindMetric,
		Unavailable: "No value of %s",
		Description: "One live figure: where it is read, and which range of values maps to the scores 0 to 1. " +
			"Its present value is read with the data source `scheduler_metric`.",
		Attributes: terraform.SpecAttributes(api.KindMetric),
	}
}
