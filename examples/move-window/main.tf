# A shop runs on the cluster with the cheapest electricity. It moves at night only, at
# most once an hour, and not at all while somebody looks into an incident.

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

variable "price" {
  description = "Price of electricity by cluster, in euros per kilowatt-hour."
  type        = map(number)
  default     = { berlin = 0.10, paris = 0.30 }
}

variable "night" {
  description = "When the night begins, as a cron expression, and how long it is."
  type        = object({ schedule = string, duration = string })
  default     = { schedule = "0 22 * * *", duration = "6h" }
}

variable "incident" {
  description = "Why nothing may move. Empty: no incident."
  type        = string
  default     = ""
}

resource "scheduler_metrics_provider" "prices" {
  name   = "prices"
  type   = "static"
  static = { metrics = var.price }
}

resource "scheduler_metric" "price" {
  for_each = var.price

  name             = "price-${each.key}"
  min              = 0
  max              = 0.5
  direction        = "descending"
  metrics_provider = { name = scheduler_metrics_provider.prices.name, metric = each.key }
}

resource "scheduler_cluster" "site" {
  for_each = var.price

  name      = each.key
  namespace = "shop"
  metrics   = [{ name = scheduler_metric.price[each.key].name, weight = 1 }]
}

resource "scheduler_move_window" "nights" {
  name      = "nights"
  namespace = "shop"
  kind      = "allow"
  schedule  = var.night.schedule
  duration  = var.night.duration
  time_zone = "Europe/Berlin"
}

resource "scheduler_freeze" "incident" {
  count = var.incident == "" ? 0 : 1

  name      = "incident"
  namespace = "shop"
  reason    = var.incident
}

resource "scheduler_placement" "web" {
  name               = "web"
  number_of_clusters = 1
  cluster_names      = [for c in scheduler_cluster.site : c.name]
  reschedule_after   = "0s"
  move_budget        = { max_moves = "1", per = "1h" }
}

output "cluster" {
  description = "Where the shop runs."
  value       = scheduler_placement.web.clusters
}
