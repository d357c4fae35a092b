# A team that deploys its web shop to whichever clusters the scheduler chooses: one
# resource for each cluster of the binding, in the apply that creates the workload.
# The clusters and the policy are those of platform/, which is applied before.

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

# The preview and the workload need the same attributes.
locals {
  web = {
    name             = "web"
    api_version      = "apps/v1"
    kind             = "Deployment"
    replicas         = var.replicas
    replica_requests = { cpu = "500m" }
  }
}

# Decided by the server while Terraform plans.
data "scheduler_propagation_preview" "web" {
  workload = local.web
}

resource "scheduler_workload" "web" {
  name             = local.web.name
  api_version      = local.web.api_version
  kind             = local.web.kind
  replicas         = local.web.replicas
  replica_requests = local.web.replica_requests

  # The apply commits what the preview says, or fails and asks for a new plan.
  preview_token_wo = data.scheduler_propagation_preview.web.token
}

# What is to run, and what still has to on clusters that are being left: it goes
# when the replicas that take its place are healthy.
locals {
  deployments = merge(scheduler_workload.web.evicting, scheduler_workload.web.clusters)
}

# This stands for what is made on each cluster, such as a kubernetes_deployment_v1
# whose provider is that of the cluster. The guide shows one.
resource "terraform_data" "deployment" {
  for_each = local.deployments

  input = {
    cluster  = each.key
    replicas = each.value
    image    = var.image
  }
}

# Every plan and apply says so where not all replicas have a cluster.
check "web" {
  assert {
    condition     = sum(concat([0], values(scheduler_workload.web.clusters))) == var.replicas
    error_message = "Not all replicas of the web shop have a cluster."
  }
}

output "deployments" {
  value = { for cluster, d in terraform_data.deployment : cluster => d.input.replicas }
}
