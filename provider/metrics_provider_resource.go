package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMetricsProviderResource() *terraform.Resource {
	return &terraform.Resource{
		Kind:        api.KindMetricsProvider,
		Unsettled:   terraform.Companions("type", "prometheus", "kafka", "influx", "static", "http_json"),
		Unavailable: "No answer from %s",
		Description: "A server that metrics are read from, or a fixed table of values. `type` says which, and the block of that name has its settings.",
		Attributes: terraform.WithSecrets(map[string]schema.Attribute{
			"type": schema.StringAttribute{
				MarkdownDescription: "`prometheus`, `kafka` (ksqlDB), `influx`, `static` or `http_json`.",
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
			"kafka": schema.SingleNestedAttribute{
				MarkdownDescription: "A ksqlDB server, and the table in it that has a row for each metric.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						MarkdownDescription: "Base address, such as `http://ksqldb:8088`.",
						Required:            true,
					},
					"table": schema.StringAttribute{
						MarkdownDescription: "Table, or materialized view, with a row for each metric.",
						Required:            true,
					},
					"comparison_column": schema.StringAttribute{
						MarkdownDescription: "Column that holds the metrics' names.",
						Required:            true,
					},
					"value_column": schema.StringAttribute{
						MarkdownDescription: "Column that holds their values.",
						Required:            true,
					},
				},
			},
			"influx": schema.SingleNestedAttribute{
				MarkdownDescription: "An InfluxDB server: 2.x, or 1.x, where the bucket is a database and the token `user:password`.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						MarkdownDescription: "Base address, such as `http://influxdb:8086`.",
						Required:            true,
					},
					"token": schema.StringAttribute{
						MarkdownDescription: "API token; `user:password` for InfluxDB 1.x.",
						Optional:            true,
						Sensitive:           true,
						WriteOnly:           true,
					},
					"org": schema.StringAttribute{
						MarkdownDescription: "Organization; InfluxDB 1.x has none.",
						Optional:            true,
					},
					"bucket": schema.StringAttribute{
						MarkdownDescription: "Bucket; a database, or `database/retention-policy`, for InfluxDB 1.x.",
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
			"http_json": schema.SingleNestedAttribute{
				MarkdownDescription: "JSON documents that are read over HTTP, such as prices, carbon intensity or an inventory. One document for all, or one for each cluster.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						MarkdownDescription: "Address of the document. `$${cluster.name}`, `$${region}`, `$${labels.x}` and `$${claims.x}` stand for those of the cluster that the metric is read for, `$${metric}` for `metrics_provider.metric` of the metric. They may be used in the path and in the query, and are escaped there. With a single `$`, Terraform would fill them in itself.",
						Required:            true,
					},
					"value": schema.StringAttribute{
						MarkdownDescription: "JSON pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)) to the value: a number, or a string that holds one. The placeholders of `url` may be used here as well. Empty: the document is the number.",
						Required:            true,
					},
				},
			},
			"interval": schema.StringAttribute{
				MarkdownDescription: "Time between two readings. Default `" + string(api.DefaultProviderInterval) + "`.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(api.DefaultProviderInterval)),
				Validators:          terraform.NotEmpty,
			},
			"timeout": schema.StringAttribute{
				MarkdownDescription: "How long one reading may take. Default `" + string(api.DefaultProviderTimeout) + "`, `" + string(api.DefaultInfluxTimeout) + "` with type `influx`.",
				Optional:            true,
				Computed:            true,
				Validators:          terraform.NotEmpty,
			},
			"headers": schema.MapAttribute{
				MarkdownDescription: "HTTP headers sent with every request.",
				ElementType:         types.StringType,
				Optional:            true,
				Sensitive:           true,
				WriteOnly:           true,
			},
			"bearer_token": schema.StringAttribute{
				MarkdownDescription: "Sent as `Authorization: Bearer`.",
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
		}),
		Local:     map[string]bool{terraform.SecretsVersion: true},
		Dependent: terraform.DependentDefaults{On: "type", Names: []string{"timeout"}},
	}
}
