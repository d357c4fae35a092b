package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newMagnumClusterDataSource() datasource.DataSource {
	return &terraform.DataSource{
		Name:    "magnum_cluster",
		Subject: "Magnum cluster",
		Description: "A Magnum cluster: what was declared, and in `status` the project that was chosen for it, its score, and the labels and metrics that the cluster has from it. For one of the same configuration use " +
			"`scheduler_magnum_cluster.<name>.project` where the name is enough: it stays known while the cluster is edited.",
		Arguments: namespacedArguments("Magnum cluster"),
		Answer:    terraform.ObjectAttributes(api.KindMagnumCluster),
		Ask: func(ctx context.Context, s *terraform.Session, arguments map[string]any) (map[string]any, error) {
			cluster, err := s.Client().Get(ctx, s.NamespacedKey(api.KindMagnumCluster, arguments))
			if err != nil {
				return nil, err
			}
			return terraform.ObjectDocument(cluster)
		},
	}
}
