# Four clusters in four countries, rated by the price of electricity and the demand
# for their waste heat, and two placements that go where both are best. When a
# placement moves, terraform plan shows it.

terraform {
  required_version = ">= 1.11"

  required_providers {
    scheduler = {
      source = "scheduler/scheduler"
    }
  }
}

# SCHEDULER_ENDPOINT and SCHEDULER_TOKEN set the server and the token. By default,
# the provider uses a server on this machine.
provider "scheduler" {
  namespace = "shop"
}

locals {
  live = var.prometheus_url != ""
}

# Each site has a namespace for its metrics, so that the metrics can have the same
# names. A constraint like "electricity < 0.4" then compares each cluster's own
# price.
resource "scheduler_metrics_provider" "site" {
  for_each = var.sites

  name      = "figures"
  namespace = each.key
  type      = local.live ? "prometheus" : "static"
  interval  = var.interval

  prometheus = local.live ? { url = var.prometheus_url } : null
  static     = local.live ? null : { metrics = { electricity_price = each.value.electricity, heat_demand = each.value.heat } }
}

resource "scheduler_metric" "electricity" {
  for_each = var.sites

  name      = "electricity"
  namespace = each.key
  min       = 0
  max       = 1
  direction = "descending" # cheaper is better

  metrics_provider = {
    name   = scheduler_metrics_provider.site[each.key].name
    metric = local.live ? "electricity_price{site=\"${each.key}\"}" : "electricity_price"
  }
}

resource "scheduler_metric" "heat" {
  for_each = var.sites

  name       = "heat"
  namespace  = each.key
  min        = 0
  max        = 10
  on_failure = "ignore" # if it cannot be read, only the price counts

  metrics_provider = {
    name   = scheduler_metrics_provider.site[each.key].name
    metric = local.live ? "heat_demand{site=\"${each.key}\"}" : "heat_demand"
  }
}

resource "scheduler_cluster" "site" {
  for_each = var.sites

  name   = each.key
  region = "europe"
  labels = { location = each.value.location, tier = each.value.tier }

  metrics = [
    { name = scheduler_metric.electricity[each.key].name, namespace = each.key, weight = 2 },
    { name = scheduler_metric.heat[each.key].name, namespace = each.key },
  ]

  allocatable = { cpu = "32", memory = "128Gi" }
}

# The web shop: always the best production cluster in the EU.
resource "scheduler_placement" "web" {
  name               = "web"
  number_of_clusters = 1
  label_constraints  = ["location in (DE, FR, PL)", "tier is prod"]
  resource_requests  = { cpu = "8", memory = "16Gi" }
  reschedule_after   = var.reschedule_after
  min_improvement    = 0.05

  depends_on = [scheduler_cluster.site]
}

# Nightly jobs: any two clusters with cheap electricity.
resource "scheduler_placement" "batch" {
  name               = "batch"
  number_of_clusters = 2
  metric_constraints = ["electricity < 0.6"]
  reschedule_after   = var.reschedule_after

  # Do not fail if fewer than two clusters are cheap.
  wait = { on_timeout = "warning" }

  depends_on = [scheduler_cluster.site]
}

# Resources that use a decision follow it. In practice, this would be a helm_release
# or a DNS record: see ../releases.
resource "terraform_data" "release" {
  input = "web runs in ${join(" and ", scheduler_placement.web.clusters)}"
}
