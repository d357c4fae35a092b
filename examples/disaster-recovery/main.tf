# A primary and a backup cluster, with storage replicated from one to the other. The
# workload runs on the primary cluster, moves to the backup if the primary is lost
# or tainted, and returns afterwards.

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
  description = "Interval in which each cluster's agent must send a heartbeat. After three missed heartbeats, the cluster counts as lost."
  type        = string
  default     = "10s"
}

variable "maintenance" {
  description = "Move the workload off the primary cluster for maintenance."
  type        = bool
  default     = false
}

locals {
  # Prefer the primary: 100 points against none. The scores have no valid_until, so
  # they never expire.
  preference = { primary = 100, backup = 0 }
}

resource "scheduler_cluster" "site" {
  for_each = local.preference

  name   = each.key
  labels = { storage = "replicated" }

  # Without a URL to probe, the server expects heartbeats:
  #   POST /v1/clusters/primary/heartbeat
  # When they stop, it taints the cluster (scheduler/unreachable, NoSelect). When
  # they resume, it removes the taint.
  health = {
    interval          = var.heartbeat_interval
    failure_threshold = 3
    success_threshold = 2
  }

  # Do the same manually for planned maintenance.
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
      # Uncomment to stay on the backup until somebody moves the workload back:
      # the current cluster then counts for more than the preference.
      # { name = "steady", weight = 2 },
    ]
  }

  # Uncomment to tolerate a lost cluster for a while. The server moves the workload
  # exactly when the time is up, without a Terraform run.
  # tolerations = [
  #   { key = "scheduler/unreachable", operator = "Exists", toleration_seconds = 30 },
  # ]

  # No cluster is online until the agents have sent a first heartbeat.
  wait = { on_timeout = "warning" }

  depends_on = [scheduler_placement_score.preference]
}

output "runs_on" {
  value = scheduler_placement.ledger.clusters
}
