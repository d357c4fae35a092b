# A primary and a backup cluster; storage is replicated from one to the other. The
# workload runs on the primary, moves to the backup when the primary is lost or
# tainted, and comes back afterwards.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {
  namespace = "bank"
}

variable "heartbeat_interval" {
  description = "Within which time a heartbeat of each cluster's agent is expected. Three in a row that stay away mean that the cluster is lost."
  type        = string
  default     = "10s"
}

variable "maintenance" {
  description = "Takes the workload off the primary on purpose."
  type        = bool
  default     = false
}

locals {
  # Which cluster is wanted first: 100 points against none. The scores have no
  # valid_until, so they hold until the configuration changes.
  preference = { primary = 100, backup = 0 }
}

resource "scheduler_cluster" "site" {
  for_each = local.preference

  name   = each.key
  labels = { storage = "replicated" }

  # Without a URL that could be probed the server expects heartbeats:
  #   POST /v1/clusters/primary/heartbeat
  # When they stay away it taints the cluster (scheduler/unreachable, NoSelect),
  # and takes the taint away when they are back.
  health = {
    interval          = var.heartbeat_interval
    failure_threshold = 3
    success_threshold = 2
  }

  # The same by hand, for a maintenance that is planned.
  taints = var.maintenance && each.key == "primary" ? [
    { key = "maintenance", effect = "NoSelect" },
  ] : []
}

resource "scheduler_placement_score" "preference" {
  for_each = local.preference

  cluster = scheduler_cluster.site[each.key].name
  name    = "disaster-recovery"
  scores  = { ledger = each.value }
}

resource "scheduler_placement" "ledger" {
  name               = "ledger"
  number_of_clusters = 1
  label_constraints  = ["storage is replicated"]
  strategy           = "prioritizers"

  prioritizer_policy = {
    mode = "exact"

    configurations = [
      { type = "addon", resource_name = "disaster-recovery", score_name = "ledger" },
      # To stay on the backup until somebody asks for the way back, let the
      # present cluster count for more than the preference:
      # { name = "steady", weight = 2 },
    ]
  }

  # How long to bear with a lost cluster before moving. The move is made at that
  # very moment, not at the next run of anything.
  # tolerations = [
  #   { key = "scheduler/unreachable", operator = "Exists", toleration_seconds = 30 },
  # ]

  # While the agents have not reported yet no cluster is online.
  wait = { on_timeout = "warning" }

  depends_on = [scheduler_placement_score.preference]
}

output "runs_on" {
  value = scheduler_placement.ledger.clusters
}
