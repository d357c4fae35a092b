package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMoveWindowResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindMoveWindow,
		Description: "A window in time in which decisions may move, or must not. It holds only moves that nothing forces: clusters that are offline or deleted, taints that evict, and what you ask for by a changed spec are never held. What is held says so in its condition `MoveHeld`, and is decided again when the window opens.",
		Attributes:  terraform.SpecAttributes(api.KindMoveWindow),
	}
}
