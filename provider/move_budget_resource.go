package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMoveBudgetResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindMoveBudget,
		Description: "A limit on how many clusters decisions leave in a time although nothing forces it: of a namespace, or, without one, of the whole server. `move_budget` of a placement or policy is the limit of one. The most restrictive one counts.",
		Attributes:  terraform.SpecAttributes(api.KindMoveBudget),
	}
}
