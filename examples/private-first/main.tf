# Two private clusters, which cost little, and one of a cloud provider, which costs
# more. What fits runs on the private ones. The web shop moves to the cloud as a
# whole when they cannot take it; the rendering sends only what they have no room
# for, and takes it back first when there is less to do.

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

variable "frames" {
  description = "How many renderers are to run."
  type        = number
  default     = 8
}

variable "maintenance" {
  description = "Takes everything off private1 on purpose."
  type        = bool
  default     = false
}

variable "stabilization" {
  description = "For how long the private clusters must have room again before the web shop comes back."
  type        = string
  default     = "10m"
}

locals {
  clusters = {
    private1 = { owner = "private", cpu = "4" }
    private2 = { owner = "private", cpu = "4" }
    managed  = { owner = "managed", cpu = "32" }
  }
}

resource "scheduler_cluster" "site" {
  for_each = local.clusters

  name          = each.key
  labels        = { owner = each.value.owner }
  api_resources = ["apps/v1/Deployment", "batch/v1/Job"]
  allocatable   = { cpu = each.value.cpu }

  taints = var.maintenance && each.key == "private1" ? [
    { key = "maintenance", effect = "NoSelect" },
  ] : []
}

# The groups are tried in order, and the first that can take the whole workload
# does: all of it is either here or there.
resource "scheduler_propagation_policy" "web" {
  name      = "web"
  namespace = "shop"

  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]

  placement = {
    cluster_affinities = [
      { affinity_name = "private", label_selector = { match_labels = { owner = "private" } } },
      { affinity_name = "managed", label_selector = { match_labels = { owner = "managed" } } },
    ]

    # By the room that each cluster has. A cluster without room gets nothing.
    replica_scheduling = { weight_preference = { dynamic_weight = "AvailableReplicas" } }
  }

  failover  = { cluster = { purge_mode = "Directly" } }
  fail_back = { stabilization = var.stabilization }
}

# One group that overflows: only what the private clusters have no room for goes to
# the managed one, and it is the first to go when the number shrinks.
resource "scheduler_propagation_policy" "rendering" {
  name      = "rendering"
  namespace = "shop"

  resource_selectors = [{ api_version = "batch/v1", kind = "Job" }]

  placement = {
    cluster_affinities = [{
      affinity_name  = "private"
      label_selector = { match_labels = { owner = "private" } }

      overflow_affinities = [
        { affinity_name = "managed", label_selector = { match_labels = { owner = "managed" } } },
      ]
    }]

    replica_scheduling = { weight_preference = { dynamic_weight = "AvailableReplicas" } }
  }

  failover = { cluster = { purge_mode = "Directly" } }
}

resource "scheduler_workload" "web" {
  name             = "web"
  api_version      = "apps/v1"
  kind             = "Deployment"
  replicas         = 4
  replica_requests = { cpu = "500m" }
  priority         = 10

  # A workload is bound by the policies and clusters that are there.
  depends_on = [scheduler_cluster.site, scheduler_propagation_policy.web]
}

resource "scheduler_workload" "rendering" {
  name             = "rendering"
  api_version      = "batch/v1"
  kind             = "Job"
  replicas         = var.frames
  replica_requests = { cpu = "1" }

  # After the web shop, which is to have the room on the private clusters.
  depends_on = [scheduler_cluster.site, scheduler_propagation_policy.rendering, scheduler_workload.web]
}

output "web" {
  value = scheduler_workload.web.clusters
}

output "rendering" {
  value = scheduler_workload.rendering.clusters
}
