package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newRoleBindingResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindRoleBinding,
		Unsettled: terraform.Companions("token_ids", "issuer", "claims", "role", "namespaces"),
		Description: "Who has a role, in addition to the one that a token has by itself: tokens of the server by their IDs, or the tokens of a trusted issuer by their claims, such as those of a CI system or of people who log in. " +
			"Only administrators create and change role bindings.",
		Attributes: terraform.SpecAttributes(api.KindRoleBinding),
	}
}
