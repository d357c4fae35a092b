# Three clusters of a set, ranked by prioritizers.
resource "scheduler_placement" "training" {
  name      = "training"
  namespace = "research"

  number_of_clusters = 3
  cluster_sets       = ["eu"]

  # A cluster must match at least one of these.
  predicates = [
    { claim_selector = { match_expressions = [{ key = "gpu", operator = "In", values = ["h100", "b200"] }] } },
    { cel = ["managedCluster.metadata.labels[\"tier\"] == \"gold\""] },
  ]

  tolerations = [
    { key = "dedicated", value = "training" },
    # Keep a cluster that cannot be reached for five minutes.
    { key = "scheduler/unreachable", operator = "Exists", toleration_seconds = 300 },
  ]

  strategy = "prioritizers"

  prioritizer_policy = {
    mode = "additive" # balance and steady also count, unless their weight is 0

    configurations = [
      { name = "balance", weight = 0 },
      { name = "resource_available_cpu", weight = 2 },
      { type = "addon", resource_name = "support", score_name = "price", weight = -1 },
      { type = "metric", name = "electricity", weight = 3 },
    ]
  }

  # No region may have more than one cluster above another.
  spread_constraints = [
    { topology_key = "region", type = "Field", when_unsatisfiable = "DoNotSchedule" },
  ]

  # Roll out in steps: the canary first, then the others one by one.
  decision_strategy = {
    clusters_per_decision_group = "1"

    decision_groups = [
      { name = "canary", label_selector = { match_labels = { canary = "true" } } },
    ]
  }
}
