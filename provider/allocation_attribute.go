package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// allocationAttribute says on which sites a workload is placed, and how its
// replicas are divided over them.
func allocationAttribute() schema.Attribute {
	texts := func(description string) schema.Attribute {
		return schema.ListAttribute{MarkdownDescription: description, ElementType: types.StringType, Optional: true}
	}
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Optional: true}
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Places the workload by itself: no policy is needed, and none applies. It goes to sites, which are clusters with a region and a zone.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"flavors": texts("Sizes of machines for one replica, the best first: a site takes the first that it has room for. In addition to `replica_requests`."),
			"machines": schema.MapAttribute{
				MarkdownDescription: "Further machines of one replica: how many of each size, by the name of the flavor.",
				Optional:            true,
				ElementType:         types.Int64Type,
			},
			"regions": schema.ListNestedAttribute{
				MarkdownDescription: "Where the sites may be: in any of these. Without it anywhere.",
				Optional:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"region": schema.StringAttribute{
						MarkdownDescription: "Name of the region.",
						Required:            true,
					},
					"availability_zones": texts("Zones of the region. Without it the whole region."),
				}},
			},
			"geo_location": schema.SingleNestedAttribute{
				MarkdownDescription: "Where the sites have to be. What is given must equal the cluster's claim of that name.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"country":  text("Country."),
					"area":     text("Area of the country."),
					"province": text("Province."),
					"city":     text("City."),
				},
			},
			"operator": text("Who runs the sites: the clusters' claim `operator`."),
			"site_id":  text("A site, as `<region>--<zone>`, or with `<region>--` all of a region."),
			"location_strategy": schema.StringAttribute{
				MarkdownDescription: "`discrete` (default): share the replicas by how many each site has room for; a single one goes to the best. `centralize`: fill the best site first.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.LocationDiscrete)),
				Validators:          terraform.NotEmpty,
			},
			"region_strategy": schema.StringAttribute{
				MarkdownDescription: "`alone`: all replicas in one region, the one with the most room. Without it in any.",
				Optional:            true,
			},
			"stack_affinity":      texts("Workloads of the namespace that this one prefers to be with."),
			"stack_anti_affinity": texts("Workloads of the namespace that it prefers not to be with."),
		},
	}
}
