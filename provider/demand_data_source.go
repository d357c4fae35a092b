package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newDemandDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:    "demand",
		Subject: "the clusters that are demanded",
		Description: "The clusters that placements and workloads lack, for `for_each`: each with a name that stays the same, and with what it must have. " +
			"A cluster that was made for a demand, and says so in its attribute `demand`, stays in the list while it is used or still demanded. See the guide *Clusters on demand*.",
		Arguments: map[string]schema.Attribute{
			"namespace": schema.StringAttribute{
				MarkdownDescription: "Only what is demanded in this namespace. If omitted, everywhere.",
				Optional:            true,
				Validators:          []validator.String{terraform.ObjectName{}},
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "Only what the placement or workload of this name demands.",
				Optional:            true,
				Validators:          []validator.String{terraform.ObjectName{}},
			},
		},
		Answer: map[string]schema.Attribute{
			"clusters": schema.MapNestedAttribute{
				MarkdownDescription: "The clusters, by name.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: terraform.ComputedAttributes(reflect.TypeFor[api.DemandedCluster]())},
			},
			"obstructed": schema.ListNestedAttribute{
				MarkdownDescription: "Placements and workloads that lack clusters, and that no additional cluster helps.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: terraform.ComputedAttributes(reflect.TypeFor[api.Obstructed]())},
			},
		},
		Ask: readDemand,
	}
}

func readDemand(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
	list, err := s.Client().Demand(ctx, terraform.Argument(arguments, "namespace"))
	if err != nil {
		return nil, err
	}
	name := terraform.Argument(arguments, "name")
	clusters, obstructed := map[string]any{}, []any{}
	for i := range list.Items {
		if name != "" && list.Items[i].Name != name {
			continue
		}
		if clusters[list.Items[i].Cluster], err = terraform.JSONDocument(list.Items[i]); err != nil {
			return nil, err
		}
	}
	for i := range list.Obstructed {
		if name != "" && list.Obstructed[i].Name != name {
			continue
		}
		document, err := terraform.JSONDocument(list.Obstructed[i])
		if err != nil {
			return nil, err
		}
		obstructed = append(obstructed, document)
	}
	return map[string]any{"clusters": clusters, "obstructed": obstructed}, nil
}
