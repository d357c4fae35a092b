# Rate clusters by the load of their racks, as measured in InfluxDB. The metric's
# name at the provider is the name of the measurement. The last value of the past
# hour counts.

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

variable "influx_url" {
  description = "URL of the InfluxDB with the measurements. If empty, the values in var.load are used."
  type        = string
  default     = ""
}

variable "influx_token" {
  description = "API token, or user:password for InfluxDB 1.x."
  type        = string
  ephemeral   = true
  default     = null
}

variable "load" {
  description = "The clusters, and their load if there is no InfluxDB."
  type        = map(number)
  default     = { berlin = 0.7, madrid = 0.4, oslo = 0.2 }
}

locals {
  live = var.influx_url != ""
}

resource "scheduler_metrics_provider" "measurements" {
  name     = "measurements"
  type     = local.live ? "influx" : "static"
  interval = "5s"

  # The token is write-only: it is in no plan and no state. Change the version to
  # send a new token.
  influx = local.live ? { url = var.influx_url, org = "shop", bucket = "racks", token_wo = var.influx_token, token_wo_version = 1 } : null
  static = local.live ? null : { metrics = { for name, load in var.load : "load_${name}" => load } }
}

resource "scheduler_metric" "load" {
  for_each = var.load

  name             = "load-${each.key}"
  min              = 0
  max              = 1
  direction        = "descending" # less load is better
  on_failure       = "last_value" # use the last value during short gaps
  max_age          = "10m"
  metrics_provider = { name = scheduler_metrics_provider.measurements.name, metric = "load_${each.key}" }
}

resource "scheduler_cluster" "site" {
  for_each = var.load

  name    = each.key
  metrics = [{ name = scheduler_metric.load[each.key].name }]
}

resource "scheduler_placement" "web" {
  name               = "web"
  number_of_clusters = 1

  depends_on = [scheduler_cluster.site]
}

output "web_runs_on" {
  value = scheduler_placement.web.clusters
}
