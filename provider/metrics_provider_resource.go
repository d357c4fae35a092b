package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMetricsProviderResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindMetricsProvider,
		Unsettled:   terraform.Choices(api.KindMetricsProvider),
		Unavailable: "No answer from %s",
		Description: "A server that metrics are read from, or a fixed table of values. `type` says which, and the block of that name has its settings.",
		Attributes:  terraform.SpecAttributes(api.KindMetricsProvider),
		Local:       map[string]bool{terraform.SecretsVersion: true},
	}
}
