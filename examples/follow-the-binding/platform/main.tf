# The platform team's configuration: the clusters, and a policy for the Deployments
# of every namespace. Apply this first. The configuration in the parent directory
# belongs to a team that uses it.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {}

variable "closed" {
  description = "Clusters to drain."
  type        = list(string)
  default     = []
}

locals {
  regions = { member1 = "north", member2 = "north", member3 = "south" }
}

resource "scheduler_cluster" "member" {
  for_each = local.regions

  name        = each.key
  region      = each.value
  allocatable = { cpu = "8" }

  taints = contains(var.closed, each.key) ? [{ key = "closed", effect = "NoSelect" }] : []
}

# Deployments are spread over both regions by free capacity.
resource "scheduler_propagation_policy" "deployments" {
  name               = "deployments"
  resource_selectors = [{ api_version = "apps/v1", kind = "Deployment" }]

  placement = {
    spread_constraints = [
      { spread_by_field = "region", min_groups = 2 },
      { spread_by_field = "cluster" },
    ]

    replica_scheduling = { weight_preference = { dynamic_weight = "AvailableReplicas" } }
  }

  failover = { cluster = { grace_period = "10m" } }
}
