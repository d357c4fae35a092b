package provider

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newOpenStackProjectResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:      api.KindOpenStackProject,
		Unsettled: openStackUnsettled,
		Description: "An OpenStack project in which Magnum clusters can be created: its labels, the metrics that rate it, and the template for its clusters. " +
			"Every `scheduler_magnum_cluster` in its namespace may be assigned to it. The data source `scheduler_openstack_projects` lists the projects that exist in an OpenStack cloud.",
		Attributes: terraform.SpecAttributes(api.KindOpenStackProject),
	}
}
