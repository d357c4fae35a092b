# An agent on each cluster measures utilization and pushes scores:
#
#   PUT /v1/clusters/berlin/placement-scores/utilisation
#   { "kind": "placement_score",
#     "metadata": { "name": "utilisation", "cluster": "berlin" },
#     "spec": { "scores": { "cpu_free": 55, "memory_free": 20 },
#               "valid_until": "2031-01-31T12:05:00Z" } }
#
# with a token of the role agent (scheduler-server token create --role agent). The
# batch jobs run on the clusters with the most free CPU, and move when that changes.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {
  namespace = "batch"
}

variable "clusters" {
  description = "The clusters that run an agent."
  type        = set(string)
  default     = ["berlin", "madrid", "oslo", "paris"]
}

resource "scheduler_cluster" "site" {
  for_each = var.clusters

  name   = each.key
  labels = { tier = "batch" }
}

# The top two clusters by score. Agents write the scores every minute, so they never
# show up as differences in a plan.
resource "scheduler_placement" "jobs" {
  name               = "jobs"
  number_of_clusters = 2
  strategy           = "prioritizers"

  prioritizer_policy = {
    mode = "exact" # use only what is listed here

    configurations = [
      { type = "addon", resource_name = "utilisation", score_name = "cpu_free" },
    ]
  }

  # A cluster must be better by more than 10 points to replace a chosen one. Scores
  # that are missing or have expired count as 0.
  min_improvement = 10

  predicates = [
    { label_selector = { match_labels = { tier = "batch" } } },
  ]

  depends_on = [scheduler_cluster.site]
}

# Scores change all the time, so they are not part of the placement's state. This
# data source shows the current ones.
data "scheduler_placement_decisions" "jobs" {
  name = scheduler_placement.jobs.name
}

output "clusters" {
  value = scheduler_placement.jobs.clusters
}

output "scores" {
  value = { for d in data.scheduler_placement_decisions.jobs.decisions : d.cluster => d.score }
}
