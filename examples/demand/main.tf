# A placement that lacks clusters says which would do, and this configuration makes
# them. The first apply creates the placement; the next one makes the clusters that it
# lacks. They stay for as long as the placement uses them.

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

variable "number_of_clusters" {
  description = "Number of clusters that the shop runs on."
  type        = number
  default     = 2
}

resource "scheduler_placement" "shop" {
  name               = "shop"
  number_of_clusters = var.number_of_clusters
  label_constraints  = ["location in (DE, FR)"]
  resource_requests  = { cpu = "4", memory = "16Gi" }
}

# Read during the plan, so that for_each knows the names. In the first plan the
# placement does not exist yet, and nothing is demanded.
data "scheduler_demand" "shop" {
  namespace = "shop"
  name      = "shop"
}

# Stands in for the resource that creates the cluster, such as an EKS or Magnum
# cluster, with what it must have in each.value: labels, region, resources.
resource "terraform_data" "kubernetes" {
  for_each = data.scheduler_demand.shop.clusters

  input = {
    name   = each.key
    region = { DE = "eu-central-1", FR = "eu-west-3" }[each.value.labels["location"]]
  }
}

resource "scheduler_cluster" "made" {
  for_each = data.scheduler_demand.shop.clusters

  name        = each.key
  namespace   = "shop"
  region      = terraform_data.kubernetes[each.key].output.region
  labels      = merge(each.value.labels, { made = "on-demand" })
  allocatable = { cpu = "16", memory = "64Gi" }

  # For what it was made. Without this, the next plan would remove it.
  demand = each.value
}

output "made" {
  description = "Number of clusters that were made."
  value       = length(scheduler_cluster.made)
}
