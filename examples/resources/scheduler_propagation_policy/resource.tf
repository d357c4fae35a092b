# Private clusters first. Replicas that do not fit go to managed clusters in two
# regions. If those cannot take them either, the whole workload moves to the backup
# site.
resource "scheduler_propagation_policy" "web" {
  name      = "web"
  namespace = "shop"

  resource_selectors = [
    { api_version = "apps/v1", kind = "Deployment", name = "web" },
    { api_version = "apps/v1", kind = "Deployment", label_selector = { match_labels = { tier = "web" } } },
  ]

  placement = {
    cluster_affinities = [
      {
        affinity_name    = "private"
        label_selector   = { match_labels = { owner = "private" } }
        exclude_clusters = ["lab"]

        overflow_affinities = [
          { affinity_name = "managed", field_selector = [{ key = "provider", operator = "In", values = ["aws", "gcp"] }] },
        ]
      },
      { affinity_name = "backup", cluster_names = ["backup1", "backup2"] },
    ]

    cluster_tolerations = [{ key = "dedicated", value = "web" }]

    # Use at least two regions and at most six clusters.
    spread_constraints = [
      { spread_by_field = "region", min_groups = 2 },
      { spread_by_field = "cluster", max_groups = 6 },
    ]

    replica_scheduling = {
      weight_preference = { dynamic_weight = "AvailableReplicas" }

      # Each cluster that is used gets at least two replicas, managed clusters at
      # most ten.
      cluster_limits = [
        { min_replicas = 2 },
        { affinity = { label_selector = { match_labels = { owner = "managed" } } }, max_replicas = 10 },
      ]
    }
  }

  failover = {
    cluster     = { grace_period = "5m" }
    application = { toleration = "2m" }
  }

  fail_back = { mode = "automatic", stabilization = "30m" }
}

# A global policy, for workloads that no policy in their own namespace selects: a
# copy of each ConfigMap on every cluster.
resource "scheduler_propagation_policy" "settings" {
  name               = "settings"
  resource_selectors = [{ api_version = "v1", kind = "ConfigMap" }]
}

# Three quarters of the replicas on the first site, one quarter on the second.
# Workloads of higher priority displace those of lower priority.
resource "scheduler_propagation_policy" "batch" {
  name                = "batch"
  namespace           = "research"
  priority            = 5
  workload_preemption = "LowerPriority"

  resource_selectors = [{ api_version = "batch/v1", kind = "Job" }]

  placement = {
    replica_scheduling = {
      weight_preference = {
        static_weights = [
          { affinity = { cluster_names = ["site1"] }, weight = 3 },
          { affinity = { cluster_names = ["site2"] }, weight = 1 },
        ]
      }
    }
  }
}

output "web_runs_on" {
  value = lookup(scheduler_propagation_policy.web.bindings, "shop/web", {})
}
