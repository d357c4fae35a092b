# A third-party controller measures the clusters and rates them by latency, IOPS and
# price. It writes one set of scores per cluster,
#
#   PUT /v1/clusters/frankfurt/placement-scores/sla
#   { "kind": "placement_score",
#     "metadata": { "name": "sla", "cluster": "frankfurt" },
#     "spec": { "scores": { "latency": 90, "iops": 40 } } }
#
# and each team weighs them as it likes. Cluster sets determine which clusters a
# team may use at all.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {
  namespace = "trading"
}

variable "clusters" {
  description = "The clusters: region and certification."
  type        = map(object({ region = string, certified = optional(string, "none") }))
  default = {
    frankfurt = { region = "eu", certified = "pci" }
    paris     = { region = "eu", certified = "pci" }
    warsaw    = { region = "eu" }
    newyork   = { region = "us", certified = "pci" }
  }
}

resource "scheduler_cluster" "site" {
  for_each = var.clusters

  name   = each.key
  labels = { region = each.value.region }
  claims = { certified = each.value.certified }
}

# Clusters join and leave the set by their labels. Only these two namespaces may use
# it.
resource "scheduler_cluster_set" "eu" {
  name       = "eu"
  namespaces = ["trading", "audit"]

  selector = { match_labels = { region = "eu" } }
}

# For orders, latency counts most, and IOPS a little.
resource "scheduler_placement" "orders" {
  name               = "orders"
  number_of_clusters = 1
  cluster_sets       = [scheduler_cluster_set.eu.name]
  strategy           = "prioritizers"

  predicates = [
    { claim_selector = { match_expressions = [{ key = "certified", operator = "In", values = ["pci"] }] } },
  ]

  prioritizer_policy = {
    mode = "exact"

    configurations = [
      { type = "addon", resource_name = "sla", score_name = "latency", weight = 3 },
      { type = "addon", resource_name = "sla", score_name = "iops", weight = 1 },
    ]
  }

  depends_on = [scheduler_cluster.site]
}

# The archive needs IOPS and ignores latency, so latency is not listed. "balance" is
# in every additive policy by default; only weight 0 disables it.
resource "scheduler_placement" "archive" {
  name               = "archive"
  number_of_clusters = 2
  cluster_sets       = [scheduler_cluster_set.eu.name]
  strategy           = "prioritizers"

  prioritizer_policy = {
    configurations = [ # additive: balance and steady count unless disabled
      { name = "balance", weight = 0 },
      { type = "addon", resource_name = "sla", score_name = "iops", weight = 2 },
    ]
  }

  # Roll out to one cluster first.
  decision_strategy = { clusters_per_decision_group = "50%" }

  depends_on = [scheduler_cluster.site]
}

data "scheduler_placement_decisions" "archive" {
  name = scheduler_placement.archive.name
}

output "orders" {
  value = scheduler_placement.orders.clusters
}

output "archive_rollout" {
  value = [for g in data.scheduler_placement_decisions.archive.decision_groups : g.clusters]
}
