# The shop moves to a new generation of clusters, one cluster at a time. Each ring of
# clusters begins only when somebody approves it, in this configuration, and an old
# cluster is left only when the shop was reported healthy on the new one.

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

variable "generation" {
  description = "Generation of clusters that the shop runs on."
  type        = string
  default     = "blue"
}

variable "approve" {
  description = "Rollout to approve, and up to which step: see the output rollout."
  type        = object({ revision = number, step = optional(number) })
  default     = null
}

variable "min_success_time" {
  description = "How long the shop must be healthy on a new cluster before the old one is left."
  type        = string
  default     = "10m"
}

locals {
  clusters = {
    blue-1  = { generation = "blue", ring = "1" }
    blue-2  = { generation = "blue", ring = "2" }
    green-1 = { generation = "green", ring = "1" }
    green-2 = { generation = "green", ring = "2" }
  }
}

resource "scheduler_cluster" "site" {
  for_each = local.clusters

  name   = each.key
  labels = each.value
}

resource "scheduler_placement" "shop" {
  name               = "shop"
  number_of_clusters = 2
  label_constraints  = ["generation is ${var.generation}"]

  rollout = {
    order             = "label"
    label_key         = "ring"
    max_concurrent    = "1"
    approval          = "group"
    health            = "reported"
    min_success_time  = var.min_success_time
    progress_deadline = "1h"
  }

  # To go on, take revision and step from the output rollout, and apply.
  approve = var.approve

  depends_on = [scheduler_cluster.site]
}

data "scheduler_placement_decisions" "shop" {
  name = scheduler_placement.shop.name

  depends_on = [scheduler_placement.shop]
}

# Where the shop runs: deploy it here, and send reports of its health to
#   PUT /v1/namespaces/shop/placements/shop/health
output "runs_on" {
  value = sort(scheduler_placement.shop.clusters)
}

# Where it goes, and what that waits for.
output "rollout" {
  value = try({
    revision    = data.scheduler_placement_decisions.shop.rollout.revision
    step        = data.scheduler_placement_decisions.shop.rollout.step
    waiting_for = data.scheduler_placement_decisions.shop.rollout.waiting_for
    target      = sort(data.scheduler_placement_decisions.shop.rollout.target[*].cluster)
  }, null)
}
