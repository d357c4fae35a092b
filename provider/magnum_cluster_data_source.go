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
		Description: "A Magnum cluster: its declared attributes, and in `status` the chosen project, its score, and the labels and metrics that the cluster inherits from it. If the Magnum cluster is in the same configuration and you need only the project's name, use " +
			"`scheduler_magnum_cluster.<name>.project` instead, which stays known while you edit the cluster.",
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
