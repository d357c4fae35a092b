package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// openStackDocs says what the API's own documentation leaves to its reader.
var openStackDocs = map[string]string{
	"openstack.username":                  "User who asks.",
	"openstack.application_credential_id": "Application credential that is used.",
	"metrics.name":                        "Name of the metric.",
	"status.metrics.name":                 "Name of the metric.",
	"status.metrics.namespace":            "Namespace of the metric; absent for a global one.",
	"status.metrics.weight":               "Weight of the metric in the score.",
	"status.metrics.observed_at":          "When the value was observed.",
}

// cloudDocs adds what only clouds have.
var cloudDocs = map[string]string{
	"status.collector":                    "The collector that pushes the figures, where one runs apart from the server.",
	"status.regions.name":                 "Name of the region.",
	"status.regions.failing_since":        "Since when collections fail.",
	"status.regions.zones.name":           "Name of the availability zone.",
	"status.regions.flavors.id":           "ID of the flavor.",
	"status.regions.flavors.name":         "Name of the flavor.",
	"status.regions.flavors.vcpus":        "Processors of a machine.",
	"status.regions.flavors.memory_mib":   "Memory of a machine in MiB.",
	"status.regions.flavors.disk_gib":     "Root disk of a machine in GiB.",
	"status.regions.flavors.public":       "Every project may use it.",
	"status.regions.volume_types.id":      "ID of the volume type.",
	"status.regions.volume_types.name":    "Name of the volume type.",
	"status.regions.volume_types.backend": "Name of the backend that has its volumes.",
}

func newCloudDataSource() datasource.DataSource {
	docs := maps.Clone(openStackDocs)
	maps.Copy(docs, cloudDocs)
	return &terraform.DataSource{
		Name:    "cloud",
		Subject: "cloud",
		Description: "A cloud: what was declared, and in `status` what was collected from it: per region the availability zones with their amounts, the flavors and the volume types. " +
			"Resources of a zone are `cpu`, `memory`, `storage/<volume type>` and `floating_ips`; storage and floating IPs are of the whole region and stand in each of its zones.",
		Arguments: map[string]schema.Attribute{
			"name": schema.StringAttribute{MarkdownDescription: "Name of the cloud.", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
		},
		Answer: terraform.ObjectAttributes(api.KindCloud, docs),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			cloud, err := s.Client().Get(ctx, api.Key{Kind: api.KindCloud, Name: terraform.Argument(arguments, "name")})
			if err != nil {
				return nil, err
			}
			return terraform.ObjectDocument(cloud)
		},
	}
}
