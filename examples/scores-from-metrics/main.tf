# The metrics of all clusters are in one Prometheus or Thanos next to the scheduling
# server. Nothing runs on the clusters. A metric becomes a score from -100 (worst
# value of its range) to 100 (best), and a policy can mix it with scores from
# add-ons.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {
  namespace = "shop"
}

variable "prometheus_url" {
  description = "URL of a Prometheus or Thanos with the metric cluster_memory_free_ratio and a label cluster. If empty, the values in var.clusters are used."
  type        = string
  default     = ""
}

variable "clusters" {
  description = "The clusters: share of free memory (0 to 1, used without Prometheus) and support grade (-100 to 100)."
  type        = map(object({ memory_free = number, support = number }))
  default = {
    berlin = { memory_free = 0.75, support = 40 }
    madrid = { memory_free = 0.50, support = 80 }
    oslo   = { memory_free = 0.25, support = 60 }
  }
}

locals {
  live = var.prometheus_url != ""
}

# Each cluster has a namespace for its metrics, so that the metrics can have the
# same names. "memory_free" then refers to each cluster's own value.
resource "scheduler_metrics_provider" "central" {
  for_each = var.clusters

  name      = "central"
  namespace = each.key
  type      = local.live ? "prometheus" : "static"
  interval  = "1s"

  prometheus = local.live ? { url = var.prometheus_url } : null
  static     = local.live ? null : { metrics = { memory_free = each.value.memory_free } }
}

resource "scheduler_metric" "memory_free" {
  for_each = var.clusters

  name      = "memory-free"
  namespace = each.key
  min       = 0 # scores -100
  max       = 1 # scores 100

  metrics_provider = {
    name   = scheduler_metrics_provider.central[each.key].name
    metric = local.live ? "cluster_memory_free_ratio{cluster=\"${each.key}\"}" : "memory_free"
  }
}

resource "scheduler_cluster" "site" {
  for_each = var.clusters

  name    = each.key
  metrics = [{ name = scheduler_metric.memory_free[each.key].name, namespace = each.key }]
}

# Terraform can write scores that rarely change, such as the terms of a contract.
resource "scheduler_placement_score" "support" {
  for_each = var.clusters

  cluster = scheduler_cluster.site[each.key].name
  name    = "support"
  scores  = { grade = each.value.support }
}

# One cluster, ranked by free memory (weight 2) and support grade (weight 1).
resource "scheduler_placement" "web" {
  name               = "web"
  number_of_clusters = 1
  strategy           = "prioritizers"

  prioritizer_policy = {
    mode = "exact"

    configurations = [
      { type = "metric", name = "memory-free", weight = 2 },
      { type = "addon", resource_name = "support", score_name = "grade" },
    ]
  }

  depends_on = [scheduler_cluster.site, scheduler_placement_score.support]
}

# A negative weight reverses the order: find the cluster with the least free memory,
# to investigate it.
resource "scheduler_placement" "worst" {
  name               = "worst"
  number_of_clusters = 1
  strategy           = "prioritizers"

  prioritizer_policy = {
    mode           = "exact"
    configurations = [{ type = "metric", name = "memory-free", weight = -1 }]
  }

  depends_on = [scheduler_cluster.site]
}

# What each score consists of.
data "scheduler_placement_explanation" "web" {
  name = scheduler_placement.web.name
}

output "clusters" {
  value = { web = scheduler_placement.web.clusters, worst = scheduler_placement.worst.clusters }
}

output "scores" {
  value = {
    for c in data.scheduler_placement_explanation.web.candidates : c.cluster => {
      total = c.score
      parts = { for s in c.scores : s.name => "${s.value} × ${s.weight}" }
    }
  }
}
