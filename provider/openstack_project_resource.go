package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newOpenStackProjectResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindOpenStackProject,
		Unsettled: openStackUnsettled,
		Description: "A project of an OpenStack that Magnum clusters are created in: its labels, the metrics that rate it, and what a cluster is created with. " +
			"Every `scheduler_magnum_cluster` of its namespace may be put into it. The data source `scheduler_openstack_projects` reads the projects that an OpenStack has.",
		Attributes: terraform.SpecAttributes(api.KindOpenStackProject),
		Local:      map[string]bool{terraform.SecretsVersion: true},
	}
}
