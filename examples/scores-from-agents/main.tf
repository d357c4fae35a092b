# On each cluster an agent watches how much of it is in use, and pushes a score:
#
#   PUT /v1/clusters/berlin/placement-scores/utilisation
#   { "kind": "placement_score",
#     "metadata": { "name": "utilisation", "cluster": "berlin" },
#     "spec": { "scores": { "cpu_free": 55, "memory_free": 20 },
#               "valid_until": "2031-01-31T12:05:00Z" } }
#
# with a token of the role agent (scheduler-server token create --role agent).
# The batch jobs then run on the clusters with most of their CPU free, and follow
# when that changes.

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
  description = "The clusters on which agents run."
  type        = set(string)
  default     = ["berlin", "madrid", "oslo", "paris"]
}

resource "scheduler_cluster" "site" {
  for_each = var.clusters

  name   = each.key
  labels = { tier = "batch" }
}

# The top two by score. Terraform does not write the scores here: agents do, every
# minute, and no plan ever shows a difference because of them.
resource "scheduler_placement" "jobs" {
  name               = "jobs"
  number_of_clusters = 2
  strategy           = "prioritizers"

  prioritizer_policy = {
    mode = "exact" # nothing but what is listed here counts

    configurations = [
      { type = "addon", resource_name = "utilisation", score_name = "cpu_free" },
    ]
  }

  # A cluster that is better by 10 points or less does not displace another one.
  # A score that has expired, or that nobody pushed, counts as 0.
  min_improvement = 10

  predicates = [
    { label_selector = { match_labels = { tier = "batch" } } },
  ]

  depends_on = [scheduler_cluster.site]
}

# Scores are not part of the placement's state, because they change all the time.
# This shows them as of this run.
data "scheduler_placement_decisions" "jobs" {
  name = scheduler_placement.jobs.name
}

output "clusters" {
  value = scheduler_placement.jobs.clusters
}

output "scores" {
  value = { for d in data.scheduler_placement_decisions.jobs.decisions : d.cluster => d.score }
}
