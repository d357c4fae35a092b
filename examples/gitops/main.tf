# Three clusters, and a placement that chooses the cheapest of them. Argo CD (applicationset.yaml) or Flux
# (resourceset.yaml) installs an application on the chosen one.

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

variable "prices" {
  description = "Price of an hour on each cluster."
  type        = map(number)
  default     = { berlin = 0.3, paris = 0.2, rome = 0.4 }
}

resource "scheduler_metrics_provider" "prices" {
  name   = "prices"
  type   = "static"
  static = { metrics = var.prices }
}

resource "scheduler_metric" "price" {
  for_each = var.prices

  name      = "price-${each.key}"
  min       = 0
  max       = 1
  direction = "descending" # cheaper is better

  metrics_provider = {
    name   = scheduler_metrics_provider.prices.name
    metric = each.key
  }
}

resource "scheduler_cluster" "this" {
  for_each = var.prices

  name    = each.key
  region  = "eu"
  labels  = { tier = "prod" }
  metrics = [{ name = scheduler_metric.price[each.key].name, weight = 1 }]
  # The name of the cluster in Argo CD.
  claims = { argocd = "${each.key}-prod" }
}

resource "scheduler_placement" "web" {
  name               = "web"
  number_of_clusters = 1
  label_constraints  = ["tier is prod"]
  reschedule_after   = "0s"
  metrics            = { stickiness = 0 }

  depends_on = [scheduler_cluster.this]
}
