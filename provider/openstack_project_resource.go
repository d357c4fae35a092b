package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newOpenStackProjectResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindOpenStackProject,
		Unsettled: openStackUnsettled,
		Description: "A project of an OpenStack that Magnum clusters are created in: its labels, the metrics that rate it, and what a cluster is created with. " +
			"Every `scheduler_magnum_cluster` of its namespace may be put into it. The data source `scheduler_openstack_projects` reads the projects that an OpenStack has.",
		Attributes: terraform.WithSecrets(map[string]schema.Attribute{
			"metrics": metricsAttribute("project"),
			"project_id": schema.StringAttribute{
				MarkdownDescription: "ID of the project in the OpenStack.",
				Optional:            true,
			},
			"user_id": schema.StringAttribute{
				MarkdownDescription: "ID of the user who creates clusters in the project.",
				Optional:            true,
			},
			"template_id": schema.StringAttribute{
				MarkdownDescription: "ID of the Magnum cluster template that clusters are created from.",
				Optional:            true,
			},
			"openstack": openStackAttribute("Access to the OpenStack, for whoever creates the clusters."),
		}),
		Local: map[string]bool{terraform.SecretsVersion: true},
	}
}
