# The fleet of the demo of failover: three clusters with room and a price each, and
# one application more in every round.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

provider "scheduler" {
  namespace   = "shop"
  max_retries = 8 # 40 seconds: longer than the servers take to elect another leader
}

variable "applications" {
  description = "Number of applications."
  type        = number
}

variable "prices" {
  description = "Price of each cluster, from 0 to 1."
  type        = map(number)
  default     = { berlin = 0.4, paris = 0.3, oslo = 0.1 }
}

resource "scheduler_metrics_provider" "prices" {
  for_each = var.prices

  name      = "prices"
  namespace = each.key
  type      = "static"
  static    = { metrics = { price = each.value } }
}

resource "scheduler_metric" "price" {
  for_each = var.prices

  name      = "price"
  namespace = each.key
  min       = 0
  max       = 1
  direction = "descending"

  metrics_provider = { name = scheduler_metrics_provider.prices[each.key].name, metric = "price" }
}

resource "scheduler_cluster" "site" {
  for_each = var.prices

  name        = each.key
  metrics     = [{ name = scheduler_metric.price[each.key].name, namespace = each.key }]
  allocatable = { cpu = "8" }
}

resource "scheduler_placement" "application" {
  count = var.applications

  name               = "application-${count.index}"
  labels             = { applications = tostring(var.applications) } # each round writes all of them
  number_of_clusters = 1
  resource_requests  = { cpu = "1" }

  depends_on = [scheduler_cluster.site]
}

output "decisions" {
  description = "Where each application runs."
  value       = { for a in scheduler_placement.application : a.name => a.clusters }
}
