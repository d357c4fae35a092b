package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMetricsProviderResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindMetricsProvider,
		Unsettled:   terraform.Choices(api.KindMetricsProvider),
		Unavailable: "No response from %s",
		Description: "A source of metrics: a server such as Prometheus, or a fixed table of values. `type` selects the kind of source, and the block of the same name has its settings.",
		Attributes:  terraform.SpecAttributes(api.KindMetricsProvider),
	}
}
