package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newFreezeResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindFreeze,
		Description: "A stop of all moves that nothing forces, in a namespace, or, without one, everywhere. `terraform apply` goes on working: what you ask for is never held.",
		Attributes:  terraform.SpecAttributes(api.KindFreeze),
	}
}
