package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newNotificationResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindNotification,
		Description: "Who is told what happens to decisions, and to what they depend on, between two applies: a webhook, an Alertmanager, a channel, or what applies Terraform. Everything is delivered at least once, in order for each object, over crashes and changes of leader. Exactly one of the blocks `webhook`, `alertmanager`, `slack`, `hcp_terraform`, `github`, `gitlab` and `atlantis` is required. See the guide *Notifications*.",
		Attributes:  terraform.SpecAttributes(api.KindNotification),
		Local:       map[string]bool{terraform.SecretsVersion: true},
	}
}
