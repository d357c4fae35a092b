# A primary and a backup site. The ledger runs on the primary site. If that is lost,
# the ledger starts on the backup site; the old copy counts as running until the new
# one is healthy or a grace period ends. Once the primary site has been back for a
# while, the ledger returns.

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

variable "grace_period" {
  description = "How long the copy on a lost site counts as running, unless the new one is reported healthy earlier."
  type        = string
  default     = "10m"
}

variable "stabilization" {
  description = "How long the primary site must be back before the ledger returns."
  type        = string
  default     = "10m"
}

variable "maintenance" {
  description = "Move the ledger off the primary site for maintenance."
  type        = bool
  default     = false
}

resource "scheduler_cluster" "site" {
  for_each = toset(["member1", "member2"])

  name = each.key

  # Without a URL to probe, the server expects heartbeats:
  #   POST /v1/clusters/member1/heartbeat
  health = {
    interval          = var.heartbeat_interval
    failure_threshold = 3
    success_threshold = 2
  }

  # Do the same manually for planned maintenance.
  taints = var.maintenance && each.key == "member1" ? [
    { key = "maintenance", effect = "NoSelect" },
  ] : []
}

resource "scheduler_propagation_policy" "ledger" {
  name      = "ledger"
  namespace = "bank"

  resource_selectors = [{ api_version = "apps/v1", kind = "StatefulSet", name = "ledger" }]

  placement = {
    cluster_affinities = [
      { affinity_name = "primary", cluster_names = [scheduler_cluster.site["member1"].name] },
      { affinity_name = "backup", cluster_names = [scheduler_cluster.site["member2"].name] },
    ]

    replica_scheduling = { type = "Divided" }
  }

  failover = {
    cluster = { purge_mode = "Gracefully", grace_period = var.grace_period }

    # Uncomment to also leave a site on which the ledger is reported unhealthy, with
    #   PUT /v1/namespaces/bank/workloads/ledger/health
    # application = { toleration = "5m" }
  }

  # Without this, the ledger stays on the backup site until somebody requests
  # rescheduling:
  #   POST /v1/namespaces/bank/workloads/ledger/reschedule
  fail_back = { mode = "automatic", stabilization = var.stabilization }
}

resource "scheduler_workload" "ledger" {
  name        = "ledger"
  api_version = "apps/v1"
  kind        = "StatefulSet"
  replicas    = 3

  # No cluster is online until the agents have sent a first heartbeat.
  wait = { on_timeout = "warning" }

  depends_on = [scheduler_propagation_policy.ledger]
}

# Where it should run.
output "runs_on" {
  value = scheduler_workload.ledger.clusters
}

# Where it still runs in the meantime.
output "leaving" {
  value = scheduler_workload.ledger.evicting
}
