# A team deploys its web shop to the clusters that the scheduler chooses: one
# resource per cluster, created in the same apply as the workload. Apply platform/
# first; it contains the clusters and the policy.

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

variable "replicas" {
  type    = number
  default = 6
}

variable "image" {
  type    = string
  default = "registry.example.com/shop/web:1"
}

# The preview and the workload must have the same attributes.
locals {
  web = {
    name             = "web"
    api_version      = "apps/v1"
    kind             = "Deployment"
    replicas         = var.replicas
    replica_requests = { cpu = "500m" }
  }
}

# The server decides during the plan.
data "scheduler_propagation_preview" "web" {
  workload = local.web
}

resource "scheduler_workload" "web" {
  name             = local.web.name
  api_version      = local.web.api_version
  kind             = local.web.kind
  replicas         = local.web.replicas
  replica_requests = local.web.replica_requests

  # The apply commits the previewed binding, or fails and asks you to plan again.
  preview_token_wo = data.scheduler_propagation_preview.web.token
}

# What should run, including replicas that are being evicted. These disappear once
# their replacements are healthy.
locals {
  deployments = merge(scheduler_workload.web.evicting, scheduler_workload.web.clusters)
}

# Stands in for what you create on each cluster, such as a kubernetes_deployment_v1
# with that cluster's provider. See ../releases.
resource "terraform_data" "deployment" {
  for_each = local.deployments

  input = {
    cluster  = each.key
    replicas = each.value
    image    = var.image
  }
}

# Every plan and apply warns if some replicas have no cluster.
check "web" {
  assert {
    condition     = sum(concat([0], values(scheduler_workload.web.clusters))) == var.replicas
    error_message = "Not all replicas of the web shop have a cluster."
  }
}

output "deployments" {
  value = { for cluster, d in terraform_data.deployment : cluster => d.input.replicas }
}
