# A primary and a backup site. The ledger runs on the primary. When that is lost it
# is started on the backup, and the copy on the primary counts as running until the
# new one is healthy, or some time has passed. When the primary has been back for a
# while the ledger returns.

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

variable "grace_period" {
  description = "For how long the copy on a lost site counts as running, unless the new one is reported healthy before."
  type        = string
  default     = "10m"
}

variable "stabilization" {
  description = "For how long the primary must be back before the ledger returns."
  type        = string
  default     = "10m"
}

variable "maintenance" {
  description = "Takes the ledger off the primary on purpose."
  type        = bool
  default     = false
}

resource "scheduler_cluster" "site" {
  for_each = toset(["member1", "member2"])

  name = each.key

  # Without a URL that could be probed the server expects heartbeats:
  #   POST /v1/clusters/member1/heartbeat
  health = {
    interval          = var.heartbeat_interval
    failure_threshold = 3
    success_threshold = 2
  }

  # The same by hand, for a maintenance that is planned.
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

    # Leave a site on which the ledger itself is reported unhealthy, too:
    #   PUT /v1/namespaces/bank/workloads/ledger/health
    # application = { toleration = "5m" }
  }

  # Without this the ledger stays on the backup until somebody asks for a fresh
  # decision:
  #   POST /v1/namespaces/bank/workloads/ledger/reschedule
  fail_back = { mode = "automatic", stabilization = var.stabilization }
}

resource "scheduler_workload" "ledger" {
  name        = "ledger"
  api_version = "apps/v1"
  kind        = "StatefulSet"
  replicas    = 3

  # While the agents have not reported yet no cluster is online.
  wait = { on_timeout = "warning" }

  depends_on = [scheduler_propagation_policy.ledger]
}

# Where it is to run.
output "runs_on" {
  value = scheduler_workload.ledger.clusters
}

# Where it still runs meanwhile.
output "leaving" {
  value = scheduler_workload.ledger.evicting
}
