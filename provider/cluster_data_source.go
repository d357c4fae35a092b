package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// clusterDocs says what the API's own documentation leaves to its reader.
var clusterDocs = map[string]string{
	"region":               "Region the cluster is in.",
	"zones":                "Availability zones the cluster spans.",
	"state":                "`online`, `pending`, `connecting`, `offline`, `unhealthy` or `notready`. Only online clusters take new workloads.",
	"last_heartbeat_at":    "When an agent of the cluster last reported.",
	"capacity_reported_at": "When `allocated` was last declared or reported.",
	"observed_generation":  "Generation that the status answers.",
	"observed_at":          "When the value was observed.",
	"conditions":           conditionsDoc,
}

const conditionsDoc = "Observations, each with `type`, `status` (`True`, `False`, `Unknown`), `reason` and `message`."

func newClusterDataSource() datasource.DataSource {
	return &readDataSource{
		name:        "cluster",
		subject:     "cluster",
		description: "A cluster: what was declared, and in `status` what the server knows of it (state, amounts, present values of its metrics).",
		arguments: map[string]schema.Attribute{
			"name": schema.StringAttribute{MarkdownDescription: "Name of the cluster.", Required: true},
		},
		answer: objectAttributes(api.KindCluster, clusterDocs),
		read: func(ctx context.Context, s *session, arguments map[string]any) (map[string]any, error) {
			cluster, err := s.client.Get(ctx, api.Key{Kind: api.KindCluster, Name: argument(arguments, "name")})
			if err != nil {
				return nil, err
			}
			return objectDocument(cluster)
		},
	}
}
