package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newCloudResource() *terraform.Resource {
	metrics := metricsAttribute("cloud")
	metrics.MarkdownDescription += " Only a cloud with a `namespace` may list metrics of namespaces."
	return &terraform.Resource{
		Kind:      api.KindCloud,
		Unsettled: openStackUnsettled,
		Description: "An OpenStack that clusters are created on: its labels, the metrics that rate it, and the access to it. " +
			"With credentials the server collects what its availability zones have; without, a collector that runs elsewhere pushes it. " +
			"The figures are read with the data source `scheduler_cloud`.",
		Attributes: terraform.WithSecrets(map[string]schema.Attribute{
			"namespace": schema.StringAttribute{
				MarkdownDescription: "Owner: only clusters of this namespace are created on the cloud, and prefer it. Without it all may be.",
				Optional:            true,
				Validators:          terraform.NotEmpty,
			},
			"metrics":   metrics,
			"openstack": openStackAttribute("Access to the OpenStack, from which the figures of its zones are collected. Without credentials (`password_wo` or `application_credential_secret_wo`) nothing is asked."),
		}),
		Local: map[string]bool{terraform.SecretsVersion: true},
	}
}
