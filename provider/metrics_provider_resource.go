package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func newMetricsProviderResource() resource.Resource {
	return &objectResource{
		kind:        api.KindMetricsProvider,
		description: "A server that metrics are read from, or a fixed table of values. `type` says which, and the block of that name has its settings.",
		attributes: map[string]schema.Attribute{
			"type": schema.StringAttribute{
				MarkdownDescription: "`prometheus` or `static`.",
				Required:            true,
			},
			"prometheus": schema.SingleNestedAttribute{
				MarkdownDescription: "A Prometheus server, or anything that speaks its query API.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						MarkdownDescription: "Base address, such as `http://prometheus:9090`.",
						Required:            true,
					},
				},
			},
			"static": schema.SingleNestedAttribute{
				MarkdownDescription: "A fixed table of values.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"metrics": schema.MapAttribute{
						MarkdownDescription: "Value by metric name.",
						ElementType:         types.Float64Type,
						Optional:            true,
					},
				},
			},
			"interval": schema.StringAttribute{
				MarkdownDescription: "Time between two readings. Default `" + string(api.DefaultProviderInterval) + "`.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.DefaultProviderInterval)),
				Validators:          notEmpty,
			},
			"timeout": schema.StringAttribute{
				MarkdownDescription: "How long one reading may take. Default `" + string(api.DefaultProviderTimeout) + "`.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.DefaultProviderTimeout)),
				Validators:          notEmpty,
			},
			"headers": schema.MapAttribute{
				MarkdownDescription: "HTTP headers sent with every request. The server keeps the values sealed and never returns them; they are in no plan and no state. Change `secrets_version` to send new ones.",
				ElementType:         types.StringType,
				Optional:            true,
				Sensitive:           true,
				WriteOnly:           true,
			},
			"bearer_token": schema.StringAttribute{
				MarkdownDescription: "Sent as `Authorization: Bearer`. Kept as `headers` are.",
				Optional:            true,
				Sensitive:           true,
				WriteOnly:           true,
			},
			"ca_cert": schema.StringAttribute{
				MarkdownDescription: "PEM certificates that the server's certificate must chain to.",
				Optional:            true,
			},
			"insecure_skip_verify": schema.BoolAttribute{
				MarkdownDescription: "Do not check the server's certificate. Default `false`.",
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(false),
			},
			secretsVersion: secretsVersionAttribute(),
		},
		local: map[string]bool{secretsVersion: true},
	}
}
