# The figures of all clusters are collected in one place, a Prometheus or Thanos
# beside the scheduling server, and nothing runs on the clusters. A metric becomes
# a score from -100 (as bad as its range goes) to 100 (as good), and may be mixed
# with the scores of an add-on in one policy.

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
  description = "Prometheus or Thanos that has cluster_memory_free_ratio with a label cluster. Empty: the figures of var.clusters."
  type        = string
  default     = ""
}

variable "clusters" {
  description = "The clusters: how much of their memory is free (0 to 1) where there is no Prometheus, and their grade of support (-100 to 100)."
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

# Each cluster's metrics are in a namespace of their own and have the same name
# everywhere: "memory_free" then means each cluster's own figure.
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

# Scores that change with a contract and not with the minute may be written by
# Terraform.
resource "scheduler_placement_score" "support" {
  for_each = var.clusters

  cluster = scheduler_cluster.site[each.key].name
  name    = "support"
  scores  = { grade = each.value.support }
}

# One cluster: two parts free memory, one part grade of support.
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

# A negative weight turns the order round: this is the cluster with least free
# memory, to look into what is wrong with it.
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

# What each score is made of.
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
