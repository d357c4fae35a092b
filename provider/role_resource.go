package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newRoleResource() *terraform.Resource {
	return &terraform.Resource{
		Kind: api.KindRole,
		Description: "What tokens may do, besides the built-in roles `admin`, `editor`, `viewer` and `agent`: verbs on kinds of objects in namespaces. " +
			"Tokens have a role by their own, or by a `scheduler_role_binding`. Only administrators create and change roles.",
		Attributes: terraform.SpecAttributes(api.KindRole),
	}
}
