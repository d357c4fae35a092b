package provider

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// openStackAttribute is the access to an OpenStack.
func openStackAttribute(description string) schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{MarkdownDescription: description, Optional: true, Validators: terraform.NotEmpty}
	}
	secret := func(description string) schema.StringAttribute {
		return schema.StringAttribute{MarkdownDescription: description, Optional: true, Sensitive: true, WriteOnly: true}
	}
	domain := func(of, with string) schema.StringAttribute {
		return schema.StringAttribute{
			MarkdownDescription: "Domain of the " + of + ". Default `" + api.DefaultOpenStackDomain + "` with `" + with + "`, else none.",
			Optional:            true,
			Computed:            true,
			Validators:          terraform.NotEmpty,
			PlanModifiers:       []planmodifier.String{terraform.SiblingDefault{On: with, Otherwise: api.DefaultOpenStackDomain}},
		}
	}
	duration := func(description string, standard api.Duration) schema.StringAttribute {
		return schema.StringAttribute{
			MarkdownDescription: description + " Default `" + string(standard) + "`.",
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(string(standard)),
			Validators:          terraform.NotEmpty,
		}
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"auth_url": schema.StringAttribute{
				MarkdownDescription: "Address of the identity service, such as `https://keystone:5000/v3`.",
				Required:            true,
			},
			"username":                      text("User who asks, with `password_wo` and a project."),
			"user_id":                       text("ID of the user, in place of `username` and `user_domain_name`."),
			"user_domain_name":              domain("user", "username"),
			"password":                      secret("Password of the user."),
			"project_name":                  text("Project that the user's role is in."),
			"project_id":                    text("ID of the project, in place of `project_name` and `project_domain_name`."),
			"project_domain_name":           domain("project", "project_name"),
			"application_credential_id":     text("Application credential, in place of user, password and project."),
			"application_credential_secret": secret("Secret of the application credential."),
			"regions": schema.ListAttribute{
				MarkdownDescription: "Regions that count. Without it all that the identity service lists.",
				ElementType:         types.StringType,
				Optional:            true,
			},
			"interval": duration("Time between two collections.", api.DefaultCollectInterval),
			"timeout":  duration("How long one collection of a region may take.", api.DefaultCollectTimeout),
			"ca_cert":  text("PEM certificates that the servers' certificates must chain to."),
			"insecure_skip_verify": schema.BoolAttribute{
				MarkdownDescription: "Do not check the servers' certificates. Default `false`.",
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(false),
			},
		},
	}
}

// accessUnsettled reports that at is a user or a project of the access to an
// OpenStack, of which one is required, and that the other way to name it is not
// known yet.
func accessUnsettled(access, at path.Path, unknown []path.Path) bool {
	for name, id := range map[string]string{"username": "user_id", "project_name": "project_id"} {
		if at.Equal(access.AtName(name)) && slices.ContainsFunc(unknown, access.AtName(id).Equal) {
			return true
		}
	}
	return false
}

// ownerUnsettled reports that at is the namespace of one of a cloud's metrics, and
// that its owner is not known yet: only a cloud with one may have such metrics.
func ownerUnsettled(base, at path.Path, unknown []path.Path) bool {
	steps := at.Steps()
	return len(steps) > 0 && steps[len(steps)-1].Equal(path.PathStepAttributeName("namespace")) &&
		terraform.Related(base.AtName("metrics"), at) && slices.ContainsFunc(unknown, base.AtName("namespace").Equal)
}

// openStackUnsettled is that of what is in an OpenStack, and may have an owner.
func openStackUnsettled(base, at path.Path, unknown []path.Path) bool {
	return accessUnsettled(base.AtName("openstack"), at, unknown) || ownerUnsettled(base, at, unknown)
}
