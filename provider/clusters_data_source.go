package provider

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/constraint"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newClustersDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:        "clusters",
		Subject:     "the list of clusters",
		Description: "The clusters whose labels match, sorted by name.",
		Arguments: map[string]schema.Attribute{
			"label_selector": schema.StringAttribute{
				MarkdownDescription: "Kubernetes label selector, evaluated by the server: `env=prod,tier!=edge`.",
				Optional:            true,
			},
			"label_constraints": schema.ListAttribute{
				MarkdownDescription: "Label constraints, as in a placement, all of which must hold: `location is DE`, `zone in (a, b)`.",
				ElementType:         types.StringType,
				Optional:            true,
			},
		},
		Answer: map[string]schema.Attribute{
			"names": schema.ListAttribute{
				MarkdownDescription: "Names of the clusters.",
				ElementType:         types.StringType,
				Computed:            true,
			},
			"clusters": schema.ListNestedAttribute{
				MarkdownDescription: "The clusters, each with the attributes of the data source `scheduler_cluster`.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: terraform.ObjectAttributes(api.KindCluster)},
			},
		},
		Ask: readClusters,
	}
}

func readClusters(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
	constraints, err := parseConstraints(terraform.Texts(arguments, "label_constraints"), "label_constraints")
	if err != nil {
		return nil, err
	}
	names, clusters := []any{}, []any{}
	for object, err := range s.Client().List(ctx, api.KindCluster, client.ListOptions{LabelSelector: terraform.Argument(arguments, "label_selector")}) {
		if err != nil {
			return nil, err
		}
		if !matchesAll(constraints, object.Meta().Labels) {
			continue
		}
		document, err := terraform.ObjectDocument(object)
		if err != nil {
			return nil, err
		}
		names = append(names, object.Meta().Name)
		clusters = append(clusters, document)
	}
	return map[string]any{"names": names, "clusters": clusters}, nil
}

// parseConstraints parses label constraints. The error names every invalid one.
func parseConstraints(expressions []string, field string) ([]constraint.Label, error) {
	var errs api.FieldErrors
	constraints := make([]constraint.Label, 0, len(expressions))
	for i, text := range expressions {
		parsed, err := constraint.ParseLabel(text)
		if err != nil {
			errs.Add(field+"["+strconv.Itoa(i)+"]", "%s", err)
		}
		constraints = append(constraints, parsed)
	}
	return constraints, errs.Err()
}

func matchesAll(constraints []constraint.Label, labels map[string]string) bool {
	for _, c := range constraints {
		if !c.Match(labels) {
			return false
		}
	}
	return true
}
