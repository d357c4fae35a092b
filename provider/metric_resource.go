package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMetricResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindMetric,
		Unavailable: "No value for %s",
		Description: "A metric: where its value is read, and which range of values maps to scores from 0 to 1. " +
			"Use the data source `scheduler_metric` to read its current value.",
		Attributes: terraform.SpecAttributes(api.KindMetric),
	}
}
