package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func newMagnumClusterDataSource() datasource.DataSource {
	docs := maps.Clone(openStackDocs)
	docs["observed_reschedule_requests"] = "How many requests for a fresh decision were answered."
	return &readDataSource{
		name:    "magnum_cluster",
		subject: "Magnum cluster",
		description: "A Magnum cluster: what was declared, and in `status` the project that was chosen for it, its score, and the labels and metrics that the cluster has from it. For one of the same configuration use " +
			"`scheduler_magnum_cluster.<name>.project` where the name is enough: it stays known while the cluster is edited.",
		arguments: namespacedArguments("Magnum cluster"),
		answer:    objectAttributes(api.KindMagnumCluster, docs),
		read: func(ctx context.Context, s *session, arguments map[string]any) (map[string]any, error) {
			cluster, err := s.client.Get(ctx, s.namespacedKey(api.KindMagnumCluster, arguments))
			if err != nil {
				return nil, err
			}
			return objectDocument(cluster)
		},
	}
}
