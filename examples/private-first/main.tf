# Two cheap private clusters, and a more expensive one at a cloud provider. What
# fits runs on the private clusters. The web shop moves to the cloud as a whole if
# it does not fit. The renderer only sends the surplus to the cloud, and removes it
# from there first when it scales down.

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
  description = "Number of renderers."
  type        = number
  default     = 8
}

variable "maintenance" {
  description = "Move everything off private1 for maintenance."
  type        = bool
  default     = false
}

variable "stabilization" {
  description = "How long the private clusters must have room before the web shop returns."
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

# Groups are tried in order. The first one that has room for the whole workload gets
# all of it.
resource "scheduler_propagation_policy" "web" {
  name      = "web"
  namespace = "shop"

  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]

  placement = {
    cluster_affinities = [
      { affinity_name = "private", label_selector = { match_labels = { owner = "private" } } },
      { affinity_name = "managed", label_selector = { match_labels = { owner = "managed" } } },
    ]

    # Divide by free capacity. A full cluster gets nothing.
    replica_scheduling = { weight_preference = { dynamic_weight = "AvailableReplicas" } }
  }

  failover  = { cluster = { purge_mode = "Directly" } }
  fail_back = { stabilization = var.stabilization }
}

# One group with overflow. Only replicas that do not fit on the private clusters go
# to the managed one, and they are removed first when the workload scales down.
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

  # The workload is bound with the policies and clusters that exist at that moment.
  depends_on = [scheduler_cluster.site, scheduler_propagation_policy.web]
}

resource "scheduler_workload" "rendering" {
  name             = "rendering"
  api_version      = "batch/v1"
  kind             = "Job"
  replicas         = var.frames
  replica_requests = { cpu = "1" }

  # Created after the web shop, which takes precedence on the private clusters.
  depends_on = [scheduler_cluster.site, scheduler_propagation_policy.rendering, scheduler_workload.web]
}

output "web" {
  value = scheduler_workload.web.clusters
}

output "rendering" {
  value = scheduler_workload.rendering.clusters
}
