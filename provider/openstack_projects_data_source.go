package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newOpenStackProjectsDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:    "openstack_projects",
		Subject: "the OpenStack projects of a cloud",
		Description: "The projects and Magnum cluster templates that currently exist in the OpenStack of a `scheduler_cloud`. The server queries OpenStack with the cloud's credentials. If their user may not list all projects, the result contains the projects in which the user has a role. " +
			"Use `for_each` to declare a `scheduler_openstack_project` for each of them.",
		Arguments: map[string]schema.Attribute{
			"cloud": schema.StringAttribute{MarkdownDescription: "Name of the `scheduler_cloud`, which has credentials.", Required: true, Validators: []validator.String{terraform.ObjectName{}}},
			"tags":  schema.ListAttribute{MarkdownDescription: "Only projects that have all of these tags. If omitted, all projects.", ElementType: types.StringType, Optional: true},
			"disabled": schema.BoolAttribute{
				MarkdownDescription: "Whether to list disabled projects instead of enabled ones. Defaults to `false`.",
				Optional:            true,
			},
		},
		Answer: terraform.ComputedAttributes(reflect.TypeFor[api.LiveOpenStack]()),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			disabled, _ := arguments["disabled"].(bool)
			live, err := s.Client().OpenStackProjects(ctx, terraform.Argument(arguments, "cloud"), api.LiveOptions{Tags: terraform.Texts(arguments, "tags"), Disabled: disabled})
			if err != nil {
				return nil, err
			}
			return terraform.JSONDocument(live)
		},
	}
}
